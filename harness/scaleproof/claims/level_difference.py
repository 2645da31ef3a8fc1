"""The difference between two levels of evidence, over every case that both have. Two cases count as the same when they
differ only in the fields of their level (LEVEL_FIELDS)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.notes import Note, NoteCode, note
from scaleproof.spec.case import AnyCase
from scaleproof.stats import prediction_intervals as predictions
from scaleproof.stats.intervals import Interval, Method, median, median_interval

LEVEL_FIELDS = (
    "suite",
    "experiment",
    "arm",
    "fabric",
    "nodes",
    "interface",
    "fabric.guest",
    "compute",
    "dilation",
    "shrink",
    "steps",
    "warmup",
    "fabric.costs",
)
"""Fields of a case that say at which level and how it was run, not what was measured."""
Values = Sequence[tuple[Launch, float]]


@dataclass(frozen=True, slots=True)
class CaseDifference:
    """One case at two levels. `share`: the median at one level over the median at the other, minus 1; in `points`, of
    what is a share itself, minus the median at the other."""

    title: str
    share: float
    points: bool = False


def level_independent_key(case: AnyCase) -> str:
    """A key that is equal for the same case at different levels of evidence."""
    values = case.flat()
    return json.dumps({field: value for field, value in values.items() if field not in LEVEL_FIELDS}, sort_keys=True)


def case_differences(above: Values, below: Values, points: bool = False) -> list[CaseDifference]:
    """The difference of every case that both sides have."""
    upper, lower = _by_case(above), _by_case(below)
    differences = []
    for key in upper.keys() & lower.keys():
        case = upper[key][0][0].record.case
        title = ", ".join(str(part) for part in (case.transport, case.value("workload"), f"{case.ranks} ranks") if part)
        ours, theirs = _central_value(upper[key]), _central_value(lower[key])
        differences.append(CaseDifference(title, ours - theirs if points else ours / theirs - 1, points))
    return sorted(differences, key=lambda case: (case.title, case.share))


def _by_case(side: Values) -> dict[str, list[tuple[Launch, float]]]:
    by_case: dict[str, list[tuple[Launch, float]]] = {}
    for launch, value in side:
        by_case.setdefault(level_independent_key(launch.record.case), []).append((launch, value))
    return by_case


def _central_value(values: Values) -> float:
    """The median over launches; of predictions the prediction itself, not the median of its draws."""
    if values[0][0].record.evidence == "simulated":
        return predictions.central(
            predictions.by_repetition([(launch.record.plan_index, value) for launch, value in values])
        )
    return median([value for _, value in values])


def summary(cases: Sequence[CaseDifference], pick: Callable[[Sequence[float]], float]) -> tuple[float, Interval | None]:
    """The median of all |shares| with its order-statistic interval over cases; another `pick` of them without an
    interval, since the largest of noisy medians is no more certain than they are."""
    shares = [abs(case.share) for case in cases]
    value = pick(shares)
    interval = median_interval(shares) if pick is median else None
    return value, interval and replace(interval, method=Method.ORDER_STATISTICS_OF_CASES)


def largest(cases: Sequence[CaseDifference]) -> Note:
    """A note with the case that has the largest difference."""
    worst = max(cases, key=lambda case: abs(case.share))
    if worst.points:
        return note(NoteCode.FURTHEST_IN_POINTS, points=100 * worst.share, case=worst.title)
    return note(NoteCode.FURTHEST_APART, share=worst.share, case=worst.title)
