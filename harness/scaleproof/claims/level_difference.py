"""How far one level of evidence is from another: over every case that both have, the same but for what says how it was
run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.notes import Note, NoteCode, note
from scaleproof.spec.case import AnyCase
from scaleproof.stats import prediction_intervals as predictions
from scaleproof.stats.intervals import Interval, Method, median, median_interval

OF_A_LEVEL = (
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
"""Fields of a case that say how it was run, not what was asked: cases that differ in these alone are one case at two
levels."""
Values = Sequence[tuple[Launch, float]]


@dataclass(frozen=True, slots=True)
class Apart:
    """One case at two levels: the median of the one over that of the other, less 1."""

    words: str
    share: float


def asked(case: AnyCase) -> str:
    """What a case asks for, at whatever level: equal for cases that can be compared."""
    values = case.flat()
    return json.dumps({field: value for field, value in values.items() if field not in OF_A_LEVEL}, sort_keys=True)


def apart(above: Values, below: Values) -> list[Apart]:
    """Every case that both sides have."""
    upper, lower = _by_case(above), _by_case(below)
    found = []
    for key in upper.keys() & lower.keys():
        case = upper[key][0][0].record.case
        words = ", ".join(str(part) for part in (case.transport, case.value("workload"), f"{case.ranks} ranks") if part)
        found.append(Apart(words, _middle(upper[key]) / _middle(lower[key]) - 1))
    return sorted(found, key=lambda case: (case.words, case.share))


def _by_case(side: Values) -> dict[str, list[tuple[Launch, float]]]:
    found: dict[str, list[tuple[Launch, float]]] = {}
    for launch, value in side:
        found.setdefault(asked(launch.record.case), []).append((launch, value))
    return found


def _middle(found: Values) -> float:
    """The median of launches; the prediction itself, not its draws."""
    if found[0][0].record.evidence == "simulated":
        return predictions.central(
            predictions.by_repetition([(launch.record.plan_index, value) for launch, value in found])
        )
    return median([value for _, value in found])


def summary(cases: Sequence[Apart], pick: Callable[[Sequence[float]], float]) -> tuple[float, Interval | None]:
    """The middle of all |shares| with its order-statistic interval over cases, or another pick of them, without one:
    the largest of noisy medians is no more certain than they are."""
    shares = [abs(case.share) for case in cases]
    value = pick(shares)
    interval = median_interval(shares) if pick is median else None
    return value, interval and replace(interval, method=Method.ORDER_STATISTICS_OF_CASES)


def largest(cases: Sequence[Apart]) -> Note:
    """The case that is furthest apart."""
    worst = max(cases, key=lambda case: abs(case.share))
    return note(NoteCode.FURTHEST_APART, share=worst.share, case=worst.words)
