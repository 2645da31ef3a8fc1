"""Compares two sides: every metric of every pair of cases, with adjusted p-values, and what follows for continuous
integration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import false_discovery_control

from scaleproof.calibrate.attainable import Attainable, Attained, NoBound
from scaleproof.claims.metrics import Direction, Metric
from scaleproof.compare import comparison_sentences
from scaleproof.compare.case_groups import Group, groups, title
from scaleproof.compare.case_pairs import Pair, pair_cases, pair_launches
from scaleproof.compare.comparison_outcome import decide, too_many_rows
from scaleproof.compare.comparison_schema import Change, Comparison, PairOut, Row, SideOut
from scaleproof.compare.comparison_warnings import WarningSources, warnings
from scaleproof.compare.environment_differences import differences
from scaleproof.compare.launch_values import Catalogue, launch_values, ordered
from scaleproof.compare.pair_floors import Floors
from scaleproof.compare.side_selection import Side
from scaleproof.core.campaign import Campaign
from scaleproof.core.record_schema import Record
from scaleproof.spec.errors import SpecError
from scaleproof.stats.arm_difference import Difference, Finding
from scaleproof.stats.campaigns import shift_alone, with_campaigns
from scaleproof.stats.compare_arms import compare as difference
from scaleproof.stats.intervals import CONFIDENCE, median

CHANGES: tuple[Change, ...] = ("worse", "better", "changed", "no difference", "inconclusive", "different machines")
_FLOAT_DIGITS = 12
"""Numbers are rounded to so many significant digits, so that libraries that round their last bits differently give
equal bytes."""


@dataclass(frozen=True, slots=True)
class Question:
    """Options of a comparison: metrics (empty: all), whether a finding between two machines counts, and the folder of
    suites (None: the default)."""

    metrics: tuple[str, ...] = ()
    across_machines: bool = False
    confidence: float = CONFIDENCE
    suites: Path | None = None


@dataclass(frozen=True, slots=True)
class _Measured:
    """One metric of a pair before its p-value is adjusted: values of both sides, and their difference."""

    metric: Metric
    nbytes: int | None
    a: list[float]
    b: list[float]
    attained: tuple[Attained | None, Attained | None]
    result: Difference


def build(a: Side, b: Side, question: Question) -> Comparison:
    """Compare two sides. SpecError when one of them has no launch that ended well, or a metric's name is wrong."""
    catalogue = Catalogue((record.case.suite for record in (*a.records, *b.records)), question.metrics, question.suites)
    sides, grouped = (a, b), (_groups_of(a), _groups_of(b))
    pairs, unpaired = pair_cases(*grouped, sides)
    outs = _compared_pairs(pairs, sides, catalogue, question)
    used = (
        [record for pair in pairs for record in pair.a.launches],
        [record for pair in pairs for record in pair.b.launches],
    )
    same_cases = all(not pair.differs for pair in pairs)
    environment = differences(*used, sides=sides, same_cases=same_cases) if all(used) else []
    all_warnings = [
        *warnings(WarningSources(outs, environment, used, sides, grouped, catalogue.missing)),
        *too_many_rows(outs, question.confidence),
    ]
    rows = [row for pair in outs for row in pair.rows]
    counted = [pair for pair in outs if pair.all_failed and (pair.same_machine or question.across_machines)]
    regressions = sum(row.regression for row in rows) + len(counted)
    decision = decide(outs, regressions, question.across_machines)
    return Comparison(
        outcome=decision.outcome,
        outcome_reason=decision.reason,
        outcome_metrics=decision.metrics,
        outcome_why=comparison_sentences.outcome_sentence(decision.reason, decision.metrics),
        a=_side(a, grouped[0]),
        b=_side(b, grouped[1]),
        confidence=question.confidence,
        across_machines=question.across_machines,
        tests=sum(row.p_value is not None for row in rows),
        counts={change: sum(row.change == change for row in rows) for change in CHANGES},
        regressions=regressions,
        pairs=tuple(outs),
        unpaired=tuple(unpaired),
        environment=tuple(environment),
        warnings=tuple(all_warnings),
    )


