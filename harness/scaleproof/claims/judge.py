"""All claims of a suite against the records that are there; runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scaleproof.claims import range_of_conditions as over
from scaleproof.claims.claim_form import Attempt, PublishedRow
from scaleproof.claims.claims_file import ClaimResult, ClaimsFile, ControlOut, IntervalOut, Verdict
from scaleproof.claims.claims_yaml import VALIDATION, Claim, load_claims, load_published
from scaleproof.claims.estimate import Found, Question, answer
from scaleproof.claims.evidence_labels import Findings, finding, with_misses_below
from scaleproof.claims.launch_pool import Pool, matches
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import crowd, fits, floor_of, not_covered, outside_fences
from scaleproof.claims.verdict_rules import Estimate, Outcome, judge, with_control
from scaleproof.core.atomic_write import write_form
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.record.placement import ADVICE, unlike
from scaleproof.record.stops import read_stops
from scaleproof.record.store import Store
from scaleproof.spec.suite import Suite
from scaleproof.stats.intervals import Interval, smallest_count
from scaleproof.stats.time_to_quality import DROPPED, score

NO_VERDICTS = ("ci",)
"""Sizes that only show that everything runs."""
RECALLED = "the published value is known from memory only: nothing is judged"
NOT_RECOVERED = "the figure was published, but we do not have it: nothing to compare with"
UNSERVED = "nothing of this version serves it"


def judge_suite(suite: Suite, size: str, store: Store) -> list[ClaimResult]:
    """One result per claim and level of evidence, in the order of claims.yaml."""
    judging, claims = _Judging(suite, size, store), load_claims(suite)
    results = [result for claim in claims for result in judging.results(claim)]
    return (
        with_misses_below(results, {claim.form.id: claim.form for claim in claims}, judging.records)
        if suite.name == VALIDATION
        else results
    )


def write_claims(path: Path, results: Iterable[ClaimResult]) -> None:
    """Write a checked claims.json by one rename."""
    checked = ClaimsFile.model_validate(ClaimsFile(claims=tuple(results)).model_dump())
    write_form(path, checked)


def read_claims(path: Path) -> list[ClaimResult]:
    """The claims of a file, checked; pydantic's ValidationError tells what is wrong."""
    return list(ClaimsFile.model_validate_json(path.read_bytes()).claims)


