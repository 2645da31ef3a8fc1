"""The nodes that a launch stood on, each with its ranks, its switch, and what the sniff test found: as a table of the
page and as lines of `show`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scaleproof.core.record_schema import PlacedNode, Placement, Record, Sniffed, SniffedNode
from scaleproof.launch.preflight.slow_nodes import KINDS, Kind, slow
from scaleproof.record.placement import ADVICE, unlike

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
    """A value with its interval; `slow`: the sniff test named it."""

    value: str
    interval: str = ""
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Nodes:
    """`words`: who started the launch on them, and over what; `taken`: when the sniff test was, empty where there was
    none."""

    words: str
    taken: str
    rows: list[list[Cell]]


def nodes(record: Record) -> Nodes | None:
    """None for a launch on this machine, or on nodes that its fabric made."""
    place = record.placement
    if place is None:
        return None
    sniff = record.sniff
    sniffed = {node.name: node for node in sniff.nodes} if sniff else {}
    named = {(one.who, one.kind.name) for one in slow(sniff)} if sniff else set()
    return Nodes(
        _words(place),
        sniff.taken_at if sniff else "",
        [_row(node, sniffed.get(node.name), named) for node in place.nodes],
    )


def lines(record: Record) -> list[str]:
    """For a terminal; columns without any value are left out."""
    shown = nodes(record)
    if shown is None:
        return []
    rows = [[*HEAD], *([cell.value + (" SLOW" if cell.slow else "") for cell in row] for row in shown.rows)]
    kept = [column for column in range(len(HEAD)) if any(row[column] for row in rows[1:])]
    widths = {column: max(len(row[column]) for row in rows) for column in kept}
    return [
        f"nodes: {shown.words}",
        *("  " + "  ".join(row[column].ljust(widths[column]) for column in kept).rstrip() for row in rows),
    ]


def elsewhere(record: Record, others: Iterable[Record]) -> list[tuple[str, str]]:
    """Code, and message with advice, where other launches of the same case had other nodes, or had them differently far
    apart."""
    alike = [
        other
        for other in others
        if other.case_id == record.case_id and other.launch != record.launch and other.status == "ok"
    ]
    differences = unlike([("this launch", [record]), ("others of its case", alike)]) if alike else []
    return [(code, f"{message}; {ADVICE[code]}") for code, message in differences]


def _words(place: Placement) -> str:
    job = (
        f"Slurm job {place.job.id} on cluster {place.cluster}, partition {place.job.partition}"
        if place.job
        else "a list of hosts"
    )
    again = f", requeued {place.job.restarts} times" if place.job and place.job.restarts else ""
    machines = len({node.boot for node in place.nodes})
    one = "" if machines == len(place.nodes) else f" (of {machines} machine{'s' if machines > 1 else ''} in truth)"
    files = "files sent over the network" if place.streamed else "a shared file system"
    return f"{len(place.nodes)}{one} of {job}{again}; started by {place.launcher} over {place.interface}, {files}"


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
