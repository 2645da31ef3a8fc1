"""The noise floors that the claims of a suite need at one size, and those that this machine's profile lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import machine_floor
from scaleproof.record.host import usable_cores
from scaleproof.record.machine import MachineProfile
from scaleproof.spec.case import AnyCase
from scaleproof.spec.launch_kind import LaunchKind, kind_of, shares_cores, sleeps
from scaleproof.spec.suite import Suite


@dataclass(frozen=True, slots=True)
class NeededFloor:
    """A floor that a claim needs, and a case of the claim whose launches are of that kind."""

    claim: str
    metric: Metric
    kind: LaunchKind
    nbytes: int | None
    case: AnyCase


def needed_floors(suite: Suite, size: str) -> list[NeededFloor]:
    """One entry per timing claim that is judged by launches, and per planned case of it."""
    return [needed for claim in load_claims(suite) for needed in _of_claim(suite, size, claim)]


def missing_floors(suite: Suite, size: str, profile: MachineProfile | None) -> list[NeededFloor]:
    """Those of `needed_floors` that the profile does not have."""
    return [
        needed
        for needed in needed_floors(suite, size)
        if machine_floor(profile, needed.metric, needed.kind, needed.nbytes) is None
    ]


def machine_kind(case: AnyCase) -> LaunchKind | None:
    """The kind of a case's launches on this machine; None for predictions, and for launches whose times do not count
    because they have more compute threads than cores."""
    cores = usable_cores()
    if not sleeps(case) and case.ranks * case.threads_per_rank > cores and case.nodes == 1:
        return None
    return kind_of(case, shares_cores(case, cores))


def _of_claim(suite: Suite, size: str, claim: Claim) -> Iterator[NeededFloor]:
    form, metric = claim.form, claim.metric
    if metric is None or not metric.timing or form.experiment is None or form.kind == "context":
        return
    sizes = suite.experiment(form.experiment).sizes
    if size not in sizes:
        return
    for case in sizes[size].cases:
        kind = machine_kind(case) if any(chosen(case, side) for side in _sides(claim)) else None
        if kind is not None:
            yield NeededFloor(form.id, metric, kind, form.nbytes, case)


def _sides(claim: Claim) -> Sequence[Mapping[str, Any]]:
    form = claim.form
    against = [] if form.against is None else [form.against]
    control = [] if form.control is None else [form.control.select]
    return [*([{**form.select, **arm} for arm in form.arms] or [form.select]), *against, *control]
