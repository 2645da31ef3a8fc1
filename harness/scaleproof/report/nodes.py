"""The nodes of a launch, each with its ranks, its switch and its results in the sniff test, as a table of the page and
as lines of `show`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scaleproof.core.node_schema import PlacedNode, Placement, Sniffed, SniffedNode
from scaleproof.core.record_schema import Record
from scaleproof.launch.preflight.slow_nodes import KINDS, Kind, slow
from scaleproof.record.placement import ADVICE, placement_differences

HEAD = (
    "node",
    "switch",
    "address",
    "ranks",
    "cores",
    "machine",
    "copies (GB/s)",
    "multiplies (GFLOP/s)",
    "link (Gbit/s)",
    "round trip (µs)",
)
_SCALES = {"copied": 1e-9, "multiplied": 1e-9, "rate": 8e-9, "trip": 1e6}


@dataclass(frozen=True, slots=True)
class Cell:
    """A value with its interval; `slow`: the sniff test found it slow."""

    value: str
    interval: str = ""
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a launch. `origin`: their allocation, launcher and network; `taken`: time of the sniff test, empty
    without one."""

    origin: str
    taken: str
    rows: list[list[Cell]]


def nodes(record: Record) -> Nodes | None:
    """The nodes of a launch; None if it ran on this machine, or on nodes that its fabric made."""
    placement = record.placement
    if placement is None:
        return None
    sniff = record.sniff
    sniffed = {node.name: node for node in sniff.nodes} if sniff else {}
    named = {(slow_node.who, slow_node.kind.name) for slow_node in slow(sniff)} if sniff else set()
    return Nodes(
        _origin(placement),
        sniff.taken_at if sniff else "",
        [_row(node, sniffed.get(node.name), named) for node in placement.nodes],
    )


def lines(record: Record) -> list[str]:
    """Lines for a terminal; columns without any value are left out."""
    launch_nodes = nodes(record)
    if launch_nodes is None:
        return []
    rows = [[*HEAD], *([cell.value + (" SLOW" if cell.slow else "") for cell in row] for row in launch_nodes.rows)]
    columns = [column for column in range(len(HEAD)) if any(row[column] for row in rows[1:])]
    widths = {column: max(len(row[column]) for row in rows) for column in columns}
    return [
        f"nodes: {launch_nodes.origin}",
        *("  " + "  ".join(row[column].ljust(widths[column]) for column in columns).rstrip() for row in rows),
    ]


def elsewhere(record: Record, others: Iterable[Record]) -> list[tuple[str, str]]:
    """Code, and message with advice, if other launches of the same case had other nodes, or nodes at other distances
    from each other."""
    alike = [
        other
        for other in others
        if other.case_id == record.case_id and other.launch != record.launch and other.status == "ok"
    ]
    differences = placement_differences([("this launch", [record]), ("others of its case", alike)]) if alike else []
    return [(code, f"{message}; {ADVICE[code]}") for code, message in differences]


def _origin(placement: Placement) -> str:
    job = placement.job
    source = (
        f"Slurm job {job.id} on cluster {placement.cluster}, partition {job.partition}" if job else "a list of hosts"
    )
    requeued = f", requeued {job.restarts} times" if job and job.restarts else ""
    machines = len({node.boot for node in placement.nodes})
    shared = f" (of {machines} machine{'s' if machines > 1 else ''})" if machines != len(placement.nodes) else ""
    files = "files sent over the network" if placement.streamed else "a shared file system"
    return (
        f"{len(placement.nodes)}{shared} of {source}{requeued}; started by {placement.launcher} over "
        f"{placement.interface}, {files}"
    )


def _row(node: PlacedNode, sniffed: SniffedNode | None, named: set[tuple[str, str]]) -> list[Cell]:
    placed = (node.name, node.switch, node.address, ", ".join(map(str, node.ranks)), str(node.cores), node.machine)
    return [*map(Cell, placed), *(_cell(kind, sniffed, named) for kind in KINDS)]


def _cell(kind: Kind, sniffed: SniffedNode | None, named: set[tuple[str, str]]) -> Cell:
    figure: Sniffed | None = getattr(sniffed, kind.name) if sniffed else None
    if sniffed is None or figure is None:
        return Cell("")
    ends = [figure.value, *([] if figure.low is None or figure.high is None else [figure.low, figure.high])]
    value, *interval = (f"{end * _SCALES[kind.name]:.3g}" for end in ends)
    is_slow = bool(named & {(sniffed.name, kind.name), (f"{sniffed.name} to {sniffed.next}", kind.name)})
    return Cell(value, f"{interval[0]} to {interval[1]}" if interval else "", is_slow)
