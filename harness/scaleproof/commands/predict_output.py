"""A prediction as a table on the terminal, as a picture, and as data for machines."""

from __future__ import annotations

import argparse
import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import print_table

if TYPE_CHECKING:
    from scaleproof.claims.claims_file import Label
    from scaleproof.commands.predict_question import Asked
    from scaleproof.report.figures.prediction import PredictionPicture
    from scaleproof.simulate.predicted_scaling import Point, Range, Useful

WIDE = 132
"""Columns of a terminal in which a value and its interval stand beside each other, and all columns."""
HINTS = {
    "link": "a faster --fabric, a smaller network, or more samples a node (--per-node) would help most",
    "latency": "fewer, larger messages (--bucket-mib) or --collective halving_doubling would help most",
    "transport": "a --transport that copies less would help most",
    "server": "more --servers, or --strategy sync_overlap, would help most",
    "compute": "faster nodes, or more of them, would help most",
}


def print_prediction(given: argparse.Namespace, found: Asked, points: list[Point], useful: Useful) -> None:
    """The table for a terminal, the verdict, and what it rests on."""
    question, network = found.question, found.question.network
    print(f"{_size(found)}; {_scaling(found)}")
    print(f"a node: {found.compute}; {found.fabric}; {_exchange(given, found)}")
    columns = [
        "nodes",
        "samples a node",
        "step (ms) ↓",
        "samples/s ↑",
        "speed-up ↑",
        "efficiency ↑",
        "exposed (ms) ↓",
        "binds",
    ]
    narrow = sys.stdout.isatty() and get_terminal_size().columns < WIDE
    rows = [columns, *(_row(point, "\n" if narrow else " ") for point in points)]
    shown, *rows = [[*row[:4], *row[5:]] for row in rows] if narrow else rows  # efficiency says the same as speed-up
    print_table(shown, rows)
    print(_verdict(points, useful))
    last = points[-1]
    print(
        "binds: halving the time that this resource takes shortens the step most, by the share behind it; at "
        f"{last.nodes} nodes {HINTS[last.binds]}"
    )
    label = _label(given, found)
    print(f"evidence: simulated{f' ({label.words})' if label else ''}; costs of messages {question.costs.source}")
    for line in label.why if label else ():
        print(f"  {label.words if label else ''}: {line}")
    for words in question.costs.assumed:
        print(f"  assumed: {words}")
    print(
        "  [in brackets]: over the uncertainty of costs and profile"
        + (" and all of --efficiency" if given.efficiency else "")
    )
    if found.left_out:
        print(
            f"  left out: {', '.join(map(str, found.left_out))} nodes do not divide a minibatch of {question.minibatch}"
        )
    if found.unused:
        named = ", ".join([*found.unused[:3], *(["..."] if len(found.unused) > 3 else [])])
        print(f"  not exchanged: {len(found.unused)} parameters that the forward pass does not use ({named})")
    if largest := _much_memory(network, points):
        print(f"  {largest}")


def _label(given: argparse.Namespace, found: Asked) -> Label | None:
    """What suite validation says of such predictions on this machine, at the largest number of nodes; None where
    nothing is exchanged."""
    from scaleproof.claims.evidence_labels import Findings
    from scaleproof.record.digest import code_digest, machine_id

    costs = "fitted" if found.question.costs.source.startswith("fitted") else "stated"
    case = found.question.case(found.nodes[-1])
    # not parsed anew: a module of the user's own is in no registry
    fabric = case.fabric_options.model_copy(update={"costs": costs})
    case = case.model_copy(update={"fabric_options": fabric})
    return Findings.read(given.results).of(case, "simulated", machine_id(), code_digest(case.fabric))


def _size(found: Asked) -> str:
    from scaleproof.spec.units import format_bytes

    network = found.question.network
    flop = network.forward_flop
    amount = f"{flop / 1e9:.3g} G" if flop >= 1e8 else f"{flop / 1e6:.3g} M"
    return (
        f"{network.name}: {network.parameters / 1e6:.4g} M parameters, {format_bytes(4 * network.parameters)} of "
        f"gradients, {amount}FLOP forward a sample"
    )


def _scaling(found: Asked) -> str:
    question = found.question
    return (
        f"minibatch {question.minibatch} over all nodes"
        if question.minibatch is not None
        else f"{question.per_node} samples a node"
    )


def _exchange(given: argparse.Namespace, found: Asked) -> str:
    case = found.question.case(found.nodes[-1])
    how = f"{case.strategy} over {case.transport}" + (
        f", {case.collective}" if not case.strategy.endswith("server") else ""
    )
    servers = (
        f", {case.value('strategy.servers') or 'as many as nodes'} servers"
        if case.plugin("strategy").has_servers
        else f", buckets of {given.bucket_mib:g} MiB"
    )
    return how + servers


