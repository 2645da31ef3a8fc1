"""Labels of evidence that is not measured: what the newest verdicts of suite validation on the same machine say about
the launch's level of evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scaleproof.claims import note_sentences
from scaleproof.claims.claim_form import ClaimForm
from scaleproof.claims.claims_file import ClaimResult, ClaimsFile, Finding, Label, Standing
from scaleproof.claims.claims_yaml import VALIDATION
from scaleproof.claims.label_scope import (
    binding,
    bound_alike,
    bounding_values,
    concerns,
    covers,
    judged_values,
    speaks_of,
)
from scaleproof.claims.notes import Note, NoteCode, note
from scaleproof.claims.outcome import Verdict
from scaleproof.claims.verdict_rules import accepted_region
from scaleproof.core.record_schema import Code, Evidence, Record
from scaleproof.record.used_code import agree
from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import shown

MISSED: tuple[Verdict | None, ...] = ("not reproduced", "direction only")
WORST: tuple[Standing, ...] = ("missed", "not validated here", "validated")


@dataclass(frozen=True)
class LabelReason:
    """One reason for a label: a note, and its sentence. Equal notes are equal reasons, whatever their sentences."""

    note: Note
    text: str = field(compare=False)

    @classmethod
    def of(cls, note: Note, details: str = "") -> LabelReason:
        """`details`: added to the note's sentence."""
        sentence = note_sentences.note_sentence(note)
        return cls(note, f"{sentence}: {details}" if details else sentence)


@dataclass(frozen=True)
class Findings:
    """Results of suite validation: of each claim, machine and version of the code the newest one."""

    results: tuple[ClaimResult, ...] = ()

    @classmethod
    def read(cls, results: Path) -> Findings:
        """Read the verdicts of every size. SpecError where a file has the form of another version."""
        results_of_files: list[ClaimResult] = []
        for path in sorted((results / "claims").glob(f"{VALIDATION}.*.json")):
            try:
                results_of_files += ClaimsFile.model_validate_json(path.read_bytes()).claims
            except ValidationError as error:
                size = path.stem.rpartition(".")[2]
                raise SpecError(
                    f"{shown(path)}: no verdicts of this version; type `scaleproof judge {VALIDATION} --size {size}`"
                ) from error
        return cls.of_results(results_of_files)

    @classmethod
    def of_results(cls, results: Iterable[ClaimResult]) -> Findings:
        """From judged claims; claims without a verdict (size ci) are left out."""
        newest: dict[tuple[str, str, str], ClaimResult] = {}
        for result in results:
            if result.validates is None or result.verdict is None:
                continue
            key = (result.id, result.validates.machine or "", result.validates.code)
            if key not in newest or _finding(newest[key]).latest <= result.validates.latest:
                newest[key] = result
        return cls(tuple(newest.values()))

    def label(self, records: Iterable[Record]) -> Label | None:
        """The label of a number that comes from these launches: the worst of their labels. None where all are measured,
        or simulated without messages: these only add up a profile."""
        different = {
            (record.case_id, record.evidence, record.machine, record.code.used, binding(record)): record
            for record in records
        }
        labels = [
            label
            for record in different.values()
            if (label := self.of(record.case, record.evidence, record.machine, record.code, binding(record)))
        ]
        if not labels:
            return None
        worst = min((label.standing for label in labels), key=WORST.index)
        return _label(worst, [reason for label in labels if label.standing == worst for reason in _reasons(label)])

    def of(self, case: AnyCase, evidence: str, machine: str, code: Code, binds: str = "") -> Label | None:
        """The label of a case at a level of evidence, on a machine, with the code that its launch used; `binds`: see
        `binding`."""
        if evidence == "measured" or (evidence == "simulated" and case.transport is None):
            return None
        of_machine = [result for result in self.results if _finding(result).machine in (machine, None)]
        if not any(_finding(result).machine for result in of_machine):
            return _label("not validated here", [LabelReason.of(note(NoteCode.NEVER_VALIDATED))])
        relevant = [
            result
            for result in of_machine
            if concerns(_finding(result).form, case, evidence)
            and bound_alike(_finding(result), binds)
            and speaks_of(_finding(result), result.verdict, case)
        ]
        same = _judged_with(code, relevant)
        if missed := _misses(same):
            return _label("missed", missed)
        if all(_finding(result).form.total_rate for result in relevant):  # links alone are no launch
            nothing = note(NoteCode.NOTHING_VALIDATES, evidence=evidence)
            return _label("not validated here", [LabelReason.of(nothing)])
        checks = dict.fromkeys(_finding(result).form.what for result in relevant)
        reasons = [reason for what in checks if (reason := _reason_against(what, relevant, case, code))]
        if reasons:
            return _label("not validated here", reasons)
        return _label("validated", [_holds(result) for result in same if covers(_finding(result), case)])


