"""The label of evidence that is not measured: what the newest verdicts of suite validation on the same machine say of
the level that a launch stands at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scaleproof.claims import note_sentences
from scaleproof.claims.claim_form import ClaimForm, Validates
from scaleproof.claims.claims_file import ClaimResult, ClaimsFile, Finding, Label, Standing
from scaleproof.claims.claims_yaml import VALIDATION
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.notes import Note, NoteCode, note
from scaleproof.claims.outcome import Verdict
from scaleproof.claims.verdict_rules import accepted
from scaleproof.core.record_schema import Code, Evidence, Record
from scaleproof.record.used_code import agree
from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import shown

MISSED: tuple[Verdict | None, ...] = ("not reproduced", "direction only")
WORST: tuple[Standing, ...] = ("missed", "not validated here", "validated")


@dataclass(frozen=True)
class Because:
    """One reason for a label, and its sentence. Reasons are compared, sentences are not."""

    note: Note
    text: str = field(compare=False)

    @classmethod
    def of(cls, said: Note, rest: str = "") -> Because:
        """`rest`: what the note's sentence goes on with."""
        sentence = note_sentences.note_sentence(said)
        return cls(said, f"{sentence}: {rest}" if rest else sentence)


@dataclass(frozen=True)
class Findings:
    """All that suite validation found, of each claim on each machine with each version of the code the newest."""

    results: tuple[ClaimResult, ...] = ()

    @classmethod
    def read(cls, results: Path) -> Findings:
        """From the verdicts of every size. SpecError where a file is none of this version."""
        found: list[ClaimResult] = []
        for path in sorted((results / "claims").glob(f"{VALIDATION}.*.json")):
            try:
                found += ClaimsFile.model_validate_json(path.read_bytes()).claims
            except ValidationError as failed:
                size = path.stem.rpartition(".")[2]
                raise SpecError(
                    f"{shown(path)}: no verdicts of this version; type `scaleproof judge {VALIDATION} --size {size}`"
                ) from failed
        return cls.of_results(found)

    @classmethod
    def of_results(cls, found: Iterable[ClaimResult]) -> Findings:
        """Of judged claims; those that were shown only (size ci) say nothing."""
        newest: dict[tuple[str, str, str], ClaimResult] = {}
        for result in found:
            if result.validates is None or result.verdict is None:
                continue
            key = (result.id, result.validates.machine or "", result.validates.code)
            if key not in newest or _finding(newest[key]).latest <= result.validates.latest:
                newest[key] = result
        return cls(tuple(newest.values()))

    def label(self, records: Iterable[Record]) -> Label | None:
        """Of a number that launches gave: the worst of theirs; None where all are measured, or simulated without a
        message: those add up a profile."""
        different = {(record.case_id, record.evidence, record.machine, record.code.used): record for record in records}
        labels = [
            label
            for record in different.values()
            if (label := self.of(record.case, record.evidence, record.machine, record.code))
        ]
        if not labels:
            return None
        worst = min((label.standing for label in labels), key=WORST.index)
        return _label(worst, [why for label in labels if label.standing == worst for why in _reasons(label)])

    def of(self, case: AnyCase, evidence: str, machine: str, code: Code) -> Label | None:
        """Of a case at a level of evidence, on a machine, by the code that a launch of it used."""
        if evidence == "measured" or (evidence == "simulated" and case.transport is None):
            return None
        here = [result for result in self.results if _finding(result).machine in (machine, None)]
        if not any(_finding(result).machine for result in here):
            return _label("not validated here", [Because.of(note(NoteCode.NEVER_VALIDATED))])
        about = [result for result in here if concerns(_finding(result).form, case, evidence)]
        if not about:
            nothing = note(NoteCode.NOTHING_VALIDATES, evidence=evidence)
            return _label("not validated here", [Because.of(nothing)])
        same = _judged_with(code, about)
        if missed := _misses(same):
            return _label("missed", missed)
        checks = dict.fromkeys(_finding(result).form.what for result in about)
        doubts = [doubt for what in checks if (doubt := _doubt(what, about, case, code))]
        if doubts:
            return _label("not validated here", doubts)
        return _label("validated", [_holds(result) for result in same if covers(_finding(result), case)])


def finding(form: ClaimForm, result: ClaimResult, records: Sequence[Record]) -> Finding | None:
    """What a judged claim is worth to others; None for one that validates nothing."""
    if form.validates is None or form.rule is None:
        return None
    judged = [record for record in records if record.evidence == result.evidence]
    if result.ours is None or not judged:
        return Finding(form=form.validates)
    region = accepted(form.rule, result.published, result.direction)
    last = max(judged, key=lambda record: record.started_at)
    missed_by = None
    if result.verdict in MISSED:
        missed_by = max(region.low - result.ours, result.ours - region.high, 0.0)
    return Finding(
        form=form.validates,
        machine=last.machine,
        code=last.code.digest,
        files={name: content for record in judged for name, content in record.code.files.items()},
        latest=last.started_at,
        judged_on=_different([_bounding_values(form.validates, record.case) for record in judged]),
        missed_by=missed_by,
    )