def _row(point: Point, apart: str) -> list[str]:
    """`apart`: between a value and its interval."""
    efficiency = point.efficiency
    step, exposed = (_ranged(time.over(1e-3), apart) for time in (point.step_s, point.exposed_s))
    comma = ", " if apart == " " else ","
    speedup, share = (
        _ranged(point.speedup, apart),
        f"{efficiency.value:.0%}{apart}[{efficiency.low:.0%}{comma}{efficiency.high:.0%}]",
    )
    if point.nodes == 1:
        speedup, share, exposed = "1", "100%", "–"
    binds = f"{point.binds} {point.gains[point.binds]:.0%}"
    return [str(point.nodes), str(point.batch), step, _ranged(point.throughput, apart), speedup, share, exposed, binds]


def _ranged(found: Range, apart: str) -> str:
    """For a terminal: digits in a row."""
    from scaleproof.report.numbers import NARROW, bracket, significant

    interval = bracket(found.low, found.high)
    return f"{significant(found.value)}{apart}{interval.replace(', ', ',') if apart != ' ' else interval}".replace(
        NARROW, ""
    )


def _verdict(points: list[Point], useful: Useful) -> str:
    """The sentence that the reader came for."""
    least = f"{useful.least:.0%} efficiency"
    if not useful.value:
        return f"worth it: not even {points[0].nodes} nodes reach {least}"
    nodes = f"{useful.value} node{'s' if useful.value > 1 else ''}"
    span = (
        f" [{useful.low or 'none'}, {useful.high}]" if (useful.low, useful.high) != (useful.value, useful.value) else ""
    )
    text = f"worth it up to {nodes}{span}, for at least {least}" + (f"; {useful.at_end}" if useful.at_end else "")
    best = max(points, key=lambda point: point.throughput.value)
    return text + (
        f"; of the numbers asked for {best.nodes} nodes are the fastest" if best.nodes < points[-1].nodes else ""
    )


def _much_memory(network: Any, points: list[Point]) -> str:
    """A word on what no time says: a node that could not hold its samples."""
    from math import prod

    from scaleproof.spec.units import format_bytes

    values = sum(prod(layer.output_shape) for layer in network.layers)
    needed = 4 * (3 * network.parameters + 2 * values * points[0].batch)
    return (
        f"memory is not looked at: {points[0].batch} samples on a node need about {format_bytes(needed)}"
        if needed > 16 * 2**30
        else ""
    )


def picture(given: argparse.Namespace, found: Asked, points: list[Point], useful: Useful) -> PredictionPicture:
    """The figure: throughput and efficiency by number of nodes."""
    from scaleproof.report.figures.prediction import NodesPoint, PredictionPicture

    def bounded(value: Range) -> tuple[float, float, float]:
        return value.value, value.low, value.high

    shares = [point.exposed_s.value / point.step_s.value for point in points]
    drawn = [
        NodesPoint(point.nodes, bounded(point.throughput), bounded(point.efficiency), share, point.binds)
        for point, share in zip(points, shares, strict=True)
    ]
    subtitle = (
        f"a node: {found.compute}\n{found.fabric}; {_exchange(given, found)}\ncosts of messages "
        f"{found.question.costs.source}"
    )
    title = f"{found.question.network.name}, {_scaling(found)}: simulated"
    return PredictionPicture(
        title, subtitle, drawn, useful.least, (useful.value, useful.low, useful.high), bool(useful.at_end)
    )


def machine_form(given: argparse.Namespace, found: Asked, points: list[Point], useful: Useful) -> dict[str, Any]:
    """All of it as plain data for JSON."""
    from dataclasses import asdict

    question, label = found.question, _label(given, found)
    rows = [{**asdict(point), "efficiency": asdict(point.efficiency), "binds": point.binds} for point in points]
    return {
        "evidence": "simulated",
        "label": label and label.model_dump(),
        "workload": question.network.name,
        "parameters": question.network.parameters,
        "forward_flop": question.network.forward_flop,
        "minibatch": question.minibatch,
        "per_node": question.per_node,
        "compute": found.compute,
        "fabric": found.fabric,
        "exchange": _exchange(given, found),
        "costs": question.costs.source,
        "assumed": list(question.costs.assumed),
        "points": rows,
        "useful": asdict(useful),
        "left_out": found.left_out,
        "unused_parameters": found.unused,
    }
