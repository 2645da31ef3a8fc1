"""The noise floors that the claims of a suite need at one size, and those that this machine's profile lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import machine_floor
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.preflight.case_preflight import obstacle
from scaleproof.record.host import usable_cores
from scaleproof.record.machine import Floor, MachineProfile
from scaleproof.spec.case import AnyCase
from scaleproof.spec.launch_kind import LaunchKind, kind_on
from scaleproof.spec.programs import programs_folder
from scaleproof.spec.suite import Suite


@dataclass(frozen=True, slots=True)
class NeededFloor:
    """A floor that a claim needs, and a case of the claim whose launches are of that kind."""

    claim: str
    metric: Metric
    kind: LaunchKind
    nbytes: int | None
    case: AnyCase

    def known(self, profile: MachineProfile | None) -> Floor | None:
        """What the profile has of it."""
        return machine_floor(profile, self.metric, self.kind, self.nbytes)

    def is_paired(self, profile: MachineProfile | None) -> bool:
        """Whether the profile has it from pairs of identical arms."""
        floor = self.known(profile)
        return floor is not None and floor.paired


def needed_floors(suite: Suite, size: str) -> list[NeededFloor]:
    """One entry per timing claim that is judged by launches, and per planned case of it."""
    return [needed for claim in load_claims(suite) for needed in _of_claim(suite, size, claim)]


def missing_floors(
    suite: Suite, size: str, profile: MachineProfile | None, allocated: AllocatedNodes | None = None
) -> list[NeededFloor]:
    """Those of `needed_floors` that the profile does not have from pairs of identical arms, of cases that can run here,
    or on the nodes `allocated`."""
    lacking = [needed for needed in needed_floors(suite, size) if not needed.is_paired(profile)]
    programs = str(programs_folder(suite.folder).absolute())
    cases = {needed.case.case_id: needed.case for needed in lacking}
    runnable = {case_id for case_id, case in cases.items() if obstacle(case, programs, allocated) is None}
    return [needed for needed in lacking if needed.case.case_id in runnable]


def _of_claim(suite: Suite, size: str, claim: Claim) -> Iterator[NeededFloor]:
    form, metric = claim.form, claim.metric
    if metric is None or not metric.timing or form.experiment is None or form.kind == "context":
        return
    sizes = suite.experiment(form.experiment).sizes
    if size not in sizes:
        return
    cases = sizes[size].cases
    if not all(any(chosen(case, side) for case in cases) for side in (form.select, form.against or {})):
        return  # not judged at this size
    for case in cases:
        serves = any(chosen(case, side) for side in _sides(claim)) and _has_size(case, form.nbytes)
        kind = kind_on(case, usable_cores()) if serves else None
        if kind is not None:
            yield NeededFloor(form.id, metric, kind, form.nbytes, case)


def _has_size(case: AnyCase, nbytes: int | None) -> bool:
    """Whether the case's launches have a value for this message size."""
    sizes = case.value("sizes")
    return nbytes is None or not sizes or nbytes in sizes


def _sides(claim: Claim) -> Sequence[Mapping[str, Any]]:
    """The selections of a claim and of its control, which have floors of their own."""
    form = claim.form
    compared = [(form.select, form.against)]
    if form.control is not None:
        compared.append((form.control.select, form.control.against))
    arms = form.arms or ({},)
    selects = [{**select, **arm} for select, _ in compared for arm in arms]
    return [*selects, *(against for _, against in compared if against is not None)]
