"""A prediction as a table on the terminal, as a picture, and as data for machines."""

from __future__ import annotations

import argparse
import sys
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import print_table

if TYPE_CHECKING:
    from scaleproof.claims.claims_file import Label
    from scaleproof.commands.predict_question import PredictionRequest
    from scaleproof.report.figures.prediction import PredictionPicture
    from scaleproof.simulate.nccl.device_calls import ChosenCalls
    from scaleproof.simulate.predicted_scaling import Point, Range, Useful

WIDE = 132
"""Width of a terminal, in characters, from which the table has all columns and intervals beside their values."""
HINTS = {
    "link": "a faster --fabric, a smaller network, or more samples a node (--per-node) would help most",
    "latency": "fewer, larger messages (--bucket-mib) or --collective halving_doubling would help most",
    "transport": "a --transport that copies less would help most",
    "server": "more --servers, or --strategy sync_overlap, would help most",
    "compute": "faster nodes, or more of them, would help most",
    "stragglers": "ranks that vary less would help most",
}


def points_of(request: PredictionRequest) -> list[Point]:
    """The prediction for each number of nodes; the terminal shows the progress."""
    from rich.console import Console

    points = []
    with Console(stderr=True).status("") as status:
        for nodes in request.nodes:
            status.update(f"predicting {nodes} node{'s' if nodes > 1 else ''}")
            points.append(request.question.point(nodes))
    return points


def print_prediction(
    options: argparse.Namespace, request: PredictionRequest, points: list[Point], useful: Useful
) -> None:
    """The table for a terminal, the verdict, and what both rest on."""
    from scaleproof.simulate.halved_resources import RESOURCES

    print(f"{size(request)}; {scaling(request)}")
    print(f"{computing(request)}; {request.fabric}; {_exchange(options, request)}")
    _print_points(points)
    for line in chosen(points[-1]):
        print(line)
    print(_verdict(points, useful))
    last = points[-1]
    print("binds: halving the time that this resource takes shortens the step most, by the share behind it")
    print(f"at {last.nodes} node{'s' if last.nodes > 1 else ''} it is {RESOURCES[last.binds]}; {HINTS[last.binds]}")
    if (late := last.gains.get("stragglers")) is not None:
        print(f"stragglers {request.stragglers}: half of what they add would shorten the step by {late:.0%}")
    _print_evidence(options, request)
    _print_remarks(request, points)


def _print_points(points: list[Point]) -> None:
    """One row per number of nodes; a narrow terminal gets no speed-up, since the efficiency implies it."""
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
    is_narrow = sys.stdout.isatty() and get_terminal_size().columns < WIDE
    table = [columns, *(row(point, "\n" if is_narrow else " ") for point in points)]
    if is_narrow:
        table = [[*row[:4], *row[5:]] for row in table]
    header, *rows = table
    print_table(header, rows)


def _print_evidence(options: argparse.Namespace, request: PredictionRequest) -> None:
    from scaleproof.simulate.predicted_scaling import STEPS

    costs, label = request.question.costs, _label(options, request)
    print(f"evidence: simulated{f' ({label.text})' if label else ''}; costs of messages {costs.source}")
    for reason in label.why if label else ():
        print(f"  {label.text if label else ''}: {reason}")
    for assumption in costs.assumed:
        print(f"  assumed: {assumption}")
    by_peak = options.efficiency or (options.node and not options.profile)
    print(
        "  [in brackets]: over the uncertainty of costs and profile"
        + (" and all of the efficiency" if by_peak else "")
        + (f", and draws of {STEPS} steps each from stragglers {request.stragglers}" if request.stragglers else "")
    )


