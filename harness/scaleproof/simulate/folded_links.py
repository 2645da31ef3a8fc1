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
    routes = {pair: network.route(nodes[pair[0]], nodes[pair[1]]) for pair in sorted(pairs)}
    images = [_image(network, routes, step, name) for step in steps]
    stands = _orbits(images)
    sizes: dict[int, int] = {}
    for link in stands.values():
        sizes[link] = sizes.get(link, 0) + 1
    return FoldedLinks(stands, {link: count / size for link, size in sizes.items()})


def _image(network: Network, routes: dict[Pair, tuple[int, ...]], step: np.ndarray, name: str) -> dict[int, int]:
    """The link that each link in use becomes by a step."""
    image: dict[int, int] = {}
    for (source, destination), links in routes.items():
        other = int(step[source]), int(step[destination])
        alike = len(links) == len(routes[other])
        for link, moved in zip(links, routes[other], strict=False):
            alike &= image.setdefault(link, moved) == moved and network.alike(link, moved)
        if not alike:
            raise _different(name, (source, destination), other)
    if len(set(image.values())) != len(image):
        raise SpecError(f"{name}: cannot be folded: replicas share links that other replicas have for themselves")
    return image


def _different(name: str, pair: Pair, other: Pair) -> SpecError:
    ways = " and ".join(f"rank {source} to rank {destination}" for source, destination in (pair, other))
    return SpecError(f"{name}: cannot be folded: the links from {ways} differ")


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
