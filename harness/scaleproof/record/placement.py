"""Whether launches stood on the same nodes, and their nodes as far apart on switches: what a reader must know before
setting them side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from scaleproof.core.record_schema import Record
from scaleproof.spec.case import NODES_OF_OWN

NAMED = 6
"""So many names are listed in a line."""
ADVICE = {
    "different_nodes": "nodes of one kind differ too: run both in one allocation, where arms are interleaved on the same nodes",
    "different_switches": "bytes between switches pass links that others use: ask for as many switches as before (Slurm: --switches)",
}
Code = Literal["different_nodes", "different_switches"]


def unlike(sides: Sequence[tuple[str, Sequence[Record]]]) -> list[tuple[Code, str]]:
    """What keeps launches of these named sides from having had the same ground, in words that name nodes and switches;
    empty when nothing is known to.

    Launches with equally many ranks must have had the same set of nodes, in any order; of unequally many the fewer
    nodes must be among the others. Switches are compared by how many nodes are below each, where all were told.
    Launches on nodes that are made for them stand on none."""
    sides = [(name, [record for record in side if record.case.fabric not in NODES_OF_OWN]) for name, side in sides]
    records = [record for _, side in sides for record in side]
    if not any(record.placement for record in records):
        return []
    found: list[tuple[Code, str]] = []
    if not _nested(records):
        found.append(("different_nodes", f"launches ran on different nodes: {_told(sides, nodes_of)}"))
    if _spread(records):
        found.append(
            ("different_switches", f"their nodes are spread over switches differently: {_told(sides, _below_switches)}")
        )
    return found


def nodes_of(record: Record) -> tuple[str, ...]:
    """Names of its nodes in their order, with those of their cluster where it has one; without an allocation its
    machine."""
    place = record.placement
    if place is None:
        return (f"machine {record.machine} alone",)
    return tuple(sorted((f"{place.cluster}/" if place.cluster else "") + node.name for node in place.nodes))


def switches_of(record: Record) -> dict[str, list[str]]:
    """Names of nodes by the switches above them; empty where nobody told of some node."""
    nodes = record.placement.nodes if record.placement else []
    found: dict[str, list[str]] = {}
    for node in nodes:
        found.setdefault(node.switch, []).append(node.name)
    return {} if "" in found else {switch: sorted(names) for switch, names in sorted(found.items())}


def listed(words: Sequence[str]) -> str:
    """Words of a line, the first few of many."""
    return ", ".join(words[:NAMED]) + (f" and {len(words) - NAMED} more" if len(words) > NAMED else "")


def _nested(records: Sequence[Record]) -> bool:
    """Whether each set of nodes is within all larger ones, and equal to those of launches with as many ranks; a launch
    outside of any allocation may have run on a node where its machine is of the nodes' kind."""
    kinds = {node.machine for record in records if record.placement for node in record.placement.nodes}
    if any(record.placement is None and record.machine not in kinds for record in records):
        return False
    by_ranks: dict[int, set[frozenset[str]]] = {}
    for record in (record for record in records if record.placement):
        by_ranks.setdefault(record.case.ranks, set()).add(frozenset(nodes_of(record)))
    if any(len(sets) > 1 for sets in by_ranks.values()):
        return False
    ordered = sorted((next(iter(sets)) for sets in by_ranks.values()), key=len)
    return all(fewer <= more for fewer, more in zip(ordered, ordered[1:], strict=False))


def _spread(records: Sequence[Record]) -> bool:
    """Whether launches with as many ranks have nodes differently far apart."""
    by_ranks: dict[int, set[object]] = {}
    for record in records:
        if switches := switches_of(record):
            paths = [switch.split(".") for switch, names in switches.items() for _ in names]
            by_ranks.setdefault(record.case.ranks, set()).add(_shape(paths))
    return any(len(shapes) > 1 for shapes in by_ranks.values())


def _shape(paths: Sequence[Sequence[str]]) -> object:
    """How nodes hang on a tree of switches, whatever these are called: at each switch the shapes below it, at the
    lowest the number of nodes."""
    if not any(paths):
        return len(paths)
    below: dict[str, list[Sequence[str]]] = {}
    for path in paths:
        below.setdefault(path[0] if path else "", []).append(path[1:])
    return tuple(sorted(map(repr, map(_shape, below.values()))))


def _below_switches(record: Record) -> tuple[str, ...]:
    return tuple(f"{switch} ({listed(names)})" for switch, names in switches_of(record).items()) or (
        "switches unknown",
    )


def _told(sides: Sequence[tuple[str, Sequence[Record]]], words: Callable[[Record], tuple[str, ...]]) -> str:
    everywhere = frozenset.intersection(*(frozenset(words(record)) for _, side in sides for record in side))
    return "; ".join(
        f"{name + ' on ' if name else ''}{' or on '.join(_counted(map(words, side), everywhere))}"
        for name, side in sides
        if side
    )


def _counted(grounds: Iterable[tuple[str, ...]], everywhere: frozenset[str]) -> list[str]:
    """Each ground once, with the number of its launches where there are several. Of many names those are told that are
    not everywhere."""
    counts = Counter(
        tuple(sorted(ground, key=lambda word: word in everywhere) if len(ground) > NAMED else ground)
        for ground in grounds
    )
    return [
        listed(ground) + (f" ({count} launch{'es' if count > 1 else ''})" if len(counts) > 1 else "")
        for ground, count in sorted(counts.items())
    ]
