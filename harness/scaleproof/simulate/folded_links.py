"""The links of a network of which equal replicas use equal ones: each stands for those that the replicas use in its
place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scaleproof.simulate.link_network import Network
from scaleproof.spec.errors import SpecError

Pair = tuple[int, int]


@dataclass(frozen=True)
class FoldedLinks:
    """`stands`: the link that stands for each link; `weights`: what a byte of one replica takes of it, since all
    replicas send theirs at the same time over so many links."""

    stands: dict[int, int] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)

    def way(self, links: Sequence[int]) -> tuple[Sequence[int], Sequence[float]]:
        """A route, and the weights of its links."""
        if not self.stands:
            return links, ()
        found: dict[int, float] = {}
        for link in links:
            stands = self.stands.get(link, link)
            found[stands] = found.get(stands, 0.0) + self.weights.get(stands, 1.0)
        return list(found), list(found.values())


UNFOLDED = FoldedLinks()
"""Every link stands for itself alone."""


def folded_links(
    network: Network, nodes: Sequence[int], pairs: Iterable[Pair], steps: Sequence[np.ndarray], count: int, name: str
) -> FoldedLinks:
    """`pairs`: of ranks between which something moves in any replica; `steps`: ranks that each rank becomes, which
    change nothing else; `count`: of replicas. Raises SpecError, one line, where the links of replicas differ."""
    routes = _Routes(network, nodes, sorted(pairs), name)
    stands = _orbits([routes.image(step) for step in steps])
    sizes: dict[int, int] = {}
    for link in stands.values():
        sizes[link] = sizes.get(link, 0) + 1
    return FoldedLinks(stands, {link: count / size for link, size in sizes.items()})


class _Routes:
    """Routes of all pairs, one after the other."""

    def __init__(self, network: Network, nodes: Sequence[int], pairs: Sequence[Pair], name: str) -> None:
        routes = [network.route(nodes[source], nodes[destination]) for source, destination in pairs]
        self._network, self._name = network, name
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2)
        self._lengths = np.array([len(route) for route in routes], np.int64)
        self._links = np.array([link for route in routes for link in route], np.int64)

    def image(self, step: np.ndarray) -> dict[int, int]:
        """The link that each link in use becomes by a step."""
        others = self._places(step[self._pairs])
        self._refuse(np.flatnonzero(self._lengths != self._lengths[others]), others)
        pair = np.repeat(np.arange(len(others)), self._lengths)
        first = np.cumsum(self._lengths) - self._lengths
        moved = self._links[first[others[pair]] + np.arange(len(pair)) - first[pair]]
        image = np.full(len(self._network.capacities), -1)
        image[self._links[::-1]] = moved[::-1]
        differs = (image[self._links] != moved) | ~self._network.alike(self._links, moved)
        self._refuse(pair[differs], others)
        used = np.unique(self._links)
        if len(np.unique(image[used])) != len(used):
            raise SpecError(f"{self._name}: cannot be folded: replicas share links that others have for themselves")
        return dict(zip(used.tolist(), image[used].tolist(), strict=True))

    def _places(self, pairs: np.ndarray) -> np.ndarray:
        """Where pairs stand among those with routes, which are sorted."""
        most = int(self._pairs.max(initial=0)) + 1
        return np.searchsorted(self._pairs @ [most, 1], pairs @ [most, 1])

    def _refuse(self, wrong: np.ndarray, others: np.ndarray) -> None:
        if len(wrong):
            pairs = self._pairs[wrong[0]].tolist(), self._pairs[others[wrong[0]]].tolist()
            ways = " and ".join(f"rank {source} to rank {destination}" for source, destination in pairs)
            raise SpecError(f"{self._name}: cannot be folded: the links from {ways} differ")


def _orbits(images: Sequence[dict[int, int]]) -> dict[int, int]:
    """The first link of all that each becomes by any number of steps."""
    stands: dict[int, int] = {}
    for link in sorted({link for image in images for link in image}):
        open_links = [] if link in stands else [link]
        stands.setdefault(link, link)
        while open_links:
            here = open_links.pop()
            for image in images:
                if (there := image[here]) not in stands:
                    stands[there] = link
                    open_links.append(there)
    return stands