def _print_remarks(request: PredictionRequest, points: list[Point]) -> None:
    """Requested nodes that were left out, unused parameters, and memory."""
    if request.left_out:
        counts = ", ".join(map(str, request.left_out))
        print(f"  left out: {counts} nodes do not divide a minibatch of {request.question.minibatch}")
    if request.unused:
        names = ", ".join([*request.unused[:3], *(["..."] if len(request.unused) > 3 else [])])
        print(f"  not exchanged: {len(request.unused)} parameters that the forward pass does not use ({names})")
    if remark := _memory_remark(request.question.network, points):
        print(f"  {remark}")


def _label(options: argparse.Namespace, request: PredictionRequest) -> Label | None:
    """What suite validation says about such predictions on this machine, for the largest number of nodes; None if
    nothing is exchanged."""
    from scaleproof.claims.evidence_labels import Findings
    from scaleproof.record.digest import machine_id
    from scaleproof.record.used_code import code_of

    costs = "fitted" if request.question.costs.source.startswith("fitted") else "stated"
    case = request.question.case(request.nodes[-1])
    # The case is copied, not parsed again: a user's own module is in no registry.
    fabric = case.fabric_options.model_copy(update={"costs": costs})
    case = case.model_copy(update={"fabric_options": fabric})
    return Findings.read(options.results).of(case, "simulated", machine_id(), code_of(case))


def computing(request: PredictionRequest) -> str:
    """How fast a node computes, or a node type and how fast a rank of it computes."""
    return f"{request.node}\na rank: {request.compute}" if request.node else f"a node: {request.compute}"


def chosen(point: Point) -> list[str]:
    """How NCCL makes the calls of a step, where its model predicts them."""
    from scaleproof.spec.units import format_bytes

    ways: dict[tuple[str, str, str], list[ChosenCalls]] = {}
    for call in point.calls:
        ways.setdefault((call.operation, call.algorithm, call.protocol), []).append(call)
    lines = []
    for (operation, algorithm, protocol), calls in ways.items():
        sizes = [format_bytes(call.nbytes) for call in (calls[-1], calls[0])]
        times = [f"{call.seconds * 1e3:.3g}" for call in (calls[-1], calls[0])]
        size, took = (" to ".join(dict.fromkeys(ends)) for ends in (sizes, times))
        count = sum(call.count for call in calls)
        lines.append(
            f"NCCL at {point.nodes} node{'s' if point.nodes > 1 else ''}: {count} {operation} of {size} by {algorithm} "
            f"with {protocol}, {took} ms each"
        )
    return lines


def size(request: PredictionRequest) -> str:
    """The network in words."""
    from scaleproof.spec.units import format_bytes

    network = request.question.network
    flop = network.forward_flop
    amount = f"{flop / 1e9:.3g} G" if flop >= 1e8 else f"{flop / 1e6:.3g} M"
    return (
        f"{network.name}: {network.parameters / 1e6:.4g} M parameters, {format_bytes(4 * network.parameters)} of "
        f"gradients, {amount}FLOP forward a sample"
    )


def scaling(request: PredictionRequest) -> str:
    """The samples in words."""
    question = request.question
    return (
        f"minibatch {question.minibatch} over all nodes"
        if question.minibatch is not None
        else f"{question.per_node} samples a node"
    )


def _exchange(options: argparse.Namespace, request: PredictionRequest) -> str:
    case = request.question.case(request.nodes[-1])
    how = f"{case.strategy} over {case.transport}" + (
        f", {case.collective}" if not case.strategy.endswith("server") else ""
    )
    servers = (
        f", {case.value('strategy.servers') or 'as many as nodes'} servers"
        if case.plugin("strategy").has_servers
        else f", buckets of {options.bucket_mib:g} MiB"
    )
    return how + servers