def _judged_with(code: Code, results: Sequence[ClaimResult]) -> list[ClaimResult]:
    """Of each claim the newest known whose launches ran this code, as far as both used it."""
    newest: dict[str, ClaimResult] = {}
    for result in sorted(results, key=lambda result: _finding(result).latest):
        known = _finding(result)
        if known.code == code.digest or agree(known.files, code.files):
            newest[result.id] = result
    return list(newest.values())


def _bounding_values(form: Validates, case: AnyCase) -> dict[str, Any]:
    return {name: case.value(name) for name in _bounding(form)}


def _different(cases: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Each once, in the order in which they came."""
    return tuple(case for place, case in enumerate(cases) if case not in cases[:place])


def with_misses_below(
    results: Sequence[ClaimResult], forms: dict[str, ClaimForm], records: dict[str, Record]
) -> list[ClaimResult]:
    """The results of suite validation: what was judged against a level that missed says so, and holds no more than that
    level."""
    findings = Findings.of_results(results)
    return [_with_misses_below(result, forms[result.id].base_evidence, findings, records) for result in results]


def _with_misses_below(
    result: ClaimResult, lower: Evidence | None, findings: Findings, records: dict[str, Record]
) -> ClaimResult:
    """`lower`: the level of evidence that it was judged against."""
    label = findings.label(
        records[launch] for launch in result.runs if launch in records and records[launch].evidence == lower
    )
    if result.validates is None or label is None or label.standing != "missed":
        return result
    below = [
        Because.of(note(NoteCode.LOWER_LEVEL_MISSED, claim=result.id, evidence=lower, missed=why.note.values), why.text)
        for why in _reasons(label)
    ]
    validates = result.validates.model_copy(
        update={"below": tuple(why.text for why in below), "below_notes": tuple(why.note for why in below)}
    )
    return result.model_copy(update={"validates": validates})


def concerns(form: Validates, case: AnyCase, evidence: str) -> bool:
    """Whether a claim speaks of such launches."""
    excepted = bool(form.unless) and matches(case, form.unless)
    return form.evidence == evidence and matches(case, form.where) and not excepted


def covers(known: Finding, case: AnyCase) -> bool:
    """Whether one of the cases that were judged is like this one, and none of its bounds is passed."""
    form = known.form

    def within(judged: dict[str, Any], name: str) -> bool:
        value = case.value(name)
        if value is None or judged[name] is None or name in form.alike:
            return bool(value == judged[name])
        return bool(value <= judged[name] if name in form.up_to else value >= judged[name])

    return any(all(within(judged, name) for name in _bounding(form)) for judged in known.judged_on)


def _label(standing: Standing, reasons: Sequence[Because]) -> Label:
    """Each reason once."""
    different = [why for place, why in enumerate(reasons) if why not in reasons[:place]]
    return Label(
        standing=standing, why=tuple(why.text for why in different), notes=tuple(why.note for why in different)
    )


def _reasons(label: Label) -> list[Because]:
    return [Because(said, text) for said, text in zip(label.notes, label.why, strict=True)]


def _misses(results: Sequence[ClaimResult]) -> list[Because]:
    """Misses of these claims, then those of the levels of evidence below them."""
    missed = [_miss(result) for result in results if result.verdict in MISSED]
    return missed + [why for result in results for why in _below(result)]


def _below(result: ClaimResult) -> list[Because]:
    known = _finding(result)
    notes = known.below_notes
    if len(notes) != len(known.below):  # a file of version 1 has the sentences alone
        notes = tuple(
            note(NoteCode.LOWER_LEVEL_MISSED, claim=result.id, number=place) for place in range(len(known.below))
        )
    return [Because(said, text) for said, text in zip(notes, known.below, strict=True)]


def _doubt(what: str, about: Sequence[ClaimResult], case: AnyCase, code: Code) -> Because | None:
    """Why this check does not validate the case."""
    known = [result for result in about if _finding(result).form.what == what]
    judged = [result for result in known if _finding(result).machine]
    same = _judged_with(code, judged)
    if not same:
        return Because.of(note(NoteCode.OTHER_CODE if judged else NoteCode.NOT_JUDGED_HERE, what=what))
    undecided = next((result for result in same if result.verdict != "reproduced"), None)
    if undecided is not None:
        values = {"claim": undecided.id, "size": undecided.size, "verdict": undecided.verdict}
        return Because.of(note(NoteCode.UNDECIDED, what=what, **values))
    if any(covers(_finding(result), case) for result in same):
        return None
    fields = _bounding_values(_finding(same[0]).form, case)
    return Because.of(note(NoteCode.NOT_COVERED, what=what, fields=fields))


def _bounding(form: Validates) -> tuple[str, ...]:
    """Fields that say how far a claim that holds reaches."""
    return (*form.alike, *form.up_to, *form.down_to)


def _miss(result: ClaimResult) -> Because:
    by = _finding(result).missed_by or 0.0
    missed = note(NoteCode.MISSED, claim=result.id, size=result.size, by=by, unit=result.unit)
    return Because.of(missed, result.rule)


def _holds(result: ClaimResult) -> Because:
    return Because.of(note(NoteCode.HOLDS, claim=result.id, size=result.size), result.rule)


def _finding(result: ClaimResult) -> Finding:
    assert result.validates is not None
    return result.validates