def _groups_of(side: Side) -> list[Group]:
    """The cases of a side; SpecError when none of its launches ended well."""
    side_groups = groups(side.records)
    if not any(group.launches for group in side_groups):
        none = f"none of its {len(side.records)} launches ended well"
        raise SpecError(f"{side.text!r}: {none}; `scaleproof show {side.records[0].launch}` says why")
    return side_groups


def _compared_pairs(
    pairs: Sequence[Pair], sides: tuple[Side, Side], catalogue: Catalogue, question: Question
) -> list[PairOut]:
    """Every metric of every pair; p-values are adjusted over all of them."""
    floors = Floors(sides)
    measured = [_measure(pair, sides, catalogue, floors, question) for pair in pairs]
    adjusted = iter(_adjust([metric for of_pair in measured for metric in of_pair]))
    return [
        _pair(pair, of_pair, [next(adjusted) for _ in of_pair], question)
        for pair, of_pair in zip(pairs, measured, strict=True)
    ]


def _measure(
    pair: Pair, sides: tuple[Side, Side], catalogue: Catalogue, floors: Floors, question: Question
) -> list[_Measured]:
    """Every metric of a pair, B against A."""
    suite_a, suite_b = pair.a.case.suite, pair.b.case.suite
    metrics, metrics_b = catalogue.of(suite_a, suite_b), catalogue.of(suite_b, suite_a)
    first = {record.launch: launch_values(record, sides[0].store, metrics) for record in pair.a.launches}
    second = {record.launch: launch_values(record, sides[1].store, metrics_b) for record in pair.b.launches}
    blocks, _ = pair_launches(pair.a.launches, pair.b.launches)
    measured = []
    for key in ordered({key for values in (*first.values(), *second.values()) for key in values}, metrics):
        campaigns: dict[tuple[Campaign, Campaign], list[tuple[float, float]]] = {}
        for one, other in blocks:
            if key in first[one.launch] and key in second[other.launch]:
                both = first[one.launch][key], second[other.launch][key]
                campaigns.setdefault((one.of_campaign, other.of_campaign), []).append(both)
        if blocks:
            paired = [both for of_one in campaigns.values() for both in of_one]
            a, b = [value for value, _ in paired], [value for _, value in paired]
        else:
            a, b = ([values[key] for values in side.values() if key in values] for side in (first, second))
        floor = floors.share(pair, metrics[key[0]], key[1], max(min(len(a), len(b)), 1))
        result = difference(b, a, paired=bool(blocks), floor=floor, confidence=question.confidence)
        if result.shift is not None:
            alone = [
                shift_alone([value for _, value in of_one], [value for value, _ in of_one], paired=True)
                for of_one in campaigns.values()
            ]
            result = with_campaigns(result, alone)
        attained = (
            _attained(pair.a, metrics[key[0]], key[1], a, floors),
            _attained(pair.b, metrics_b.get(key[0], metrics[key[0]]), key[1], b, floors),
        )
        measured.append(_Measured(metrics[key[0]], key[1], a, b, attained, result))
    return measured


def _attained(
    group: Group, metric: Metric, nbytes: int | None, values: Sequence[float], floors: Floors
) -> Attained | None:
    """The median of a side beside what its machine can do."""
    return floors.attained(group.launches[0], metric, median(values), nbytes) if values else None


def _adjust(measured: Sequence[_Measured]) -> list[float | None]:
    """p-values after Benjamini and Hochberg, in the same order; they control the share of false discoveries among all
    findings."""
    p_values = [metric.result.p_value for metric in measured]
    tested = [p_value for p_value in p_values if p_value is not None]
    adjusted = iter(false_discovery_control(tested, method="bh").tolist() if tested else [])
    return [None if p_value is None else next(adjusted) for p_value in p_values]