def row(point: Point, separator: str) -> list[str]:
    """The cells of a number of nodes. `separator` stands between a value and its interval."""
    efficiency = point.efficiency
    step, exposed = (_with_interval(time.over(1e-3), separator) for time in (point.step_s, point.exposed_s))
    comma = ", " if separator == " " else ","
    speedup = _with_interval(point.speedup, separator)
    share = f"{efficiency.value:.0%}{separator}[{efficiency.low:.0%}{comma}{efficiency.high:.0%}]"
    if point.nodes == 1:
        speedup, share = "1", "100%"
        exposed = "–" if point.ranks == 1 else exposed
    binds = f"{point.binds} {point.gains[point.binds]:.0%}"
    throughput = _with_interval(point.throughput, separator)
    return [str(point.nodes), str(point.batch), step, throughput, speedup, share, exposed, binds]


def _with_interval(estimate: Range, separator: str) -> str:
    """Digits are not grouped, as a terminal's fonts lack the narrow space."""
    from scaleproof.report.numbers import NARROW, bracket, significant

    interval = bracket(estimate.low, estimate.high)
    interval = interval if separator == " " else interval.replace(", ", ",")
    return f"{significant(estimate.value)}{separator}{interval}".replace(NARROW, "")


def _verdict(points: list[Point], useful: Useful) -> str:
    """Up to how many nodes the efficiency suffices."""
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
        f"; of the requested numbers, {best.nodes} nodes are the fastest" if best.nodes < points[-1].nodes else ""
    )


def _memory_remark(network: Any, points: list[Point]) -> str:
    """A warning when the samples of a node need more memory than many nodes have; the prediction ignores memory."""
    from math import prod

    from scaleproof.spec.units import format_bytes

    values = sum(prod(layer.output_shape) for layer in network.layers)
    ranks = points[0].ranks // points[0].nodes
    batch, where = points[0].batch // ranks, "a rank" if ranks > 1 else "a node"
    needed = 4 * (3 * network.parameters + 2 * values * batch)
    if needed <= 16 * 2**30:
        return ""
    return f"memory is not checked: {batch} samples on {where} need about {format_bytes(needed)}"


def picture(
    options: argparse.Namespace, request: PredictionRequest, points: list[Point], useful: Useful
) -> PredictionPicture:
    """The figure: throughput and efficiency by number of nodes."""
    from scaleproof.report.figures.prediction import Bounded, NodesPoint, PredictionPicture

    def bounded(value: Range) -> Bounded:
        return Bounded(value.value, value.low, value.high)

    shares = [point.exposed_s.value / point.step_s.value for point in points]
    drawn = [
        NodesPoint(point.nodes, bounded(point.throughput), bounded(point.efficiency), share, point.binds)
        for point, share in zip(points, shares, strict=True)
    ]
    subtitle = (
        f"{computing(request)}\n{request.fabric}; {_exchange(options, request)}\ncosts of messages "
        f"{request.question.costs.source}"
    )
    title = f"{request.question.network.name}, {scaling(request)}: simulated"
    return PredictionPicture(
        title, subtitle, drawn, useful.least, Bounded(useful.value, useful.low, useful.high), bool(useful.at_end)
    )


def machine_form(
    options: argparse.Namespace, request: PredictionRequest, points: list[Point], useful: Useful
) -> dict[str, Any]:
    """The prediction as plain data for JSON."""
    from dataclasses import asdict

    question, label = request.question, _label(options, request)
    rows = [{**asdict(point), "efficiency": asdict(point.efficiency), "binds": point.binds} for point in points]
    return {
        "evidence": "simulated",
        "label": label and label.model_dump(),
        "workload": question.network.name,
        "parameters": question.network.parameters,
        "forward_flop": question.network.forward_flop,
        "minibatch": question.minibatch,
        "per_node": question.per_node,
        "node": request.node or None,
        "ranks_per_node": question.ranks_per_node,
        "compute": request.compute,
        "stragglers": request.stragglers or None,
        "fabric": request.fabric,
        "exchange": _exchange(options, request),
        "costs": question.costs.source,
        "assumed": list(question.costs.assumed),
        "points": rows,
        "useful": asdict(useful),
        "left_out": request.left_out,
        "unused_parameters": request.unused,
    }
