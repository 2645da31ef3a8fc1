"""costs.html: alpha, beta, gamma and the time of a call of every transport, the lines fitted to its messages and
all-reduces, and their errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scaleproof.core.evidence_marks import evidence_text
from scaleproof.report.figures.fits import FitPoint, fits
from scaleproof.report.figures.style import Look, looks
from scaleproof.report.numbers import NARROW, bracket, nbytes, percent, significant
from scaleproof.report.pages import Pages
from scaleproof.report.sections import Cell, Panel, Row, Table
from scaleproof.simulate.cost_file import (
    AllReduceCost,
    Costs,
    Fit,
    LineCost,
    Parameter,
    Point,
    TransportCost,
    read_costs,
)

MICRO, NANO = 1e6, 1e9
COLUMNS = [
    "call",
    "bytes",
    "alpha (µs)",
    "beta (ns/B)",
    "1/beta (GB/s)",
    "call (µs)",
    "gamma (ns/B)",
    "R²",
    "median error",
    "largest error",
    "launches",
]


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine's part of the page."""

    id: str
    costs: Costs | None
    table: Table | None
    panels: list[Panel]


def write(pages: Pages, results: Path, machines: Iterable[str]) -> None:
    """Write costs.html; SpecError for a cost file of another form."""
    pages.write(
        "costs.html", "costs.html.j2", machines=[_machine(name, read_costs(results, name)) for name in machines]
    )


def _machine(name: str, costs: Costs | None) -> Machine:
    if costs is None:
        return Machine(name, None, None, [])
    drawn = looks({cost.arm: cost.transport for cost in costs.transports})
    ordered = sorted(costs.transports, key=lambda cost: (cost.arm, cost.evidence))
    rows = [row for cost in ordered for row in _rows(cost)]
    panels = [panel for cost in ordered for panel in _panels(cost, drawn[cost.arm])]
    return Machine(
        name,
        costs,
        Table(
            "Fitted to medians over launches; in brackets 95 % intervals over launches.", COLUMNS, rows, stacked=True
        ),
        panels,
    )


def series_title(cost: TransportCost) -> str:
    """The arm, its fabric and its links."""
    parts = [cost.arm, f"fabric {cost.fabric}"]
    parts += ["plain buffers"] if cost.buffers == "plain" else []
    parts += [f"{cost.nodes} nodes"] if cost.nodes > 1 else []
    parts += [f"{cost.link_mbit:g} Mbit/s"] if cost.link_mbit else []
    parts += [f"{cost.link_delay_ms:g} ms"] if cost.link_delay_ms else []
    return ", ".join(
        [
            *parts,
            *([evidence_text(cost.evidence, cost.fabric, cost.transport)] if cost.evidence != "measured" else []),
        ]
    )


def _rows(cost: TransportCost) -> list[Row]:
    rows = _line_rows(cost, "one message", cost.transfer) if cost.transfer else []
    for all_reduce in cost.all_reduces:
        rows += _line_rows(cost, f"all-reduce, {all_reduce.ranks} ranks", all_reduce.call)
        rows += _rounds_rows(cost, all_reduce)
    return rows


def _line_rows(cost: TransportCost, call: str, line: LineCost) -> list[Row]:
    rows = []
    for segment in line.segments:
        alpha, beta = segment.alpha_s, segment.beta_s_per_byte
        rate = Cell(significant(1 / beta.value / 1e9), _inverse(beta)) if beta.value else Cell("–")
        cells = [
            Cell(_unbreakable(call)),
            Cell(_upto(len(line.segments), segment.upto_nbytes)),
            _parameter(alpha, MICRO),
            _parameter(beta, NANO),
            rate,
            Cell("–"),
            Cell("–"),
        ]
        rows.append(Row(series_title(cost), [*cells, *_fit_cells(line.fit), Cell(str(line.launches))]))
    return rows


def _rounds_rows(cost: TransportCost, all_reduce: AllReduceCost) -> list[Row]:
    if all_reduce.rounds is None:
        return []
    name = f"the same as {all_reduce.rounds.algorithm}{', assumed' if all_reduce.rounds.assumed else ''}"
    rows = []
    for gamma in all_reduce.rounds.gammas:
        cells = [
            Cell(_unbreakable(name)),
            Cell(nbytes(gamma.nbytes)),
            Cell("of a message"),
            Cell("of a message"),
            Cell("–"),
            _parameter(all_reduce.rounds.call_s, MICRO),
            _parameter(gamma.s_per_byte, NANO),
        ]
        launches = Cell(str(all_reduce.call.launches))
        rows.append(Row(series_title(cost), [*cells, *_fit_cells(all_reduce.rounds.fit), launches]))
    return rows


def _fit_cells(fit: Fit) -> list[Cell]:
    return [
        Cell(significant(fit.r_squared, 4)),
        Cell(percent(fit.median_error)),
        Cell(f"{percent(fit.worst_error)} at {nbytes(fit.worst_nbytes)}"),
    ]


def _unbreakable(text: str) -> str:
    """The text with spaces and hyphens at which lines do not break."""
    return text.replace(" ", "\u00a0").replace("-", "\u2011")


def _upto(pieces: int, upto: int | None) -> str:
    if pieces == 1:
        return "any"
    return "larger" if upto is None else f"up to{NARROW}{nbytes(upto)}"


def _parameter(parameter: Parameter, scale: float) -> Cell:
    return Cell(
        significant(parameter.value * scale),
        ""
        if parameter.low is None or parameter.high is None
        else bracket(parameter.low * scale, parameter.high * scale),
    )


def _inverse(beta: Parameter) -> str:
    return bracket(1 / beta.high / 1e9, 1 / beta.low / 1e9) if beta.low and beta.high else ""


def _panels(cost: TransportCost, look: Look) -> list[Panel]:
    group, hollow = series_title(cost), cost.evidence != "measured"
    panels = []
    if cost.transfer:
        title = "one message, one way"
        panels.append(
            Panel(title, fits(f"{title} over {group}", _points(cost.transfer.points, None), look, hollow), group)
        )
    for all_reduce in cost.all_reduces:
        title = f"all-reduce, {all_reduce.ranks} ranks"
        points = _points(all_reduce.call.points, all_reduce.rounds.points if all_reduce.rounds else None)
        panels.append(Panel(title, fits(f"{title} over {group}", points, look, hollow), group))
    return panels


def _points(line: tuple[Point, ...], rounds: tuple[Point, ...] | None) -> list[FitPoint]:
    rounds_values = [(point.model_s,) for point in rounds] if rounds else [()] * len(line)
    return [
        FitPoint(point.nbytes, point.measured_s, point.low_s, point.high_s, (point.model_s, *rounds_value))
        for point, rounds_value in zip(line, rounds_values, strict=True)
    ]
