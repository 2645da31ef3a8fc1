"""The label of evidence that is not measured: what the newest verdicts of suite validation on the same machine say of
the level that a launch stands at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from scaleproof.claims.claim_form import ClaimForm, Validates
from scaleproof.claims.claims_file import ClaimResult, ClaimsFile, Finding, Label, Standing, Verdict
from scaleproof.claims.claims_yaml import VALIDATION
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.verdict_rules import accepted, number
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import shown

MISSED: tuple[Verdict | None, ...] = ("not reproduced", "direction only")
WORST: tuple[Standing, ...] = ("missed", "not validated here", "validated")
NEVER = "suite validation was not judged on this machine: type `snakemake validation`"


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
        alike = {
            (record.case_id, record.evidence, record.machine, record.code.digest): record.case for record in records
        }
        labels = [label for (_, *stand), case in alike.items() if (label := self.of(case, *stand))]
        if not labels:
            return None
        worst = min((label.standing for label in labels), key=WORST.index)
        lines = dict.fromkeys(line for label in labels if label.standing == worst for line in label.why)
        return Label(standing=worst, why=tuple(lines))

    def of(self, case: AnyCase, evidence: str, machine: str, code: str) -> Label | None:
        """Of a case at a level of evidence, on a machine, by a version of the code."""
        if evidence == "measured" or (evidence == "simulated" and case.transport is None):
            return None
        here = [result for result in self.results if _finding(result).machine in (machine, None)]
        about = [result for result in here if concerns(_finding(result).form, case, evidence)]
        if not any(_finding(result).machine for result in here):
            return Label(standing="not validated here", why=(NEVER,))
        if not about:
            return Label(
                standing="not validated here",
                why=(f"no claim of suite validation is about {evidence} launches like this one",),
            )
        same = [result for result in about if _finding(result).code == code]
        missed = [_miss(result) for result in same if result.verdict in MISSED] + [
            line for result in same for line in _finding(result).below
        ]
        if missed:
            return Label(standing="missed", why=tuple(dict.fromkeys(missed)))
        checks = dict.fromkeys(_finding(result).form.what for result in about)
        doubts = [doubt for what in checks if (doubt := _doubt(what, about, case, code))]
        if doubts:
            return Label(standing="not validated here", why=tuple(doubts))
        return Label(
            standing="validated",
            why=tuple(f"{_named(result)}: {result.rule}" for result in same if covers(_finding(result), case)),
        )


def finding(form: ClaimForm, result: ClaimResult, records: Sequence[Record]) -> Finding | None:
    """What a judged claim is worth to others; None for one that validates nothing."""
    if form.validates is None or form.rule is None:
        return None
    judged = [record for record in records if record.evidence == result.evidence]
    if result.ours is None or not judged:
        return Finding(form=form.validates)
    region, last = (
        accepted(form.rule, result.published, result.direction),
        max(judged, key=lambda record: record.started_at),
    )
    on = [{field: getattr(record.case, field, None) for field in _bounding(form.validates)} for record in judged]
    return Finding(
        form=form.validates,
        machine=last.machine,
        code=last.code.digest,
        latest=last.started_at,
        judged_on=tuple(one for place, one in enumerate(on) if one not in on[:place]),
        missed_by=max(region.low - result.ours, result.ours - region.high, 0.0) if result.verdict in MISSED else None,
    )


def with_misses_below(
    results: Sequence[ClaimResult], forms: dict[str, ClaimForm], records: dict[str, Record]
) -> list[ClaimResult]:
    """The results of suite validation: what was judged against a level that missed says so, and holds no more than that
    level."""
    findings, found = Findings.of_results(results), []
    for result in results:
        lower = forms[result.id].base_evidence
        label = findings.label(
            records[launch] for launch in result.runs if launch in records and records[launch].evidence == lower
        )
        if result.validates is not None and label is not None and label.standing == "missed":
            lines = tuple(
                f"{result.id} was judged against {lower} launches, whose validation was missed: {line}"
                for line in label.why
            )
            result = result.model_copy(update={"validates": result.validates.model_copy(update={"below": lines})})
        found.append(result)
    return found


def concerns(form: Validates, case: AnyCase, evidence: str) -> bool:
    """Whether a claim speaks of such launches."""
    excepted = bool(form.unless) and matches(case, form.unless)
    return form.evidence == evidence and matches(case, form.where) and not excepted


def covers(found: Finding, case: AnyCase) -> bool:
    """Whether one of the cases that were judged is like this one, and none of its bounds is passed."""
    form = found.form

    def within(one: dict[str, Any], field: str) -> bool:
        value = getattr(case, field, None)
        if value is None or one[field] is None or field in form.alike:
            return bool(value == one[field])
        return bool(value <= one[field] if field in form.up_to else value >= one[field])

    return any(all(within(one, field) for field in _bounding(form)) for one in found.judged_on)


def _doubt(what: str, about: Sequence[ClaimResult], case: AnyCase, code: str) -> str:
    """Why this check does not validate the case; empty where it does."""
    known = [result for result in about if _finding(result).form.what == what]
    judged = [result for result in known if _finding(result).machine]
    same = [result for result in judged if _finding(result).code == code]
    if not same:
        return f"{what}: not judged here{' with this version of the code' if judged else ''}"
    if undecided := [result for result in same if result.verdict != "reproduced"]:
        return f"{what}: {_named(undecided[0])} is {undecided[0].verdict}"
    if any(covers(_finding(result), case) for result in same):
        return ""
    values = ", ".join(f"{field} {getattr(case, field, None)}" for field in _bounding(_finding(same[0]).form))
    return f"{what}: not judged on {values}"


def _bounding(form: Validates) -> tuple[str, ...]:
    """Fields that say how far a claim that holds reaches."""
    return (*form.alike, *form.up_to, *form.down_to)


def _miss(result: ClaimResult) -> str:
    by = _finding(result).missed_by
    return f"{_named(result)} is missed by {number(by or 0.0)} {result.unit}: {result.rule}"


def _named(result: ClaimResult) -> str:
    return f"{result.id} (size {result.size})"


def _finding(result: ClaimResult) -> Finding:
    assert result.validates is not None
    return result.validates
