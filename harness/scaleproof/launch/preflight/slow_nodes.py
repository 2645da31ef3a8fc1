"""Which nodes of a sniff test are slow, by name; two of them cannot tell which one is (docs/preflight.md)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaleproof.core.record_schema import PreflightCheck, Sniff, Sniffed, SniffedNode

CODE = "slow_nodes"
FEWEST = 3
SHARES = {"copied": 0.2, "multiplied": 0.2, "rate": 0.2, "trip": 0.55}
"""How far below the middle of all a figure must lie before it is called slow: twice as far as nodes alike were seen
apart (docs/preflight.md)."""
_NAMED = 6


@dataclass(frozen=True, slots=True)
class Kind:
    """One figure: what to call it, and how a value is shown."""

    name: str
    words: str
    shown: Callable[[float], str]
    smaller: bool = False
    """The smaller value is the better one."""


KINDS = (
    Kind("copied", "copies", lambda value: f"{value / 1e9:.3g} GB/s"),
    Kind("multiplied", "multiplies", lambda value: f"{value / 1e9:.3g} GFLOP/s"),
    Kind("rate", "link", lambda value: f"{value * 8 / 1e9:.3g} Gbit/s"),
    Kind("trip", "round trip", lambda value: f"{value * 1e6:.3g} µs", smaller=True),
)


@dataclass(frozen=True, slots=True)
class Slow:
    """A node, or the link between two, whose figure is too low: its value, and the middle of all."""

    who: str
    kind: Kind
    value: float
    middle: float

    @property
    def words(self) -> str:
        """For people."""
        kind, side = self.kind, "above" if self.kind.smaller else "below"
        apart = f"{abs(self.value / self.middle - 1):.0%}"
        value, middle = kind.shown(self.value), kind.shown(self.middle)
        return f"{self.who} {kind.words} {value}, {apart} {side} the middle of all, {middle}"


def slow(sniff: Sniff) -> list[Slow]:
    """Nodes below the median of all by more than the figure's share, whose interval ends below the median of the nodes'
    lower ends. A node's link is the better one of its two ways round the ring; a way between nodes that nothing else
    calls slow is named by both. Empty for fewer than three nodes."""
    if len(sniff.nodes) < FEWEST:
        return []
    found = list[Slow]()
    for kind in KINDS:
        figures = [getattr(node, kind.name) for node in sniff.nodes]
        if any(figure is None for figure in figures):
            continue
        if kind.name in ("rate", "trip"):
            found += _of_links(sniff.nodes, figures, kind, {each.who for each in found})
        else:
            found += _of_nodes(sniff.nodes, figures, kind)
    return found


def _of_nodes(nodes: Sequence[SniffedNode], figures: Sequence[Sniffed], kind: Kind) -> list[Slow]:
    middle = statistics.median(figure.value for figure in figures)
    return [
        Slow(node.name, kind, figure.value, middle)
        for node, figure, low in zip(nodes, figures, _low(figures, kind), strict=True)
        if low
    ]


def _of_links(nodes: Sequence[SniffedNode], figures: Sequence[Sniffed], kind: Kind, known: set[str]) -> list[Slow]:
    """`known`: nodes that are slow by other figures."""
    better = min if kind.smaller else max
    own = [better(figures[place], figures[place - 1], key=lambda figure: figure.value) for place in range(len(nodes))]
    of_nodes = _of_nodes(nodes, own, kind)
    named = known | {found.who for found in of_nodes}
    left = [(node, figure) for node, figure in zip(nodes, figures, strict=True) if not named & {node.name, node.next}]
    middle = statistics.median([figure.value for _, figure in left] or [0.0])
    low = _low([figure for _, figure in left], kind) if len(left) >= FEWEST else []
    return of_nodes + [
        Slow(f"{node.name} to {node.next}", kind, figure.value, middle)
        for (node, figure), is_low in zip(left, low, strict=False)
        if is_low
    ]


def _low(figures: Sequence[Sniffed], kind: Kind) -> list[bool]:
    """Which are; times count by how many there are in a second."""
    ranges = [
        (1 / high, 1 / value, 1 / low) if kind.smaller else (low, value, high)
        for low, value, high in map(_range, figures)
    ]
    lower, middle = (statistics.median(each[place] for each in ranges) for place in (0, 1))
    return [value < (1 - SHARES[kind.name]) * middle and high < lower for _, value, high in ranges]


def _range(figure: Sniffed) -> tuple[float, float, float]:
    low, high = figure.low, figure.high
    return (figure.value if low is None else low, figure.value, figure.value if high is None else high)


def check(sniff: Sniff) -> PreflightCheck:
    """For the records of the run: every figure's range, and by name what is slow."""
    found = slow(sniff)
    ranges = ", ".join(
        _range_shown(kind, sniff.nodes) for kind in KINDS if all(getattr(node, kind.name) for node in sniff.nodes)
    )
    few = f"; {FEWEST} nodes or more are needed to tell which one is slow" if len(sniff.nodes) < FEWEST else ""
    if not found:
        return PreflightCheck(code=CODE, passed=True, message=f"sniff test of {len(sniff.nodes)} nodes: {ranges}{few}")
    slow_ones = "; ".join(each.words for each in found[:_NAMED]) + (
        f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    )
    who = list(dict.fromkeys(each.who for each in found))
    names = ",".join(node.name for node in sniff.nodes if node.name in who)
    out = f", or leave it out ({f'sbatch --exclude={names}' if sniff.job else 'of the list of hosts'})" if names else ""
    advice = f"look at {', '.join(who)} (other work, heat, memory, cable){out}"
    return PreflightCheck(
        code=CODE, passed=True, message=f"{slow_ones}; sniff test of {len(sniff.nodes)} nodes: {ranges}", advice=advice
    )


def _range_shown(kind: Kind, nodes: Sequence[SniffedNode]) -> str:
    values = [getattr(node, kind.name).value for node in nodes]
    least, most = kind.shown(min(values)), kind.shown(max(values))
    return f"{kind.words} {least}" + (f" to {most}" if most != least else "")
