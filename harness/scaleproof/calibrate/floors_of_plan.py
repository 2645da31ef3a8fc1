"""Which of the noise floors that a suite's claims lack come from the launches that the suite has made, and which have
to be measured with launches of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from scaleproof.calibrate.floors_of_cases import floors_of_cases
from scaleproof.calibrate.measured_noise_floors import repetitions
from scaleproof.calibrate.missing_calibration import grouped, seconds_of
from scaleproof.calibrate.needed_floors import NeededFloor
from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.judge import judge_claims
from scaleproof.claims.launch_pool import Pool
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noise_floor import KnownFloor, floor_by
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.core.record_schema import Evidence
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.sequential_stopping import finished_launches
from scaleproof.record.machine import Floor, MachineProfile
from scaleproof.record.store import Store
from scaleproof.spec.estimate import Earlier
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite


def seconds_of_earlier(store: Store, case_ids: Collection[str]) -> Earlier:
    """What finished launches of some cases took."""
    good = {
        case_id: [record.wall_s for record in store.records(case_id) if record.status == "ok"] for case_id in case_ids
    }
    return Earlier({case_id: seconds for case_id, seconds in good.items() if seconds})


def made_launches(
    suite: Suite, size: str, missing: Sequence[NeededFloor], store: Store, allocated: AllocatedNodes | None = None
) -> dict[str, list[PlannedLaunch]]:
    """The planned launches of each case that are finished."""
    launches: dict[str, list[PlannedLaunch]] = {}
    asked = {needed.case.case_id for needed in missing}
    for experiment in {needed.case.experiment for needed in missing}:
        for launch in plan(suite, experiment, size):
            if launch.case.case_id in asked:
                launches.setdefault(launch.case.case_id, []).append(launch)
    for case_id, planned in launches.items():
        count = repetitions(planned)[case_id]
        finished = {record.plan_index for record in finished_launches(case_id, count, store, allocated)}
        launches[case_id] = [launch for launch in planned if launch.plan_index in finished]
    return launches


def with_floors_of_plan(
    profile: MachineProfile,
    suite: Suite,
    missing: Sequence[NeededFloor],
    made: Mapping[str, Sequence[PlannedLaunch]],
    earlier: Earlier,
    store: Store,
    allocated: AllocatedNodes | None = None,
) -> MachineProfile:
    """The profile with what these launches give: for each missing floor the cheapest case with 6 of them."""
    metrics, seconds = suite_metrics(suite.folder), seconds_of(missing, earlier)
    nothing = MachineProfile(machine=profile.machine, code="", measured_at="")
    of_cases, floors, runs = dict[str, MachineProfile](), dict[tuple[object, ...], Floor](), list[str]()
    for group in grouped(missing, lambda needed: (needed.kind, needed.nbytes, needed.metric.name)):
        for needed in sorted(group, key=lambda needed: seconds[needed.case.case_id]):
            case_id = needed.case.case_id
            if case_id not in of_cases:
                of_cases[case_id] = nothing.with_floors(*floors_of_cases(made[case_id], store, allocated, metrics))
            if needed.known(of_cases[case_id]):
                floors = {floor.key: floor for floor in of_cases[case_id].floors} | floors
                runs += of_cases[case_id].runs
                break
    return profile.with_floors(floors.values(), runs)


def to_measure(
    missing: Sequence[NeededFloor],
    made: Mapping[str, Sequence[PlannedLaunch]],
    profile: MachineProfile,
    suite: Suite,
    size: str,
    store: Store,
) -> list[NeededFloor]:
    """Those of claims whose verdict would be another one on a machine without noise, and of claims that have no
    launches yet. What changes no verdict is known well enough; where launches were `made` and none counts (all
    saturated the cores), those that would measure their noise would not count either."""
    asked = {needed.claim for needed in missing}
    begun = {needed.claim for needed in missing if made.get(needed.case.case_id)}
    claims = [claim for claim in load_claims(suite) if claim.form.id in asked]

    def known(_: Path, *about: Any) -> KnownFloor:
        return floor_by(profile, *about)

    def none(
        _: Path, metric: Metric, pool: Pool, sides: Sequence[tuple[Mapping[str, Any], Evidence]], nbytes: int | None
    ) -> KnownFloor:
        floor = floor_by(profile, metric, pool, sides, nbytes)
        return KnownFloor(0.0, 0.0) if floor.unknown or floor.share is not None else floor

    open_claims = set[str]()
    judged = zip(
        judge_claims(suite, size, store, claims, known), judge_claims(suite, size, store, claims, none), strict=True
    )
    for claim, (with_noise, without) in zip(claims, judged, strict=True):
        if claim.form.id not in begun or [each.verdict for each in with_noise] != [each.verdict for each in without]:
            open_claims.add(claim.form.id)
    return [needed for needed in missing if needed.claim in open_claims]
