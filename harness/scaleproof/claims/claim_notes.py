"""Notes about the launches behind a claim: which do not count, why none count, and what is unusual about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleproof.claims.claims_yaml import Claim
from scaleproof.claims.interleaving import one_after_the_other
from scaleproof.claims.launch_pool import Pool, matches
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import (
    KnownFloor,
    base_metric,
    crowd,
    fits,
    not_covered,
    of_other_code,
    outside_fences,
)
from scaleproof.claims.notes import Note, NoteCode, note
from scaleproof.claims.outcome import Outcome
from scaleproof.claims.question import Measurement
from scaleproof.claims.without_number import words_of
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.record.placement import ADVICE, placement_differences
from scaleproof.record.stops import read_stops
from scaleproof.stats.intervals import smallest_count
from scaleproof.stats.time_to_quality import DROPPED, score

SCORED = ("time_to_quality", "samples_to_quality")
"""Metrics of which a launch may never have a value."""


@dataclass(frozen=True, slots=True)
class ClaimAtLevel:
    """A claim with a metric, at a level of evidence at which launches serve it."""

    claim: Claim
    metric: Metric
    pool: Pool
    evidence: Evidence
    results: Path

    @property
    def needs_cores(self) -> bool:
        """Whether launches with more threads than cores are left out: where a timing is judged, not only shown."""
        return self.metric.timing and not self.metric.counts_oversubscribed and self.claim.form.kind != "context"

    @property
    def sides(self) -> list[dict[str, Any]]:
        """The selections of the claim: each side must have launches."""
        form = self.claim.form
        against = [] if form.against is None else [form.against]
        return [{**form.select, **arm} for arm in form.arms] or [form.select, *against]

    def levels(
        self, select: Mapping[str, Any], against: Mapping[str, Any] | None
    ) -> list[tuple[Mapping[str, Any], Evidence]]:
        """The sides of the claim, of one point of it, or of its control, each with its level of evidence."""
        form = self.claim.form
        arms = [{**select, **arm} for arm in form.arms or ({},)]
        base = [] if against is None else [(against, form.base_evidence or self.evidence)]
        return [*((arm, self.evidence) for arm in arms), *base]

    @property
    def selected(self) -> list[Record]:
        """Records of the launches of all sides."""
        return [launch.record for side in self.sides for launch in self.pool.launches(side, self.evidence)]


def oversubscribed(at_level: ClaimAtLevel) -> Note | None:
    """Why a timing claim cannot be judged on this machine: a side has only oversubscribed launches."""
    if not at_level.needs_cores:
        return None
    form = at_level.claim.form
    for side, evidence in at_level.levels(form.select, form.against):
        records = [launch.record for launch in at_level.pool.launches(side, evidence)]
        if records and not any(map(fits, records)):
            return note(
                NoteCode.ALL_OVERSUBSCRIBED, launches=len(records), crowd=crowd(records), metric=at_level.metric.name
            )
    return None


def without_value(at_level: ClaimAtLevel) -> list[Note]:
    """Why the finished launches give no number."""
    form = at_level.claim.form
    compared = "launch"
    if form.against is not None:
        compared = "sides"
    elif form.arms or (form.rule is not None and form.rule.along is not None):
        compared = "arms"
    return [note(NoteCode.NO_VALUE, metric=at_level.metric.name, compared=compared), *_excluded(at_level)]


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a claim, or a side of it, has no launches; `cannot_run`: because its cases cannot run here."""

    why: Note
    cannot_run: bool = False


def without_launches(pool: Pool, select: dict[str, Any], size: str) -> Absence:
    """Why no launch of these cases finished."""
    failed, planned = pool.unfinished(select), pool.planned_count(select)
    absent = [record.failure for record in failed if record.status == "not_runnable" and record.failure]
    if absent:
        why = note(NoteCode.NOT_RUNNABLE, message=absent[0].message, advice=absent[0].advice)
        return Absence(why, cannot_run=True)
    if planned:
        return Absence(note(NoteCode.NONE_FINISHED, planned=planned, failed=len(failed)))
    return Absence(note(NoteCode.NOT_PLANNED, size=size))


def missing_side(at_level: ClaimAtLevel, size: str) -> Absence | None:
    """Why a side of the claim has no launches, or none with its message size; None where every side has some."""
    form, pool = at_level.claim.form, at_level.pool
    for side in at_level.sides:
        evidence = form.base_evidence if side is form.against else None
        launches = pool.launches(side, evidence or at_level.evidence)
        if not launches:
            return without_launches(pool, side, size)
        sizes = [getattr(launch.record.case, "sizes", None) for launch in launches]
        if form.nbytes is not None and all(each is not None and form.nbytes not in each for each in sizes):
            return Absence(note(NoteCode.NO_SUCH_SIZE, nbytes=form.nbytes, size=size))
    return None


