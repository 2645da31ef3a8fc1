"""costs.html: alpha, beta and gamma of every transport, the lines fitted to its messages and all-reduces, and how far
they are off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scaleproof.core.record_schema import evidence_words
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
    """costs.html. SpecError for a file of another form."""
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


def place_words(cost: TransportCost) -> str:
    """The arm and where it ran, in words."""
    parts = [cost.arm, f"fabric {cost.fabric}"]
    parts += [f"{cost.nodes} nodes"] if cost.nodes > 1 else []
    parts += [f"{cost.link_mbit:g} Mbit/s"] if cost.link_mbit else []
    parts += [f"{cost.link_delay_ms:g} ms"] if cost.link_delay_ms else []
    return ", ".join(
        [
            *parts,
            *([evidence_words(cost.evidence, cost.fabric, cost.transport)] if cost.evidence != "measured" else []),
        ]
    )


def _rows(cost: TransportCost) -> list[Row]:
    rows = _line_rows(cost, "one message", cost.transfer) if cost.transfer else []
    for one in cost.all_reduces:
        rows += _line_rows(cost, f"all-reduce, {one.ranks} ranks", one.call)
        rows += _rounds_row(cost, one)
    return rows


def _line_rows(cost: TransportCost, what: str, line: LineCost) -> list[Row]:
    rows = []
    for segment in line.segments:
        alpha, beta = segment.alpha_s, segment.beta_s_per_byte
        rate = Cell(significant(1 / beta.value / 1e9), _inverse(beta)) if beta.value else Cell("–")
        cells = [
            Cell(_whole(what)),
            Cell(_upto(line, segment.upto_nbytes)),
            _parameter(alpha, MICRO),
            _parameter(beta, NANO),
            rate,
            Cell("–"),
        ]
        rows.append(Row(place_words(cost), [*cells, *_fit_cells(line.fit), Cell(str(line.launches))]))
    return rows


def _rounds_row(cost: TransportCost, one: AllReduceCost) -> list[Row]:
    if one.rounds is None:
        return []
    name = f"the same as {one.rounds.algorithm}{', assumed' if one.rounds.assumed else ''}"
    cells = [
        Cell(_whole(name)),
        Cell("any"),
        Cell("of a message"),
        Cell("of a message"),
        Cell("–"),
        _parameter(one.rounds.gamma_s_per_byte, NANO),
    ]
    return [Row(place_words(cost), [*cells, *_fit_cells(one.rounds.fit), Cell(str(one.call.launches))])]


def _fit_cells(fit: Fit) -> list[Cell]:
    return [
        Cell(significant(fit.r_squared, 4)),
        Cell(percent(fit.median_error)),
        Cell(f"{percent(fit.worst_error)} at {nbytes(fit.worst_nbytes)}"),
    ]


def _whole(text: str) -> str:
    """A text that does not break."""
    return text.replace(" ", "\u00a0").replace("-", "\u2011")


def _upto(line: LineCost, upto: int | None) -> str:
    if len(line.segments) == 1:
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
    group, hollow = place_words(cost), cost.evidence != "measured"
    panels = []
    if cost.transfer:
        title = "one message, one way"
        panels.append(
            Panel(title, fits(f"{title} over {group}", _points(cost.transfer.points, None), look, hollow), group)
        )
    for one in cost.all_reduces:
        title = f"all-reduce, {one.ranks} ranks"
        points = _points(one.call.points, one.rounds.points if one.rounds else None)
        panels.append(Panel(title, fits(f"{title} over {group}", points, look, hollow), group))
    return panels


def _points(line: tuple[Point, ...], rounds: tuple[Point, ...] | None) -> list[FitPoint]:
    others = [(one.model_s,) for one in rounds] if rounds else [()] * len(line)
    return [
        FitPoint(one.nbytes, one.measured_s, one.low_s, one.high_s, (one.model_s, *other))
        for one, other in zip(line, others, strict=True)
    ]
