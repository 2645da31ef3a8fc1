"""The sentences of a comparison, for its table, its page and its JSON. They are made here alone; no code reads them."""

from __future__ import annotations

from collections.abc import Iterable

from scaleproof.claims.difference_sentences import difference_sentence, test_description
from scaleproof.claims.metrics import METRICS
from scaleproof.compare.comparison_schema import Differing, NotPaired, OutcomeReason, UnpairedReason
from scaleproof.stats.arm_difference import Difference

_SHOWN = 6
"""Differing fields that a sentence lists."""
NOT_PAIRED = {
    NotPaired.NO_GOOD_LAUNCH: "a side has no good launch",
    NotPaired.OTHER_MACHINE: "they ran on different machines",
    NotPaired.ONE_AFTER_THE_OTHER: "they ran one after the other, not interleaved",
    NotPaired.OTHER_SEEDS: "no repetition has the same seed on both sides",
}


def outcome_sentence(reason: OutcomeReason | None, metrics: Iterable[str] = ()) -> str:
    """Why a comparison has its outcome; empty where the numbers show it. `metrics`: those that the reason is about."""
    if reason is OutcomeReason.NOTHING_COMPARED:
        return "nothing was compared, so nothing can be said about a regression; see the unpaired cases"
    if reason is OutcomeReason.OTHER_MACHINES:
        return "A and B ran on different machines, so nothing counts for or against B; --across-machines lets it count"
    if reason is OutcomeReason.NO_NOISE_FLOOR:
        worse = sorted(metrics)
        unjudged = f"{', '.join(worse)} got significantly worse, but no noise floor is known to judge it by"
        return f"{unjudged}; {advice_without_floor(worse)}"
    return ""


def advice_without_floor(metrics: Iterable[str]) -> str:
    """What to do about metrics without a noise floor: calibration measures those of the harness, not those that a suite
    adds."""
    if METRICS.keys() & set(metrics):
        return "type `scaleproof calibrate`"
    none = "calibration measures none for the metrics that a suite adds"
    return f"{none}: compare others (--metric), or judge by the interval"


def not_paired_sentence(reason: NotPaired | None) -> str:
    """Why launches are not compared block by block; empty where they are."""
    return "" if reason is None else NOT_PAIRED[reason]


def row_sentence(result: Difference, p_adjusted: float | None, adjusted_away: bool) -> str:
    """Why a row has its finding."""
    why = difference_sentence(result)
    if not adjusted_away or p_adjusted is None:
        return why
    further = "more launches or fewer metrics (--metric) can tell"
    return f"{why}; but p = {p_adjusted:.2g} once all comparisons are counted: {further}"


def row_test_sentence(result: Difference) -> str:
    """The test behind a row."""
    return test_description(result.test, result.n)


def unpaired_sentence(
    reason: UnpairedReason, other_side: str, *, program: str, arm: str, nearest: str, unequal: tuple[Differing, ...]
) -> str:
    """Why a case is not compared. `nearest`: the nearest case of the other side; `unequal`: fields in which the two
    differ."""
    if reason is UnpairedReason.TRACED:
        return "its launches are traced; their numbers are never compared"
    if reason is UnpairedReason.NO_SUCH_PROGRAM:
        return f"{other_side} has no case of program {program!r}"
    if reason is UnpairedReason.SEVERAL_FIT:
        choose = f"choose one on each side, as in '@arm:{arm}'"
        return f"several cases would fit, such as {nearest} of {other_side}; {choose}"
    fields = ", ".join(f"{field.name} ({field.a} here, {field.b} there)" for field in unequal[:_SHOWN])
    more = f" and {len(unequal) - _SHOWN} more" if len(unequal) > _SHOWN else ""
    name = f"compared only when both sides name it, as in '@{unequal[0].name}:{unequal[0].a}'"
    return f"the nearest case of {other_side}, {nearest}, differs in {fields}{more}; {name}"
