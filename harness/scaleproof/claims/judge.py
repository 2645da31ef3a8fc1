"""Judges all claims of a suite by the records that exist; runs no launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from scaleproof.claims import claim_notes, point_by_point
from scaleproof.claims.arithmetic import Ends, Published
from scaleproof.claims.claim_form import Control
from scaleproof.claims.claim_notes import Absence, ClaimAtLevel
from scaleproof.claims.claim_result import Answer, ResultMaker, interval_out
from scaleproof.claims.claims_file import ClaimResult, ControlOut
from scaleproof.claims.claims_yaml import VALIDATION, Claim, load_claims, load_published
from scaleproof.claims.controls import with_control
from scaleproof.claims.estimate import answer
from scaleproof.claims.evidence_labels import Findings, with_misses_below
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import KnownFloor, floor_of
from scaleproof.claims.notes import NoteCode, note
from scaleproof.claims.outcome import Outcome, Reason, Verdict
from scaleproof.claims.point_by_point import Point, Sides
from scaleproof.claims.question import Measurement, Question
from scaleproof.claims.verdict_rules import Estimate, apply_rule
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.record.store import Store
from scaleproof.spec.suite import Suite


def judge_suite(suite: Suite, size: str, store: Store) -> list[ClaimResult]:
    """One result per claim and level of evidence, in the order of claims.yaml."""
    judging, claims = _Judging(suite, size, store), load_claims(suite)
    results = [result for claim in claims for result in judging.results(claim)]
    if suite.name != VALIDATION:
        return results
    return with_misses_below(results, {claim.form.id: claim.form for claim in claims}, judging.records)


FloorOf = Callable[..., KnownFloor]
"""As `noise_floor.floor_of`."""


def judge_claims(
    suite: Suite, size: str, store: Store, claims: Sequence[Claim], floors: FloorOf
) -> list[list[ClaimResult]]:
    """Some claims, each at every level of evidence, with floors of one's own."""
    judging = _Judging(suite, size, store, floors)
    return [judging.results(claim) for claim in claims]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A measurement and its outcome, None where nothing was measured, and the noise floor of each point."""

    measurement: Measurement | None
    outcome: Outcome | None
    floors: tuple[KnownFloor, ...]


class _Judging:
    """One suite at one size; launches are read once."""

    def __init__(self, suite: Suite, size: str, store: Store, floors: FloorOf = floor_of) -> None:
        self.suite, self.size, self.store, self._floor_of = suite, size, store, floors
        self._pools: dict[str, Pool] = {}
        findings = Findings() if suite.name == VALIDATION else Findings.read(store.results)
        self._maker = ResultMaker(suite.name, size, findings, self._pool)

    @cached_property
    def rows(self) -> Published:
        """The paper's rows."""
        return load_published(self.suite.folder)

    @property
    def records(self) -> dict[str, Record]:
        """Launch to its record, of all experiments that claims refer to."""
        return {record.launch: record for pool in self._pools.values() for record in pool.records}

    def results(self, claim: Claim) -> list[ClaimResult]:
        """The claim at every level of evidence that launches give it, at least one result."""
        if claim.metric is not None and claim.metric.model is not None:
            return [self._arithmetic(claim, claim.metric)]
        if claim.metric is None or claim.form.experiment is None:
            return [self._unserved(claim)]
        pool = self._pool(claim.form.experiment)
        results = [
            self._at_level(ClaimAtLevel(claim, claim.metric, pool, evidence, self.store.results))
            for evidence in _levels(claim, pool)
            if evidence != claim.form.base_evidence
        ]
        return results or [self._without_launches(claim, pool)]

    def _pool(self, experiment: str) -> Pool:
        if experiment not in self._pools:
            self._pools[experiment] = Pool(self.store, self.suite, experiment, self.size)
        return self._pools[experiment]

    def _arithmetic(self, claim: Claim, metric: Metric) -> ClaimResult:
        assert metric.model is not None
        estimate = Estimate.of_ends(Ends.of(metric.model(claim.arguments, self.rows)))
        return self._maker.result(claim, Answer(_outcome(claim, estimate), estimate))

    def _unserved(self, claim: Claim) -> ClaimResult:
        if claim.not_recovered:
            return self._maker.result(claim, Answer(NOT_RECOVERED))
        needed = {} if claim.form.needs is None else {"needs": claim.form.needs}
        if claim.recalled or not needed:
            outcome, why = RECALLED if claim.recalled else UNSERVED, note(NoteCode.NOTHING_TO_SHOW, **needed)
        else:
            outcome, why = UNSERVED, note(NoteCode.NEEDS, **needed)
        return self._maker.result(claim, Answer(outcome, reasons=[why]))

    def _without_launches(self, claim: Claim, pool: Pool) -> ClaimResult:
        absence = claim_notes.without_launches(pool, claim.form.select, self.size)
        return self._maker.result(claim, Answer(_not_run(claim, absence), reasons=[absence.why]))

    def _at_level(self, at_level: ClaimAtLevel) -> ClaimResult:
        claim, form, evidence = at_level.claim, at_level.claim.form, at_level.evidence
        if crowded := claim_notes.oversubscribed(at_level):
            absent = _nothing_measured(claim, "not runnable here")
            return self._maker.result(claim, Answer(absent, evidence=evidence, reasons=[crowded]))
        judged = self._judged(at_level, Sides(form.select, form.against, form.over), form.unknown)
        measurement, outcome, floors = judged.measurement, judged.outcome, judged.floors
        if measurement is None:
            return self._maker.result(claim, self._without_value(at_level))
        control = self._control(at_level, form.control) if form.control is not None else None
        if control is not None and outcome is not None:
            outcome, floors = with_control(outcome, control.outcome), (*floors, *control.floors)
        uncounted = claim_notes.left_out(at_level, floors)
        further = [
            *measurement.notes,
            *claim_notes.scores(at_level),
            *claim_notes.without_number(at_level),
            *claim_notes.stopped(at_level, self.suite.name, self.size),
            *claim_notes.cause(at_level, outcome),
        ]
        answered = Answer(
            outcome,
            measurement.estimate,
            evidence,
            measurement,
            _control_out(form.control, control, outcome) if form.control and control else None,
            reasons=[*uncounted, *further],
            warnings=[*uncounted, *claim_notes.warnings(at_level, measurement, floors)],
        )
        return self._maker.result(claim, answered)

    def _judged(self, at_level: ClaimAtLevel, sides: Sides, unknown: bool, undecided: bool = True) -> _Judged:
        """The sides of a claim or of its control, each point with the noise floor of its own launches. `undecided`:
        what lies within the floor may be the effect."""
        floors: list[KnownFloor] = []

        def measure(point: Point) -> Measurement | None:
            at = sides.at(point)
            levels = at_level.levels(at.select, at.against)
            floor = self._floor_of(
                self.store.results, at_level.metric, at_level.pool, levels, at_level.claim.form.nbytes
            )
            floors.append(floor)
            return answer(_question(at_level, at, floor), at_level.pool, at_level.evidence)

        def decide(estimate: Estimate) -> Outcome | None:
            return _outcome(at_level.claim, estimate if undecided else replace(estimate, undecided=0.0))

        points = point_by_point.points(at_level.pool, sides, at_level.evidence) if sides.over else [{}]
        together = point_by_point.judged(points, measure, decide, unknown)
        measurement, outcome = (together.measurement, together.outcome) if together else (None, None)
        return _Judged(measurement, outcome, tuple(floors))

    def _control(self, at_level: ClaimAtLevel, control: Control) -> _Judged:
        """The claim's metric and rule over the cases of its control."""
        sides = Sides(control.select, control.against or at_level.claim.form.against, control.over)
        return self._judged(at_level, sides, unknown=False, undecided=False)

    def _without_value(self, at_level: ClaimAtLevel) -> Answer:
        """Launches of one side or message size alone are none behind the claim; launches without a value are."""
        reasons = [*claim_notes.without_value(at_level), *claim_notes.without_number(at_level)]
        absence = claim_notes.missing_side(at_level, self.size)
        if absence is None:
            outcome = _nothing_measured(at_level.claim, "inconclusive")
            return Answer(outcome, evidence=at_level.evidence, reasons=reasons)
        return Answer(_not_run(at_level.claim, absence), evidence=at_level.evidence, reasons=[*reasons, absence.why])