def finding(form: ClaimForm, result: ClaimResult, records: Sequence[Record]) -> Finding | None:
    """What a judged claim says about other launches; None for a claim that validates nothing."""
    if form.validates is None or form.rule is None:
        return None
    judged = [record for record in records if record.evidence == result.evidence]
    if result.ours is None or not judged:
        return Finding(form=form.validates)
    region = accepted_region(form.rule, result.published, result.direction)
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
        judged_on=_different([judged_values(form.validates, record) for record in judged]),
        missed_by=missed_by,
    )


def _judged_with(code: Code, results: Sequence[ClaimResult]) -> list[ClaimResult]:
    """Of each claim the newest result whose launches ran this code, as far as both used it."""
    newest: dict[str, ClaimResult] = {}
    for result in sorted(results, key=lambda result: _finding(result).latest):
        validation = _finding(result)
        if validation.code == code.digest or agree(validation.files, code.files):
            newest[result.id] = result
    return list(newest.values())


def _different(cases: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Each case once, in their order."""
    return tuple(case for index, case in enumerate(cases) if case not in cases[:index])


def with_misses_below(
    results: Sequence[ClaimResult], forms: dict[str, ClaimForm], records: dict[str, Record]
) -> list[ClaimResult]:
    """The results of suite validation, with the misses of the level of evidence that each claim was judged against: a
    claim cannot hold better than that level."""
    findings = Findings.of_results(results)
    return [_with_misses_below(result, forms[result.id].base_evidence, findings, records) for result in results]


def _with_misses_below(
    result: ClaimResult, lower: Evidence | None, findings: Findings, records: dict[str, Record]
) -> ClaimResult:
    """`lower`: the level of evidence that the claim was judged against."""
    label = findings.label(
        records[launch] for launch in result.runs if launch in records and records[launch].evidence == lower
    )
    if result.validates is None or label is None or label.standing != "missed":
        return result
    below = [
        LabelReason.of(
            note(NoteCode.LOWER_LEVEL_MISSED, claim=result.id, evidence=lower, missed=why.note.values), why.text
        )
        for why in _reasons(label)
    ]
    validates = result.validates.model_copy(
        update={"below": tuple(why.text for why in below), "below_notes": tuple(why.note for why in below)}
    )
    return result.model_copy(update={"validates": validates})


def _label(standing: Standing, reasons: Sequence[LabelReason]) -> Label:
    """Each reason once."""
    different = [reason for index, reason in enumerate(reasons) if reason not in reasons[:index]]
    return Label(
        standing=standing,
        why=tuple(reason.text for reason in different),
        notes=tuple(reason.note for reason in different),
    )


def _reasons(label: Label) -> list[LabelReason]:
    return [LabelReason(note, text) for note, text in zip(label.notes, label.why, strict=True)]


def _misses(results: Sequence[ClaimResult]) -> list[LabelReason]:
    """Misses of these claims, then those of the levels of evidence below them."""
    missed = [_miss(result) for result in results if result.verdict in MISSED]
    return missed + [reason for result in results for reason in _below(result)]


def _below(result: ClaimResult) -> list[LabelReason]:
    validation = _finding(result)
    notes = validation.below_notes
    if len(notes) != len(validation.below):  # a file of version 1 has the sentences alone
        notes = tuple(
            note(NoteCode.LOWER_LEVEL_MISSED, claim=result.id, number=index) for index in range(len(validation.below))
        )
    return [LabelReason(lower_note, text) for lower_note, text in zip(notes, validation.below, strict=True)]


def _reason_against(what: str, relevant: Sequence[ClaimResult], case: AnyCase, code: Code) -> LabelReason | None:
    """Why the claims that check this do not validate the case; None where they do."""
    of_check = [result for result in relevant if _finding(result).form.what == what]
    judged = [result for result in of_check if _finding(result).machine]
    same = _judged_with(code, judged)
    if not same:
        return LabelReason.of(note(NoteCode.OTHER_CODE if judged else NoteCode.NOT_JUDGED_HERE, what=what))
    undecided = next((result for result in same if result.verdict != "reproduced"), None)
    if undecided is not None:
        values = {"claim": undecided.id, "size": undecided.size, "verdict": undecided.verdict}
        return LabelReason.of(note(NoteCode.UNDECIDED, what=what, **values))
    if any(covers(_finding(result), case) for result in same):
        return None
    fields = bounding_values(_finding(same[0]).form, case)
    return LabelReason.of(note(NoteCode.NOT_COVERED, what=what, fields=fields))


def _miss(result: ClaimResult) -> LabelReason:
    by = _finding(result).missed_by or 0.0
    missed = note(NoteCode.MISSED, claim=result.id, size=result.size, by=by, unit=result.unit)
    return LabelReason.of(missed, result.rule)


def _holds(result: ClaimResult) -> LabelReason:
    return LabelReason.of(note(NoteCode.HOLDS, claim=result.id, size=result.size), result.rule)


def _finding(result: ClaimResult) -> Finding:
    assert result.validates is not None
    return result.validates
