"""The best point of each arm's grid, by the median of a metric over launches (docs/tuning.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metric import Metric
from scaleproof.claims.without_number import words_of
from scaleproof.core.record_schema import Record
from scaleproof.record.store import Store
from scaleproof.record.used_code import is_current
from scaleproof.spec.case import AnyCase
from scaleproof.spec.tuned import TunedCell, TunedPoint, TunedSize, grid_of
from scaleproof.spec.tuning import Cell, Tuning
from scaleproof.stats.intervals import median
from scaleproof.stats.never import worst

DIGITS = 6
"""Of values in the file: the same on every machine, whatever its processor rounds in the last bits."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A point of a grid with its median, and the records of its launches."""

    point: TunedPoint
    score: float
    records: tuple[Record, ...]


def tuned_size(tuning: Tuning, store: Store, metric: Metric) -> TunedSize:
    """What tuned.yaml says of an experiment at a size, from the launches that are there."""
    cells, records = [], list[Record]()
    for cell in tuning.cells:
        tried = [_tried(point.fields, point.case, tuning.form.launches, store, metric) for point in cell.points]
        records += [record for each in tried for record in each.records]
        cells.append(_cell(tuning, cell, tried, metric))
    last = max(records, key=lambda record: record.started_at)
    changed = " (changed)" if last.code.dirty else ""
    of_machine = {record.machine for record in records if of_a_machine(record.case)}
    return TunedSize(
        metric=metric.name,
        launches=tuning.form.launches,
        evidence=" / ".join(sorted({record.evidence_text for record in records})),
        machine=" / ".join(sorted(of_machine)) or None,
        commit=f"{last.code.commit}{changed}" if last.code.commit else None,
        date=last.started_at[:10],
        cells=cells,
    )


def of_a_machine(case: AnyCase) -> bool:
    """Whether a launch of the case depends on the machine: it ran there, or was simulated with what was measured
    there."""
    if not case.plugin("fabric").predicted or case.value("fabric.costs") == "fitted":
        return True
    return case.value("compute.profile") is None and case.value("fabric.costs") is None


def _tried(fields: dict[str, Any], case: AnyCase, launches: int, store: Store, metric: Metric) -> Tried:
    records = _records(case, launches, store)
    found = [Launch(record, store.frame(record)) for record in records]
    assert metric.launch is not None
    numbers = [metric.launch(launch.record, launch.samples) for launch in found]
    words = [
        words_of(metric, launch) if number is None else None for number, launch in zip(numbers, found, strict=True)
    ]
    values: list[float | str | None] = [
        word if number is None else float(f"{number:.{DIGITS}g}") for number, word in zip(numbers, words, strict=True)
    ]
    higher = metric.direction == "higher"
    score = median([worst(higher) if isinstance(value, str) or value is None else value for value in values])
    return Tried(TunedPoint(set=fields, case=case.case_id, values=values), score, tuple(records))


def _records(case: AnyCase, launches: int, store: Store) -> list[Record]:
    """The last good record of each launch, by this code."""
    found: dict[int, Record] = {}
    for record in store.records(case.case_id):
        if record.status == "ok" and record.plan_index < launches and is_current(record.code, case.fabric):
            found[record.plan_index] = record
    return [found[index] for index in sorted(found)]


def _cell(tuning: Tuning, cell: Cell, tried: Sequence[Tried], metric: Metric) -> TunedCell:
    pick = max if metric.direction == "higher" else min
    best = pick(tried, key=lambda each: each.score)  # of equal ones the first
    grid = grid_of(tuning.form, cell.arm)
    edge = [name for field, value in best.point.set.items() for name in _at_edge(field, value, grid[field])]
    return TunedCell(arm=cell.arm, at=cell.at, chosen=best.point.set, edge=edge, points=[each.point for each in tried])


def _at_edge(field: str, value: Any, values: Sequence[Any]) -> list[str]:
    """The field, or those keys of its mapping, for which a better value may lie beyond the grid."""
    if isinstance(value, Mapping):
        inner = {key: [each[key] for each in values if key in each] for key in value}
        return [name for key in value for name in _at_edge(f"{field}.{key}", value[key], inner[key])]
    numbers = [each for each in values if isinstance(each, int | float)]
    return [field] if len(set(numbers)) > 1 and value in (min(numbers), max(numbers)) else []
