"""Makes an object of claims.json from the answer to a claim: the facts, and beside them their sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from scaleproof.claims import difference_sentences, note_sentences, sentences
from scaleproof.claims.claim_form import Attempt
from scaleproof.claims.claims_file import ClaimResult, ControlOut, IntervalOut, Label
from scaleproof.claims.claims_yaml import VALIDATION, Claim
from scaleproof.claims.evidence_labels import Findings, finding
from scaleproof.claims.launch_details import evidence_details, reductions
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.notes import Note
from scaleproof.claims.outcome import Outcome
from scaleproof.claims.question import Measurement
from scaleproof.claims.verdict_rules import Estimate
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.spec.suite_form import NO_VERDICTS
from scaleproof.stats.intervals import Interval


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a claim at a level of evidence. `outcome` is None for claims that are never judged, `estimate` and
    `measurement` where nothing was measured."""

    outcome: Outcome | None
    estimate: Estimate | None = None
    evidence: Evidence | None = None
    measurement: Measurement | None = None
    control: ControlOut | None = None
    reasons: Sequence[Note] = field(default=(), kw_only=True)
    warnings: Sequence[Note] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class ResultMaker:
    """Makes the results of one suite at one size. `pool_of`: the launches of an experiment."""

    suite: str
    size: str
    findings: Findings
    pool_of: Callable[[str], Pool]

    def result(self, claim: Claim, answer: Answer) -> ClaimResult:
        """One object of claims.json."""
        form, estimate, measurement = claim.form, answer.estimate, answer.measurement
        unjudged = form.kind == "context" or self.size in NO_VERDICTS
        outcome = None if unjudged else answer.outcome
        if outcome is not None and form.kind == "check":
            outcome = outcome.of_check()
        used = self._used(claim, measurement)
        result = ClaimResult(
            id=form.id,
            suite=self.suite,
            size=self.size,
            kind=form.kind,
            origin=form.origin,
            statement=claim.statement,
            metric=form.metric,
            published=claim.published,
            ours=estimate.ours if estimate else None,
            interval=interval_out(estimate.interval) if estimate else None,
            n=estimate.n if estimate else None,
            unit=claim.unit,
            evidence=answer.evidence,
            evidence_details=evidence_details(used, answer.evidence, claim.metric),
            reduced=reductions(used, claim.metric) if _beside_published(claim) else (),
            verdict=outcome.verdict if outcome else None,
            rule=self._rule(outcome),
            outcome=outcome,
            reason="; ".join(map(note_sentences.note_sentence, answer.reasons)),
            reason_notes=tuple(answer.reasons),
            runs=measurement.runs if measurement else (),
            campaigns=len({record.of_campaign for record in used if record.evidence != "simulated"}) or None,
            experiment=form.experiment,
            base=measurement.base if measurement else None,
            direction=claim.direction,
            deviations=form.deviations,
            control=answer.control,
            noise_floor=estimate.floor if estimate else None,
            warnings=tuple(map(note_sentences.note_sentence, answer.warnings)),
            warning_notes=tuple(answer.warnings),
            attempt=_attempt(claim),
            label=self._label(claim, used),
            **_origin(claim),
        )
        return result.model_copy(update={"validates": finding(form, result, used)})

    def _rule(self, outcome: Outcome | None) -> str:
        if outcome is None:
            return sentences.not_judged_sentence(self.size, self.size in NO_VERDICTS)
        return sentences.rule_sentence(outcome)

    def _used(self, claim: Claim, measurement: Measurement | None) -> list[Record]:
        """Records of the launches behind the number."""
        if measurement is None or not measurement.runs:
            return []
        runs = set(measurement.runs)
        return [record for record in self.pool_of(str(claim.form.experiment)).records if record.launch in runs]

    def _label(self, claim: Claim, used: list[Record]) -> Label | None:
        """The label of a timing. Suite validation itself has none, since it judges the evidence; counts need none."""
        if self.suite == VALIDATION or claim.metric is None or not claim.metric.timing:
            return None
        return self.findings.label(used)


def _beside_published(claim: Claim) -> bool:
    """Whether ours stands beside a published number; a statement that is true or false is none."""
    return claim.published is not None and claim.unit != "bool"


def interval_out(interval: Interval | None) -> IntervalOut | None:
    """An interval with its method in words."""
    if interval is None:
        return None
    return IntervalOut(
        low=interval.low,
        high=interval.high,
        coverage=interval.coverage,
        method=difference_sentences.method_sentence(interval),
        made_by=interval.method,
    )


def _origin(claim: Claim) -> dict[str, Any]:
    """The source of the published value; our own claims have none."""
    row = claim.row
    if row is None:
        return {"provenance": None, "gate": False, "where": None, "source": "own"}
    return {"provenance": row.provenance, "gate": row.gate, "where": row.where, "source": row.source}


def _attempt(claim: Claim) -> Attempt | None:
    """ACM's term for the kind of attempt; None for checks of our own code, and for arithmetic, where nothing is run."""
    if claim.form.kind in ("check", "consistency") or (claim.metric is not None and claim.metric.model is not None):
        return None
    return claim.form.attempt or ("repeatability" if claim.form.origin == "own" else "replication")