def _pair(pair: Pair, measured: Sequence[_Measured], adjusted: Sequence[float | None], question: Question) -> PairOut:
    blocks, not_paired = pair_launches(pair.a.launches, pair.b.launches)
    first, second = pair.a.launches, pair.b.launches
    same = pair.a.machines == pair.b.machines
    return PairOut(
        title=title(pair.a.case, pair.b.case),
        program=pair.a.case.program,
        case_a=pair.a.any.case_id,
        case_b=pair.b.any.case_id,
        differs=pair.differs,
        paired=bool(blocks),
        not_paired=not_paired,
        why_unpaired=comparison_sentences.not_paired_sentence(not_paired),
        same_machine=same,
        failed=(len(pair.a.failed), len(pair.b.failed)),
        all_failed=bool(first and not second),
        runs_a=tuple(record.launch for record in first),
        runs_b=tuple(record.launch for record in second),
        rows=tuple(
            _row(metric, p_adjusted, same or question.across_machines, question.confidence)
            for metric, p_adjusted in zip(measured, adjusted, strict=True)
        ),
    )


def _row(measured: _Measured, p_adjusted: float | None, counts: bool, confidence: float) -> Row:
    """`counts`: whether a finding is about A and B, not about their machines."""
    metric, result, interval = measured.metric, measured.result, measured.result.interval
    significant = result.finding in ("higher", "lower")
    adjusted_away = significant and p_adjusted is not None and p_adjusted > 1 - confidence
    finding: Finding = "inconclusive" if adjusted_away else result.finding
    change = _change(finding, metric.direction, result.floor) if counts else "different machines"
    bounds = (interval.low, interval.high, interval.coverage) if interval else (None, None, None)
    low, high, coverage = (_rounded(bound) for bound in bounds)
    a, b = (_rounded(median(values)) if values else None for values in (measured.a, measured.b))
    return Row(
        metric=metric.name,
        nbytes=measured.nbytes,
        unit=metric.unit,
        direction=metric.direction,
        a=a,
        b=b,
        shares=(_share(measured.attained[0]), _share(measured.attained[1])),
        no_bound=next((each.why for each in measured.attained if isinstance(each, NoBound)), ""),
        n=(len(measured.a), len(measured.b)),
        ratio=_rounded(result.ratio),
        shift=_rounded(result.shift),
        low=low,
        high=high,
        coverage=coverage,
        test=comparison_sentences.row_test_sentence(result),
        tested_by=result.test,
        p_value=_rounded(result.p_value),
        p_adjusted=_rounded(p_adjusted),
        floor=result.floor,
        finding=finding,
        change=change,
        regression=change == "worse",
        reason=result.reason,
        adjusted_away=adjusted_away,
        detectable=_rounded(result.detectable),
        why=comparison_sentences.row_sentence(result, p_adjusted, adjusted_away),
    )


def _share(attained: Attained | None) -> float | None:
    return _rounded(attained.share) if isinstance(attained, Attainable) else None


def _change(finding: Finding, direction: Direction, floor: float | None) -> Change:
    """A finding interpreted by the direction of the metric. Without a noise floor a difference may be noise."""
    if finding == "no difference" or finding == "inconclusive":
        return finding
    if floor is None:
        return "inconclusive"
    if direction is None:
        return "changed"
    return "better" if finding == direction else "worse"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_FLOAT_DIGITS}g}")


def _side(side: Side, grouped: Sequence[Group]) -> SideOut:
    statuses = [record.status for record in side.records]
    launched = sorted(record.started_at for group in grouped for record in group.launches)
    return SideOut(
        given=side.text,
        results=str(side.store.results),
        ok=statuses.count("ok"),
        failed=statuses.count("failed"),
        not_runnable=statuses.count("not_runnable"),
        left_out=sum(group.left_out for group in grouped),
        cases=len(grouped),
        machines=tuple(sorted({record.machine for record in side.records})),
        codes=tuple(sorted({_code(record) for group in grouped for record in group.launches})),
        first=launched[0],
        last=launched[-1],
    )


def _code(record: Record) -> str:
    code = record.code
    return (
        f"{code.version}, commit {code.commit[:12]}"
        if code.commit and not code.dirty
        else f"{code.version}, digest {code.digest}"
    )
