"""Whether launches ran on the same nodes, and whether these nodes were equally far apart on the switches, or the cores
of a machine on its caches. If not, readers are warned before they compare the launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from scaleproof.core.record_schema import Record
from scaleproof.record.core_distance import distance_difference, recorded_round_trip_ns

NAMED = 6
"""At most so many names are listed in one line."""
ADVICE = {
    "different_nodes": "nodes of one kind differ too: run both in one allocation, where arms are interleaved on the "
    "same nodes",
    "different_switches": "bytes between switches pass links that others use: request as many switches as before "
    "(Slurm: --switches)",
    "different_cores": "a virtual machine's cores were moved, and messages between ranks take several times as long "
    "between far cores: run again with --near-cores",
}
Code = Literal["different_nodes", "different_switches", "different_cores"]


def placement_differences(sides: Sequence[tuple[str, Sequence[Record]]]) -> list[tuple[Code, str]]:
    """Reasons why these named groups of launches did not run on the same nodes, in words that name nodes and switches;
    empty where no reason is known.

    Launches with the same number of ranks must have the same set of nodes, in any order. With different numbers, the
    smaller set must be part of the larger one. Switches are compared by the number of nodes below each, if all are
    known. Launches on emulated nodes are not compared: their nodes are made for them. Of one group alone the arms are
    compared where it is about cores."""
    apart = distance_difference([(name, _round_trips(side)) for name, side in _arms(sides)])
    of_cores: list[tuple[Code, str]] = [("different_cores", apart)] if apart else []
    return of_cores + _node_differences(sides)


def _node_differences(sides: Sequence[tuple[str, Sequence[Record]]]) -> list[tuple[Code, str]]:
    sides = [
        (name, [record for record in side if not record.case.plugin("fabric").makes_nodes]) for name, side in sides
    ]
    records = [record for _, side in sides for record in side]
    if not any(record.placement for record in records):
        return []
    reasons: list[tuple[Code, str]] = []
    if not _nested(records):
        reasons.append(("different_nodes", f"launches ran on different nodes: {_described(sides, nodes_of)}"))
    if _spread(records):
        description = _described(sides, _below_switches)
        reasons.append(("different_switches", f"their nodes are spread over switches differently: {description}"))
    return reasons


def _arms(sides: Sequence[tuple[str, Sequence[Record]]]) -> list[tuple[str, list[Record]]]:
    """The sides; of a single one the launches by arm."""
    if len(sides) > 1:
        return [(name, list(side)) for name, side in sides]
    arms: dict[str, list[Record]] = {}
    for record in (record for _, side in sides for record in side):
        arms.setdefault(record.case.arm, []).append(record)
    return list(arms.items())


def _round_trips(side: Sequence[Record]) -> list[float]:
    return [time_ns for record in side if (time_ns := recorded_round_trip_ns(record.environment)) is not None]


def nodes_of(record: Record) -> tuple[str, ...]:
    """Sorted names of the nodes, with the name of their cluster if it has one; without an allocation the machine."""
    placement = record.placement
    if placement is None:
        return (f"machine {record.machine} alone",)
    cluster = f"{placement.cluster}/" if placement.cluster else ""
    return tuple(sorted(cluster + node.name for node in placement.nodes))


def switches_of(record: Record) -> dict[str, list[str]]:
    """Names of nodes by the switches above them; empty if the switches of one node are unknown."""
    nodes = record.placement.nodes if record.placement else []
    below: dict[str, list[str]] = {}
    for node in nodes:
        below.setdefault(node.switch, []).append(node.name)
    return {} if "" in below else {switch: sorted(names) for switch, names in sorted(below.items())}


def listed(names: Sequence[str]) -> str:
    """The first NAMED names in one line, and the number of the others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _nested(records: Sequence[Record]) -> bool:
    """Whether each set of nodes is part of all larger ones, and launches with the same number of ranks have the same
    set. A launch without an allocation may have run on one of the nodes if its machine is of their kind."""
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
    """Whether launches with the same number of ranks have their nodes at different distances."""
    by_ranks: dict[int, set[object]] = {}
    for record in records:
        if switches := switches_of(record):
            paths = [switch.split(".") for switch, names in switches.items() for _ in names]
            by_ranks.setdefault(record.case.ranks, set()).add(_shape(paths))
    return any(len(shapes) > 1 for shapes in by_ranks.values())


def _shape(paths: Sequence[Sequence[str]]) -> object:
    """The form of a tree of switches without their names: at each switch the shapes below it, at the lowest switches
    the number of nodes."""
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


def _described(sides: Sequence[tuple[str, Sequence[Record]]], names_of: Callable[[Record], tuple[str, ...]]) -> str:
    everywhere = frozenset.intersection(*(frozenset(names_of(record)) for _, side in sides for record in side))
    return "; ".join(
        f"{name + ' on ' if name else ''}{' or on '.join(_counted(map(names_of, side), everywhere))}"
        for name, side in sides
        if side
    )


def _counted(node_sets: Iterable[tuple[str, ...]], everywhere: frozenset[str]) -> list[str]:
    """Each set of nodes once, with the number of its launches if there are several sets. Of many names those come first
    that are not in every set."""
    counts = Counter(
        tuple(sorted(names, key=lambda name: name in everywhere) if len(names) > NAMED else names)
        for names in node_sets
    )
    if len(counts) == 1:
        return [listed(names) for names in counts]
    return [f"{listed(names)} ({count} launch{'es' if count > 1 else ''})" for names, count in sorted(counts.items())]
