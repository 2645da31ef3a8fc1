"""The checks of the inputs (D1 to D12 of docs/inputs.md), over all launches of a suite and as lines of one launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scaleproof.core.record_schema import InputCheck, Record
from scaleproof.report.numbers import exact, significant

WORST = ("fail", "warn", "pass", "not applicable")
"""Outcomes from the worst to the one without any meaning for the input."""
LOUD = WORST[:2]
MOST = 1
"""Different bounds or values that a row shows; the others are counted."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """One check of a data set over all launches; `outcome` is the worst one."""

    check: str
    name: str
    value: str
    is_number: bool
    bound: str
    outcome: str
    launches: str
    detail: str


@dataclass(frozen=True, slots=True)
class InputTable:
    """All checks of a data set, the counts of their outcomes, and those that warned or failed, as
    `D3 isolated nodes 0.490`."""

    dataset: str
    ended: str
    loud: list[str]
    rows: list[InputRow]


def summary(records: Iterable[Record]) -> list[InputTable]:
    """A table per data set, by name; checks in the order D1 to D12."""
    by_dataset: dict[str, dict[tuple[str, str], list[InputCheck]]] = {}
    for record in records:
        for check in record.inputs:
            by_dataset.setdefault(check.dataset, {}).setdefault((check.check, check.name), []).append(check)
    return [
        _table(dataset, [_row(checks) for checks in by_dataset[dataset].values()]) for dataset in sorted(by_dataset)
    ]


def lines(record: Record) -> list[str]:
    """Lines for `scaleproof show`: counts of the outcomes, then each check that warned or failed."""
    if not record.inputs:
        return []
    datasets = sorted({check.dataset for check in record.inputs})
    head = f"inputs: {' and '.join(datasets)}; {_counts(check.outcome for check in record.inputs)}"
    loud = [check for check in record.inputs if check.outcome in LOUD]
    return [
        head,
        *(
            f"  {check.outcome} {check.check} {check.name}: {_text(check.value)}, bound {check.bound}"
            + _tail(check.detail)
            for check in loud
        ),
    ]


def _tail(detail: str) -> str:
    return f"; {detail}" if detail else ""


def _table(dataset: str, rows: list[InputRow]) -> InputTable:
    rows = sorted(rows, key=lambda row: int(row.check.removeprefix("D")))
    loud = [f"{row.check} {row.name} {row.value}" for row in rows if row.outcome in LOUD]
    return InputTable(dataset, _counts(row.outcome for row in rows), loud, rows)


def _row(checks: Sequence[InputCheck]) -> InputRow:
    outcome = min((check.outcome for check in checks), key=WORST.index)
    detail = next(check.detail for check in checks if check.outcome == outcome)
    bounds = _several([check.bound for check in checks])
    number, launches = isinstance(checks[0].value, float), _counts(check.outcome for check in checks)
    return InputRow(checks[0].check, checks[0].name, _values(checks), number, bounds, outcome, launches, detail)


def _values(checks: Sequence[InputCheck]) -> str:
    """One value, or the smallest and the largest."""
    numbers = [check.value for check in checks if isinstance(check.value, float)]
    if not numbers:
        return _several([_text(check.value) for check in checks])
    formatted = exact if all(number.is_integer() for number in numbers) else significant
    low, high = formatted(min(numbers)), formatted(max(numbers))
    return low if low == high else f"{low} to {high}"


def _several(texts: Sequence[str]) -> str:
    different = list(dict.fromkeys(texts))
    more = f"; and {len(different) - MOST} more" if len(different) > MOST else ""
    return "; ".join(different[:MOST]) + more


def _counts(outcomes: Iterable[str]) -> str:
    counted = Counter(outcomes)
    return ", ".join(f"{counted[outcome]} {outcome}" for outcome in WORST if counted[outcome])


def _text(value: float | str | None) -> str:
    """Counts in full, all other numbers to three digits."""
    if isinstance(value, str):
        return value
    return exact(value) if value is not None and value.is_integer() else significant(value)