RECALLED = Outcome(verdict="unverified", reason=Reason.RECALLED)
NOT_RECOVERED = Outcome(verdict="value not recovered", reason=Reason.NOT_RECOVERED)
UNSERVED = Outcome(verdict="not runnable here", reason=Reason.UNSERVED)


def _outcome(claim: Claim, estimate: Estimate) -> Outcome | None:
    """The outcome of a claim; None for claims that are shown but never judged."""
    if claim.form.kind == "context":
        return None
    if claim.recalled:
        return RECALLED
    if claim.not_recovered:
        return NOT_RECOVERED
    if claim.form.rule is None:
        return None
    return apply_rule(claim.form.rule, estimate, claim.published, claim.direction)


def _levels(claim: Claim, pool: Pool) -> list[Evidence]:
    """The levels of evidence at which cases of the claim finished launches."""
    form = claim.form
    selections = [{**form.select, **arm} for arm in form.arms] or [form.select]
    return sorted({evidence for select in selections for evidence in pool.evidences(select)})


def _not_run(claim: Claim, absence: Absence) -> Outcome:
    """A claim without launches: a verdict that the interval decides needs some."""
    return _nothing_measured(claim, "not runnable here" if absence.cannot_run else "not run at this size")


def _nothing_measured(claim: Claim, verdict: Verdict) -> Outcome:
    return RECALLED if claim.recalled else Outcome(verdict=verdict, reason=Reason.NOTHING_MEASURED)


def _question(at_level: ClaimAtLevel, sides: Sides, floor: KnownFloor) -> Question:
    form = at_level.claim.form
    return Question(
        at_level.metric,
        sides.select,
        sides.against,
        form.nbytes,
        form.arms,
        form.rule.along if form.rule else None,
        floor.used_for(at_level.metric, form.rule),
        counts_oversubscribed=not at_level.needs_cores,
        base_evidence=form.base_evidence,
    )


def _control_out(control: Control, judged: _Judged, outcome: Outcome | None) -> ControlOut:
    """The control in claims.json. `outcome`: of its claim, after the control."""
    shows = outcome.control.shows_effect if outcome is not None and outcome.control is not None else None
    estimate = judged.measurement.estimate if judged.measurement else None
    return ControlOut(
        statement=control.statement,
        ours=estimate.ours if estimate else None,
        interval=interval_out(estimate.interval) if estimate else None,
        n=(estimate.n or 0) if estimate else 0,
        shows_effect=shows,
    )
