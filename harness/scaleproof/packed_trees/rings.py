"""Rings over links: as many edge-disjoint Hamiltonian cycles as a graph has, as NCCL searches them."""

from __future__ import annotations

from collections.abc import Iterator

from scaleproof.packed_trees.link_graph import LinkGraph, Pair

Ring = tuple[int, ...]


def most_rings(graph: LinkGraph) -> list[Ring]:
    """The largest number of rings through all devices that share no link; a ring of two devices uses one link in either
    direction. Each carries a unit in both of its directions."""
    cycles = list(hamiltonian_cycles(graph))
    used = [_links(cycle) for cycle in cycles]
    best: list[int] = []

    def search(first: int, left: dict[Pair, int], chosen: list[int]) -> None:
        nonlocal best
        if len(chosen) > len(best):
            best = list(chosen)
        # no vertex has links for more rings than half of what is left
        room = min(
            sum(left.get(_pair(device, other), 0) for other in graph.neighbours[device]) // 2
            for device in graph.devices
        )
        if len(chosen) + room <= len(best):
            return
        for number in range(first, len(cycles)):
            if all(left[pair] >= count for pair, count in used[number].items()):
                rest = dict(left)
                for pair, count in used[number].items():
                    rest[pair] -= count
                search(number, rest, [*chosen, number])
                if len(chosen) + room <= len(best):
                    return

    search(0, dict(graph.links), [])
    return [cycles[number] for number in best]


def hamiltonian_cycles(graph: LinkGraph) -> Iterator[Ring]:
    """Each once, from the first device, in one of its two directions."""
    first = graph.devices[0]

    def grown(path: list[int]) -> Iterator[Ring]:
        if len(path) == len(graph.devices):
            if first in graph.neighbours[path[-1]] and (len(path) < 3 or path[1] < path[-1]):
                yield tuple(path)
            return
        for following in graph.neighbours[path[-1]]:
            if following not in path:
                yield from grown([*path, following])

    yield from grown([first])


def broadcast_rate(rings: int) -> float:
    """Units of a link's rate: each ring in both directions."""
    return 2.0 * rings


def all_reduce_rate(rings: int, devices: int) -> float:
    """Units of a link's rate: a ring moves 2 (n - 1) / n of the data over each link."""
    return 2.0 * rings * devices / (2 * (devices - 1))


def _links(ring: Ring) -> dict[Pair, int]:
    found = dict[Pair, int]()
    for one, other in zip(ring, (*ring[1:], ring[0]), strict=True):
        pair = _pair(one, other)
        found[pair] = found.get(pair, 0) + 1
    return found


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)
