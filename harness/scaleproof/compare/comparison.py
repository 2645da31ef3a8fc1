"""From two sides to their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import false_discovery_control

from scaleproof.claims.metrics import Direction, Metric
from scaleproof.compare import comparison_sentences
from scaleproof.compare.case_pairs import Group, Pair, groups, pair_cases, pair_launches, title
from scaleproof.compare.comparison_outcome import decide, too_many_rows
from scaleproof.compare.comparison_schema import Change, Comparison, PairOut, Row, SideOut
from scaleproof.compare.comparison_warnings import Around, warnings
from scaleproof.compare.environment_differences import differences
from scaleproof.compare.launch_values import Catalogue, launch_values, ordered
from scaleproof.compare.pair_floors import Floors
from scaleproof.compare.side_selection import Side
from scaleproof.core.record_schema import Record
from scaleproof.spec.errors import SpecError
from scaleproof.stats.arm_difference import Difference, Finding
from scaleproof.stats.compare_arms import compare as difference
from scaleproof.stats.intervals import CONFIDENCE, median

CHANGES: tuple[Change, ...] = ("worse", "better", "changed", "no difference", "inconclusive", "different machines")
_FLOAT_DIGITS = 12
"""Numbers are shown to this many significant digits, so that libraries that round their last bits differently give
equal bytes."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of two sides: which metrics (none named: all), whether a finding between two machines counts, and
    where suites are (None: as usual)."""

    metrics: tuple[str, ...] = ()
    across_machines: bool = False
    confidence: float = CONFIDENCE
    suites: Path | None = None


@dataclass(frozen=True, slots=True)
class _Measured:
    """One metric of a pair before its p-value is adjusted."""

    metric: Metric
    nbytes: int | None
    a: list[float]
    b: list[float]
    result: Difference


def build(a: Side, b: Side, question: Question) -> Comparison:
    """Compare two sides. SpecError when one of them has no launch that ended well, or a metric's name is wrong."""
    catalogue = Catalogue((record.case.suite for record in (*a.records, *b.records)), question.metrics, question.suites)
    sides, grouped = (a, b), (groups(a.records), groups(b.records))
    for side, groups_of in zip(sides, grouped, strict=True):
        if not any(group.launches for group in groups_of):
            none = f"none of its {len(side.records)} launches ended well"
            raise SpecError(f"{side.text!r}: {none}; `scaleproof show {side.records[0].launch}` says why")
    pairs, unpaired = pair_cases(*grouped, sides)
    floors = Floors(sides)
    measured = [_measure(pair, sides, catalogue, floors, question) for pair in pairs]
    adjusted = iter(_adjust([found for rows in measured for found in rows]))
    outs = [
        _pair(pair, rows, [next(adjusted) for _ in rows], question) for pair, rows in zip(pairs, measured, strict=True)
    ]
    used = (
        [record for pair in pairs for record in pair.a.launches],
        [record for pair in pairs for record in pair.b.launches],
    )
    around = differences(*used, sides=sides, same_cases=all(not pair.differs for pair in pairs)) if all(used) else []
    said = [
        *warnings(Around(outs, around, used, sides, grouped, catalogue.missing)),
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
        environment=tuple(around),
        warnings=tuple(said),
    )


def _measure(
    pair: Pair, sides: tuple[Side, Side], catalogue: Catalogue, floors: Floors, question: Question
) -> list[_Measured]:
    """Every metric of a pair, B against A."""
    one, other = pair.a.case.suite, pair.b.case.suite
    metrics, theirs = catalogue.of(one, other), catalogue.of(other, one)
    first = {record.launch: launch_values(record, sides[0].store, metrics) for record in pair.a.launches}
    second = {record.launch: launch_values(record, sides[1].store, theirs) for record in pair.b.launches}
    blocks, _ = pair_launches(pair.a.launches, pair.b.launches)
    found = []
    for key in ordered({key for values in (*first.values(), *second.values()) for key in values}, metrics):
        if blocks:
            both = [
                (first[a.launch][key], second[b.launch][key])
                for a, b in blocks
                if key in first[a.launch] and key in second[b.launch]
            ]
            a, b = [value for value, _ in both], [value for _, value in both]
        else:
            a, b = ([values[key] for values in side.values() if key in values] for side in (first, second))
        floor = floors.share(pair, metrics[key[0]], key[1])
        found.append(
            _Measured(
                metrics[key[0]],
                key[1],
                a,
                b,
                difference(b, a, paired=bool(blocks), floor=floor, confidence=question.confidence),
            )
        )
    return found


def _adjust(found: Sequence[_Measured]) -> list[float | None]:
    """p-values after Benjamini and Hochberg, in the order given; they control the share of false discoveries among all
    findings."""
    tested = [one.result.p_value for one in found if one.result.p_value is not None]
    adjusted = iter(false_discovery_control(tested, method="bh").tolist() if tested else [])
    return [None if one.result.p_value is None else next(adjusted) for one in found]


def _pair(pair: Pair, found: Sequence[_Measured], adjusted: Sequence[float | None], question: Question) -> PairOut:
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
            _row(one, p, same or question.across_machines, question.confidence)
            for one, p in zip(found, adjusted, strict=True)
        ),
    )


def _row(found: _Measured, p_adjusted: float | None, counts: bool, confidence: float) -> Row:
    """`counts`: a finding here says something about A and B."""
    metric, result, interval = found.metric, found.result, found.result.interval
    significant = result.finding in ("higher", "lower")
    adjusted_away = significant and p_adjusted is not None and p_adjusted > 1 - confidence
    finding: Finding = "inconclusive" if adjusted_away else result.finding
    change = _change(finding, metric.direction) if counts else "different machines"
    bounds = (interval.low, interval.high, interval.coverage) if interval else (None, None, None)
    low, high, coverage = (_rounded(bound) for bound in bounds)
    a, b = (_rounded(median(values)) if values else None for values in (found.a, found.b))
    return Row(
        metric=metric.name,
        nbytes=found.nbytes,
        unit=metric.unit,
        direction=metric.direction,
        a=a,
        b=b,
        n=(len(found.a), len(found.b)),
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
        regression=change == "worse" and result.floor is not None,
        reason=result.reason,
        adjusted_away=adjusted_away,
        detectable=_rounded(result.detectable),
        why=comparison_sentences.row_sentence(result, p_adjusted, adjusted_away),
    )


def _change(finding: Finding, direction: Direction) -> Change:
    """A finding read by which way is better."""
    if finding == "no difference" or finding == "inconclusive":
        return finding
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
