"""Which launches a claim of suite validation is about, and which of them it covers if it holds.

Claims about what emulated links carry reach as far as the rate at which all nodes of a launch together may send, since
the cores of one machine move all of it."""

from __future__ import annotations

from typing import Any

from scaleproof.claims.claim_form import Validates
from scaleproof.claims.claims_file import Finding
from scaleproof.claims.launch_pool import matches
from scaleproof.claims.outcome import Verdict
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase
from scaleproof.spec.cluster import cluster_of, sent_at_once_mbit, slowed
from scaleproof.spec.errors import SpecError

BINDS = "binds"
"""Key of `Finding.judged_on` for the resource that bound a judged prediction."""
TOTAL = "links_mbit"
"""Key of `Finding.judged_on` for the rate at which all nodes together may send, Mbit/s with dilation and shrink."""
SAME = 1e-9
"""Rates that differ by this share are equal: dilation and shrink are factors that are rounded."""


def concerns(form: Validates, case: AnyCase, evidence: str) -> bool:
    """Whether a claim is about launches of this case at this level of evidence."""
    excepted = bool(form.unless) and matches(case, form.unless)
    return form.evidence == evidence and matches(case, form.where) and not excepted


def bound_alike(validation: Finding, binds: str) -> bool:
    """Whether a prediction that this resource binds is like one that was judged; one that was not judged is about
    all."""
    bound = [judged[BINDS] for judged in validation.judged_on if BINDS in judged]
    return not bound or binds in bound


def speaks_of(validation: Finding, verdict: Verdict | None, case: AnyCase) -> bool:
    """Whether a claim, if it is one about rates of links, is about the case: one that does not hold says nothing about
    launches whose links are set to carry less than those that were judged."""
    if not validation.form.total_rate:
        return True
    rate = total_rate(case)
    if rate is None:
        return False
    known = [judged[TOTAL] for judged in validation.judged_on if judged.get(TOTAL) is not None]
    return verdict == "reproduced" or not known or rate >= min(known) * (1 - SAME)


def total_rate(case: AnyCase) -> float | None:
    """The rate at which all nodes of a case together may send, Mbit/s with dilation and shrink; None where it sends
    nothing, its links have no rate, or its cluster is no longer described."""
    if case.transport is None:
        return None
    try:
        return sent_at_once_mbit(slowed(cluster_of(case), case.dilation, case.shrink))
    except SpecError:
        return None


def covers(validation: Finding, case: AnyCase) -> bool:
    """Whether one of the judged cases covers this one: equal in the fields `alike`, within the bounds of the rest."""
    form = validation.form

    def within(judged: dict[str, Any], name: str) -> bool:
        value = case.value(name)
        if value is None or judged[name] is None or name in form.alike:
            return bool(value == judged[name])
        return bool(value <= judged[name] if name in form.up_to else value >= judged[name])

    return any(
        _at_most(judged, case) and all(within(judged, name) for name in _bounding(form))
        for judged in validation.judged_on
    )


def binding(record: Record) -> str:
    """The resource that binds a predicted training (`RESOURCES` in simulate/halved_resources.py); empty for others."""
    return str(record.transport.get("prediction", {}).get("binds") or "")


def judged_values(form: Validates, record: Record) -> dict[str, Any]:
    """What bounds a judged case, as in `Finding.judged_on`."""
    return bounding_values(form, record.case) | ({BINDS: binding(record)} if form.binds else {})


def bounding_values(form: Validates, case: AnyCase) -> dict[str, Any]:
    """Of a case, the fields that bound what a claim covers, and the rate of its links where that does."""
    together = {TOTAL: total_rate(case)} if form.total_rate else {}
    return {name: case.value(name) for name in _bounding(form)} | together


def _bounding(form: Validates) -> tuple[str, ...]:
    """Fields that bound the cases to which a claim that holds applies."""
    return (*form.alike, *form.up_to, *form.down_to)


def _at_most(judged: dict[str, Any], case: AnyCase) -> bool:
    """Whether the case has at most the rate that was judged, if one was."""
    known = judged.get(TOTAL)
    return known is None or ((rate := total_rate(case)) is not None and rate <= known * (1 + SAME))
