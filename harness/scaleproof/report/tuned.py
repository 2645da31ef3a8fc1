"""The section of a suite's page on tuned values: what was tried for each arm, and what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaleproof.report.data import SuiteData
from scaleproof.report.sections import Cell, Row, Section, Table, section
from scaleproof.spec.tuned import TunedCell, TunedSize, read_tuned

HOW = (
    "Every arm was run at as many points of its grid, with as many launches of each, on seeds that no verdict uses; "
    "the point with the best median was chosen. The CSV has every value that was tried."
)
CSV_COLUMNS = ("experiment", "size", "arm", "at", "point", "metric", "launch", "value", "chosen")


def tuned_sections(data: SuiteData) -> list[Section]:
    """One section; none for a suite that tunes nothing."""
    file = read_tuned(data.suite.folder)
    rows, csv_rows, metrics = list[Row](), list[tuple[object, ...]](), list[str]()
    for name, sizes in file.experiments.items() if file else ():
        experiment = data.suite.experiments.get(name)
        for size, tuned in sizes.items() if experiment is not None and experiment.tune is not None else ():
            metrics.append(tuned.metric)
            rows += [Row(_title(name, size, tuned), _cells(cell, tuned)) for cell in tuned.cells]
            csv_rows += [row for cell in tuned.cells for row in _csv_rows(name, size, cell, tuned)]
    if not rows:
        return []
    caption = "Tuned values by arm; a value at the edge of its grid may have a better one beyond it."
    columns = ["arm", "at", "chosen", "points", "launches of each", "at the edge"]
    table = Table(caption, columns, rows)
    shown = list(dict.fromkeys(metrics))
    return [section("tuned", "Tuned values", HOW, shown, [], [], CSV_COLUMNS, csv_rows, [], [table])]


def _title(name: str, size: str, tuned: TunedSize) -> str:
    code = f", commit {tuned.commit[:12]}" if tuned.commit else ""
    machine = f", machine {tuned.machine}" if tuned.machine else ""
    return f"{name}: by {tuned.metric}, size {size}, {tuned.evidence}{machine}{code}, {tuned.date}"


def _cells(cell: TunedCell, tuned: TunedSize) -> list[Cell]:
    counts = (Cell(str(count)) for count in (len(cell.points), tuned.launches))
    return [
        Cell(cell.arm),
        Cell(_text(cell.at)),
        Cell(_text(cell.chosen)),
        *counts,
        Cell(", ".join(cell.edge) or "none"),
    ]


def _csv_rows(name: str, size: str, cell: TunedCell, tuned: TunedSize) -> list[tuple[object, ...]]:
    return [
        (name, size, cell.arm, _text(cell.at), _text(point.set), tuned.metric, launch, value, point.set == cell.chosen)
        for point in cell.points
        for launch, value in enumerate(point.values)
    ]


def _text(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items()) or "–"