def left_out(at_level: ClaimAtLevel, floors: Sequence[KnownFloor]) -> list[Note]:
    """What the claim is about and this size does not plan, which planned launches do not count, and the kinds of
    launches whose noise floor is missing."""
    pool, form = at_level.pool, at_level.claim.form
    select = form.select
    several = [*(name for name, values in select.items() if isinstance(values, list)), *form.over]
    absent = pool.only_at_other_sizes(select, dict.fromkeys(several))
    notes = [note(NoteCode.PARTLY_PLANNED, size=pool.size, fields=absent)] if absent else []
    planned, finished = pool.planned_count(select, at_level.evidence), len(pool.launches(select, at_level.evidence))
    if finished < planned:
        notes.append(note(NoteCode.UNFINISHED, finished=finished, planned=planned))
    if pool.left_out:
        notes.append(note(NoteCode.LEFT_OUT, launches=pool.left_out))
    return [*notes, *_excluded(at_level), *not_covered(at_level.results, at_level.metric, at_level.pool, floors)]


def _excluded(at_level: ClaimAtLevel) -> list[Note]:
    """How many launches have times that count in no metric, and why."""
    records = at_level.selected
    excluded = [record.excluded for record in records if record.excluded]
    if not excluded:
        return []
    why = ", ".join(sorted(set(excluded)))
    return [note(NoteCode.EXCLUDED, excluded=len(excluded), launches=len(records), why=why)]


def stopped(at_level: ClaimAtLevel, suite: str, size: str) -> list[Note]:
    """Why no more launches were made, for a size with `stop`."""
    form = at_level.claim.form
    stops = read_stops(at_level.results, suite, str(form.experiment), size)
    if stops is None:
        return []
    if of_claim := stops.claim_sentence(form.id):
        return [note(NoteCode.STOPPED, words=of_claim)]
    selected = {launch.case.case_id for launch in at_level.pool.planned if matches(launch.case, form.select)}
    sentence = stops.sentence(selected)
    return [note(NoteCode.STOPPED, words=sentence)] if sentence else []


def cause(at_level: ClaimAtLevel, outcome: Outcome | None) -> list[Note]:
    """What is known of the cause where a claim does not hold."""
    text = at_level.claim.form.cause
    return [note(NoteCode.CAUSE, words=text)] if text and outcome is not None and not outcome.holds else []


def warnings(at_level: ClaimAtLevel, measurement: Measurement, floors: Sequence[KnownFloor]) -> list[Note]:
    """Notes on what is unusual about the launches behind the number, and about the noise floors."""
    used = [record for record in at_level.pool.records if record.launch in measurement.runs]
    estimate, predicted = measurement.estimate, at_level.evidence == "simulated"
    notes = [] if predicted else [each for side in measurement.sides for each in outside_fences(*side)]
    if estimate.n is not None and estimate.n < smallest_count():
        notes.append(note(NoteCode.FEW_LAUNCHES, launches=estimate.n))
    if crowded := [record for record in used if not fits(record)]:
        notes.append(note(NoteCode.OVERSUBSCRIBED, crowded=len(crowded), launches=len(used), crowd=crowd(crowded)))
    if at_level.metric.timing:
        notes += one_after_the_other([values for _, values in measurement.sides])
    stale = of_other_code(at_level.metric, at_level.pool, floors)
    return [*notes, *_unused(at_level, measurement), *_placement(at_level, used), *stale]


def _unused(at_level: ClaimAtLevel, measurement: Measurement) -> list[Note]:
    """Selected launches that are not in the number."""
    notes, selected = [], at_level.selected
    if at_level.needs_cores and (dropped := [record for record in selected if not fits(record)]):
        notes.append(note(NoteCode.OVERSUBSCRIBED_LEFT_OUT, crowded=len(dropped), crowd=crowd(dropped)))
        selected = [record for record in selected if fits(record)]
    without = sum(record.launch not in measurement.runs for record in selected)
    if without:
        notes.append(note(NoteCode.WITHOUT_VALUE, without=without, launches=len(selected), metric=at_level.metric.name))
    return notes


def _placement(at_level: ClaimAtLevel, used: list[Record]) -> list[Note]:
    """How far apart cores are changes times, not counts."""
    return [
        note(NoteCode.PLACEMENT, placement=code, message=message, advice=ADVICE[code])
        for code, message in placement_differences([("", used)])
        if code != "different_cores" or at_level.metric.timing
    ]


def scores(at_level: ClaimAtLevel) -> list[Note]:
    """MLPerf's score of each side for time and samples to quality. A launch that did not converge counts as the
    slowest."""
    per_launch = at_level.metric.launch
    if at_level.metric.name not in SCORED or per_launch is None:
        return []
    notes = []
    for side in at_level.sides:
        runs = [per_launch(launch.record, launch.samples) for launch in at_level.pool.launches(side, at_level.evidence)]
        if len(runs) > 2 * DROPPED:
            result = score(runs, len(runs))
            notes.append(
                note(NoteCode.SCORE, value=result.value, fields=side, why=result.why, unit=at_level.metric.unit)
            )
    return notes


def without_number(at_level: ClaimAtLevel) -> list[Note]:
    """Launches of each side that diverged, or never reached their target."""
    metric, notes = base_metric(at_level.metric), []
    for side in at_level.sides:
        level = at_level.claim.form.base_evidence if side is at_level.claim.form.against else None
        launches = at_level.pool.launches(side, level or at_level.evidence)
        words = Counter(said for launch in launches if (said := words_of(metric, launch)) is not None)
        if words:
            notes.append(note(NoteCode.WITHOUT_NUMBER, fields=side, launches=len(launches), words=dict(words)))
    return notes
