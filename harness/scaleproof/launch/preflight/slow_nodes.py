"""Finds the slow nodes of a sniff test. Two nodes alone do not show which of them is slow (docs/preflight.md)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaleproof.core.node_schema import Sniff, Sniffed, SniffedNode
from scaleproof.core.record_schema import PreflightCheck

CODE = "slow_nodes"
FEWEST = 3
"""Nodes from which a slow one can be named."""
SHARES = {"copied": 0.2, "multiplied": 0.2, "rate": 0.2, "trip": 0.55}
"""How far below the median of all nodes a figure must lie to be called slow: twice the largest difference that was
measured between equal nodes (docs/preflight.md)."""
_NAMED = 6
"""At most so many slow nodes and links are named in a message."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of figure: its field, its label, and how a value is formatted."""

    name: str
    label: str
    format: Callable[[float], str]
    smaller: bool = False
    """Whether the smaller value is the better one."""


KINDS = (
    Kind("copied", "copies", lambda value: f"{value / 1e9:.3g} GB/s"),
    Kind("multiplied", "multiplies", lambda value: f"{value / 1e9:.3g} GFLOP/s"),
    Kind("rate", "link", lambda value: f"{value * 8 / 1e9:.3g} Gbit/s"),
    Kind("trip", "round trip", lambda value: f"{value * 1e6:.3g} µs", smaller=True),
)


@dataclass(frozen=True, slots=True)
class Slow:
    """A node, or the link between two nodes, with a figure that is too low: its value, and the median of all."""

    who: str
    kind: Kind
    value: float
    middle: float

    @property
    def sentence(self) -> str:
        """For people."""
        kind, side = self.kind, "above" if self.kind.smaller else "below"
        apart = f"{abs(self.value / self.middle - 1):.0%}"
        value, middle = kind.format(self.value), kind.format(self.middle)
        return f"{self.who} {kind.label} {value}, {apart} {side} the median of all, {middle}"


def slow(sniff: Sniff) -> list[Slow]:
    """Nodes with a figure below the median of all by more than the figure's share (SHARES), whose interval ends below
    the median of the nodes' lower ends. The figure of a node's link is the better one of its two neighbours in the
    ring; a slow link between two nodes that are not slow is named by both. Empty for fewer than three nodes."""
    if len(sniff.nodes) < FEWEST:
        return []
    slow_parts = list[Slow]()
    for kind in KINDS:
        figures = [getattr(node, kind.name) for node in sniff.nodes]
        if any(figure is None for figure in figures):
            continue
        if kind.name in ("rate", "trip"):
            slow_parts += _of_links(sniff.nodes, figures, kind, {part.who for part in slow_parts})
        else:
            slow_parts += _of_nodes(sniff.nodes, figures, kind)
    return slow_parts


def _of_nodes(nodes: Sequence[SniffedNode], figures: Sequence[Sniffed], kind: Kind) -> list[Slow]:
    middle = statistics.median(figure.value for figure in figures)
    return [
        Slow(node.name, kind, figure.value, middle)
        for node, figure, low in zip(nodes, figures, _low(figures, kind), strict=True)
        if low
    ]


def _of_links(nodes: Sequence[SniffedNode], figures: Sequence[Sniffed], kind: Kind, slow_nodes: set[str]) -> list[Slow]:
    """`slow_nodes`: nodes that are slow by other figures."""
    better = min if kind.smaller else max
    own = [better(figures[index], figures[index - 1], key=lambda figure: figure.value) for index in range(len(nodes))]
    of_nodes = _of_nodes(nodes, own, kind)
    named = slow_nodes | {part.who for part in of_nodes}
    others = [(node, figure) for node, figure in zip(nodes, figures, strict=True) if not named & {node.name, node.next}]
    middle = statistics.median([figure.value for _, figure in others] or [0.0])
    low = _low([figure for _, figure in others], kind) if len(others) >= FEWEST else []
    return of_nodes + [
        Slow(f"{node.name} to {node.next}", kind, figure.value, middle)
        for (node, figure), is_low in zip(others, low, strict=False)
        if is_low
    ]


def _low(figures: Sequence[Sniffed], kind: Kind) -> list[bool]:
    """Which figures are too low. Of a figure where the smaller value is better, the reciprocal is compared."""
    ranges = [
        (1 / high, 1 / value, 1 / low) if kind.smaller else (low, value, high)
        for low, value, high in map(_range, figures)
    ]
    lower = statistics.median(low for low, _, _ in ranges)
    middle = statistics.median(value for _, value, _ in ranges)
    return [value < (1 - SHARES[kind.name]) * middle and high < lower for _, value, high in ranges]


def _range(figure: Sniffed) -> tuple[float, float, float]:
    low, high = figure.low, figure.high
    return (figure.value if low is None else low, figure.value, figure.value if high is None else high)


def check(sniff: Sniff) -> PreflightCheck:
    """For the records of the run: every figure's range, and the names of slow nodes and links."""
    slow_parts = slow(sniff)
    ranges = ", ".join(
        _range_text(kind, sniff.nodes) for kind in KINDS if all(getattr(node, kind.name) for node in sniff.nodes)
    )
    tested = f"sniff test of {len(sniff.nodes)} nodes: {ranges}"
    if not slow_parts:
        few = f"; {FEWEST} nodes or more are needed to tell which one is slow" if len(sniff.nodes) < FEWEST else ""
        return PreflightCheck(code=CODE, passed=True, message=f"{tested}{few}")
    sentences = [part.sentence for part in slow_parts[:_NAMED]]
    if len(slow_parts) > _NAMED:
        sentences.append(f"and {len(slow_parts) - _NAMED} more")
    message = "; ".join([*sentences, tested])
    return PreflightCheck(code=CODE, passed=True, message=message, advice=_advice(sniff, slow_parts))


def _advice(sniff: Sniff, slow_parts: Sequence[Slow]) -> str:
    who = list(dict.fromkeys(part.who for part in slow_parts))
    names = ",".join(node.name for node in sniff.nodes if node.name in who)
    advice = f"look at {', '.join(who)} (other work, heat, memory, cable)"
    if not names:
        return advice
    return f"{advice}, or leave it out ({f'sbatch --exclude={names}' if sniff.job else 'of the list of hosts'})"


def _range_text(kind: Kind, nodes: Sequence[SniffedNode]) -> str:
    values = [getattr(node, kind.name).value for node in nodes]
    least, most = kind.format(min(values)), kind.format(max(values))
    return f"{kind.label} {least}" + (f" to {most}" if most != least else "")