class _Judging:
    """One suite at one size; launches are read once."""

    def __init__(self, suite: Suite, size: str, store: Store) -> None:
        self.suite, self.size, self.store = suite, size, store
        self.rows: dict[str, PublishedRow] = load_published(suite.folder)
        self._pools: dict[str, Pool] = {}
        self._findings = Findings() if suite.name == VALIDATION else Findings.read(store.results)

    @property
    def records(self) -> dict[str, Record]:
        """By launch, of all experiments that claims asked for."""
        return {record.launch: record for pool in self._pools.values() for record in pool.records}

    def results(self, claim: Claim) -> list[ClaimResult]:
        """The claim at every level of evidence that launches give it, at least one result."""
        if claim.metric is not None and claim.metric.model is not None:
            return [self._arithmetic(claim, claim.metric)]
        if claim.metric is None or claim.form.experiment is None:
            return [self._unserved(claim)]
        pool = self._pool(claim.form.experiment)
        served = [
            self._served(claim, claim.metric, pool, evidence)
            for evidence in pool.evidences(claim.form.select)
            if evidence != claim.form.base_evidence
        ]
        return served or [self._without_launches(claim, pool)]

    def _pool(self, experiment: str) -> Pool:
        if experiment not in self._pools:
            self._pools[experiment] = Pool(self.store, self.suite, experiment, self.size)
        return self._pools[experiment]

    def _arithmetic(self, claim: Claim, metric: Metric) -> ClaimResult:
        assert metric.model is not None
        estimate = Estimate(metric.model(claim.form.x, self.rows), None, None)
        return self._result(claim, self._verdict(claim, estimate), estimate=estimate)

    def _unserved(self, claim: Claim) -> ClaimResult:
        if claim.not_recovered:
            return self._result(claim, Outcome("value not recovered", NOT_RECOVERED))
        if claim.recalled:
            return self._result(
                claim, Outcome("unverified", RECALLED), reason=f"nothing of ours to show: needs {claim.form.needs}"
            )
        return self._result(claim, Outcome("not runnable here", UNSERVED), reason=f"needs {claim.form.needs}")

    def _without_launches(self, claim: Claim, pool: Pool) -> ClaimResult:
        select = claim.form.select
        failed, planned = pool.unfinished(select), pool.planned_count(select)
        absent = [record.failure for record in failed if record.status == "not_runnable" and record.failure]
        if absent:
            why = f"{absent[0].message}; {absent[0].advice}"
        else:
            why = (
                f"none of {planned} planned launches finished, {len(failed)} failed"
                if planned
                else f"size {self.size} plans none of its launches"
            )
        return self._result(claim, self._no_value(claim, "not runnable here" if absent else "inconclusive"), reason=why)

    def _no_value(self, claim: Claim, verdict: Verdict = "inconclusive") -> Outcome:
        return Outcome("unverified", RECALLED) if claim.recalled else Outcome(verdict, "nothing was measured")

    def _served(self, claim: Claim, metric: Metric, pool: Pool, evidence: Evidence) -> ClaimResult:
        form = claim.form
        if why := self._too_crowded(claim, metric, pool, evidence):
            return self._result(claim, self._no_value(claim, "not runnable here"), evidence=evidence, reason=why)
        floor = floor_of(self.store.results, metric, pool, form.select, evidence, form.nbytes)
        found, outcome = self._found(claim, metric, pool, evidence, floor)
        if found is None:
            why = f"no launch gave {metric.name}" + (
                " on both sides" if form.against is not None else " in enough arms" if self._compares(claim) else ""
            )
            return self._result(
                claim,
                self._no_value(claim),
                evidence=evidence,
                reason="; ".join([why, *self._excluded(claim, pool, evidence)]),
            )
        control = None
        if form.control is not None:
            control, shown = self._control(claim, metric, pool, evidence, floor)
            outcome = with_control(outcome, shown) if outcome else None
        notes = self._left_out(claim, pool, evidence)
        lines = (*notes, *self._warnings(claim, metric, pool, evidence, found))
        notes += [*found.notes, *self._scores(claim, metric, pool, evidence), *self._stopped(claim, pool)]
        return self._result(claim, outcome, found.estimate, evidence, found, control, "; ".join(notes), lines)

    def _found(
        self, claim: Claim, metric: Metric, pool: Pool, evidence: Evidence, floor: float | None
    ) -> tuple[Found | None, Outcome | None]:
        """What the launches give and what follows from it; at every point of a range where the claim has one."""
        form = claim.form

        def ask(point: over.Point) -> Found | None:
            against = None if form.against is None else {**form.against, **point}
            return answer(self._question(claim, metric, {**form.select, **point}, against, floor), pool, evidence)

        if not form.over:
            found = ask({})
            return found, self._verdict(claim, found.estimate) if found else None
        whole = over.judged(
            over.points(pool, form.select, form.over, evidence), ask, lambda estimate: self._verdict(claim, estimate)
        )
        return (whole.found, whole.outcome) if whole else (None, None)

    def _question(
        self,
        claim: Claim,
        metric: Metric,
        select: Mapping[str, Any],
        against: Mapping[str, Any] | None,
        floor: float | None,
    ) -> Question:
        along = claim.form.rule.along if claim.form.rule else None
        form, crowded = claim.form, not self._needs_cores(claim, metric)
        return Question(metric, select, against, form.nbytes, form.arms, along, floor, crowded, form.base_evidence)

    def _needs_cores(self, claim: Claim, metric: Metric) -> bool:
        """Times of launches with more threads than cores judge nothing; what is only shown may use them."""
        return metric.timing and claim.form.kind != "context"

    def _compares(self, claim: Claim) -> bool:
        return bool(claim.form.arms) or (claim.form.rule is not None and claim.form.rule.along is not None)

    def _sides(self, claim: Claim) -> list[dict[str, Any]]:
        """What the claim selects: each must have launches."""
        form = claim.form
        against = [] if form.against is None else [form.against]
        return [{**form.select, **arm} for arm in form.arms] or [form.select, *against]

    def _too_crowded(self, claim: Claim, metric: Metric, pool: Pool, evidence: Evidence) -> str:
        """Why a timing claim cannot be judged on this machine: a side has only oversubscribed launches."""
        if not self._needs_cores(claim, metric):
            return ""
        for side in self._sides(claim):
            records = [launch.record for launch in pool.launches(side, evidence)]
            if records and not any(map(fits, records)):
                crowded = f"all {len(records)} launches are oversubscribed ({crowd(records)})"
                return f"{crowded}: their times say nothing of {metric.name}; needs a core for every thread"
        return ""

    def _control(
        self, claim: Claim, metric: Metric, pool: Pool, evidence: Evidence, floor: float | None
    ) -> tuple[ControlOut, Outcome | None]:
        form = claim.form
        assert form.control is not None
        found = answer(
            self._question(claim, metric, form.control.select, form.control.against or form.against, floor),
            pool,
            evidence,
        )
        if found is None:
            return ControlOut(statement=form.control.statement, ours=None, interval=None, n=0, shows_effect=None), None
        outcome = self._verdict(claim, found.estimate)
        shows = (
            outcome.holds if outcome and outcome.verdict in ("reproduced", "not reproduced", "direction only") else None
        )
        estimate = found.estimate
        shown = ControlOut(
            statement=form.control.statement,
            ours=estimate.ours,
            interval=_interval(estimate.interval),
            n=estimate.n or 0,
            shows_effect=shows,
        )
        return shown, outcome

    def _verdict(self, claim: Claim, estimate: Estimate) -> Outcome | None:
        """None for what is shown but never judged."""
        if claim.form.kind == "context":
            return None
        if claim.recalled:
            return Outcome("unverified", RECALLED)
        if claim.not_recovered:
            return Outcome("value not recovered", NOT_RECOVERED)
        if claim.form.rule is None:
            return None
        return judge(claim.form.rule, estimate, claim.published, claim.direction)

    def _left_out(self, claim: Claim, pool: Pool, evidence: Evidence) -> list[str]:
        """Which launches that were to count do not."""
        notes = []
        planned, finished = (
            pool.planned_count(claim.form.select, evidence),
            len(pool.launches(claim.form.select, evidence)),
        )
        if finished < planned:
            notes.append(f"{finished} of {planned} planned launches finished")
        if pool.left_out:
            notes.append(f"{pool.left_out} launches of other machines or code versions left out")
        return notes + self._excluded(claim, pool, evidence)

    def _excluded(self, claim: Claim, pool: Pool, evidence: Evidence) -> list[str]:
        """How many launches have times that count in no metric, and why."""
        records = [launch.record for side in self._sides(claim) for launch in pool.launches(side, evidence)]
        why = sorted({record.excluded for record in records if record.excluded})
        return (
            [
                f"{sum(bool(record.excluded) for record in records)} of {len(records)} launches excluded: {', '.join(why)}"
            ]
            if why
            else []
        )

    def _stopped(self, claim: Claim, pool: Pool) -> list[str]:
        """What ended the launches of a size with `stop`."""
        stops = read_stops(self.store.results, self.suite.name, str(claim.form.experiment), self.size)
        words = (
            stops.words({launch.case.case_id for launch in pool.planned if matches(launch.case, claim.form.select)})
            if stops
            else ""
        )
        return [words] if words else []

    def _warnings(self, claim: Claim, metric: Metric, pool: Pool, evidence: Evidence, found: Found) -> list[str]:
        """What a reader should know of the launches behind the number."""
        used = [record for record in pool.records if record.launch in found.runs]
        foretold = evidence == "simulated"
        lines = [line for label, values in found.sides if not foretold for line in outside_fences(label, values)]
        if found.estimate.difference is not None and found.estimate.floor is None and not foretold:
            lines += not_covered(self.store.results, metric, pool)
        if found.estimate.n is not None and found.estimate.n < smallest_count():
            lines.append(f"only {found.estimate.n} launches a side: no 95 % interval")
        if crowded := [record for record in used if not fits(record)]:
            lines.append(f"{len(crowded)} of {len(used)} launches were oversubscribed: {crowd(crowded)}")
        selected = [launch.record for side in self._sides(claim) for launch in pool.launches(side, evidence)]
        if self._needs_cores(claim, metric) and (dropped := [record for record in selected if not fits(record)]):
            lines.append(f"{len(dropped)} oversubscribed launches left out: {crowd(dropped)}")
            selected = [record for record in selected if fits(record)]
        if silent := [record for record in selected if record.launch not in found.runs]:
            lines.append(
                f"{len(silent)} of {len(selected)} launches are not in the number: no {metric.name}, or no counterpart in their block"
            )
        return lines + [f"{code}: {message}; {ADVICE[code]}" for code, message in unlike([("", used)])]

    def _scores(self, claim: Claim, metric: Metric, pool: Pool, evidence: Evidence) -> list[str]:
        """MLPerf's score of each side for time to quality: a launch that did not converge counts as slowest there, and
        nowhere else."""
        per_launch = metric.launch
        if metric.name != "time_to_quality" or per_launch is None:
            return []
        lines = []
        for side in self._sides(claim):
            runs = [per_launch(launch.record, launch.samples) for launch in pool.launches(side, evidence)]
            found = score(runs, len(runs)) if len(runs) > 2 * DROPPED else None
            if found is not None:
                of = ", ".join(f"{name} {value}" for name, value in side.items())
                lines.append(
                    f"MLPerf score {'none' if found.value is None else f'{found.value:.4g} s'} ({of}): {found.why}"
                )
        return lines

    def _result(
        self,
        claim: Claim,
        outcome: Outcome | None,
        estimate: Estimate | None = None,
        evidence: Evidence | None = None,
        found: Found | None = None,
        control: ControlOut | None = None,
        reason: str = "",
        warnings: tuple[str, ...] = (),
    ) -> ClaimResult:
        form, row = claim.form, claim.row
        judged = None if form.kind == "context" or self.size in NO_VERDICTS else outcome
        verdict: Verdict | None = judged.verdict if judged else None
        unjudged = f"size {self.size} gives no verdicts" if self.size in NO_VERDICTS else "shown, never judged"
        runs = set(found.runs) if found else set()
        used = [record for record in self._pool(str(form.experiment)).records if record.launch in runs] if runs else []
        paper: dict[str, Any] = (
            {"provenance": row.provenance, "gate": row.gate, "where": row.where, "source": row.source} if row else {}
        )
        result = ClaimResult(
            id=form.id,
            suite=self.suite.name,
            size=self.size,
            kind=form.kind,
            origin=form.origin,
            statement=claim.statement,
            metric=form.metric,
            published=claim.published,
            ours=estimate.ours if estimate else None,
            interval=_interval(estimate.interval) if estimate else None,
            n=estimate.n if estimate else None,
            unit=claim.unit,
            evidence=evidence,
            verdict=verdict,
            rule=judged.rule if judged else unjudged,
            reason=reason,
            runs=found.runs if found else (),
            experiment=form.experiment,
            base=found.base if found else None,
            direction=claim.direction,
            deviations=form.deviations,
            control=control,
            noise_floor=estimate.floor if estimate else None,
            warnings=warnings,
            attempt=_attempt(claim),
            label=self._findings.label(used)
            if self.suite.name != VALIDATION and claim.metric is not None and claim.metric.timing
            else None,
            **{"provenance": None, "gate": False, "where": None, "source": "own", **paper},
        )
        return result.model_copy(update={"validates": finding(form, result, used)})


def _attempt(claim: Claim) -> Attempt | None:
    """ACM's word for what a claim's judgement is; None for arithmetic, where nothing is run."""
    if claim.form.kind == "consistency" or (claim.metric is not None and claim.metric.model is not None):
        return None
    return claim.form.attempt or ("repeatability" if claim.form.origin == "own" else "replication")


def _interval(interval: Interval | None) -> IntervalOut | None:
    return (
        IntervalOut(low=interval.low, high=interval.high, coverage=interval.coverage, method=interval.method)
        if interval
        else None
    )
