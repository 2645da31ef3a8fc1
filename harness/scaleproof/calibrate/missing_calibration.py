"""Measures the noise floors that a suite's claims need and this machine's profile lacks: the suite's own cases, each as
two identical arms."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from scaleproof.calibrate.measured_noise_floors import ARMS, FLOORS, LAUNCHES, noise_floors
from scaleproof.calibrate.needed_floors import NeededFloor
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.progress import Progress
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.digest import machine_id
from scaleproof.record.machine import MachineProfile, read_profile, write_profile
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase
from scaleproof.spec.estimate import Earlier, estimate
from scaleproof.spec.launch_kind import LaunchKind
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.programs import programs_folder
from scaleproof.spec.suite import Suite

BLOCKS = LAUNCHES
"""Blocks of two identical launches per case: the fewest that give a floor for comparisons of 6 launches."""
MOST_BLOCKS = BLOCKS + 2
"""Where launches of a block gave no value, as of a training that did not converge."""


@dataclass(frozen=True, slots=True)
class MissingCalibration:
    """Which floors are measured, by launches of which cases; `earlier` launches say which of them are cheap."""

    suite: Suite
    size: str
    missing: tuple[NeededFloor, ...]
    cases: tuple[AnyCase, ...]
    earlier: Earlier

    @property
    def kinds(self) -> list[LaunchKind]:
        """Kinds of launches that lack a floor."""
        return sorted({needed.kind for needed in self.missing}, key=str)

    @property
    def deadline_s(self) -> float:
        """The longest deadline of the experiments that the cases are from."""
        return max(self.suite.experiment(case.experiment).size(self.size).deadline_s for case in self.cases)

    def launches(self, blocks: int = BLOCKS) -> list[PlannedLaunch]:
        """Block k holds both arms of every case, shuffled."""
        programs, shuffler = str(programs_folder(self.suite.folder).absolute()), random.Random(LAUNCHES)
        arms = [case.changed({"experiment": f"{FLOORS}{twin}"}) for case in self.cases for twin in ARMS]
        launches = list[PlannedLaunch]()
        for index in range(blocks):
            shuffler.shuffle(arms)
            launches += [
                PlannedLaunch(case, index, _seed(self.suite.name, index), index * len(arms) + position, programs)
                for position, case in enumerate(arms)
            ]
        return launches

    def seconds(self, earlier: Earlier) -> float:
        """How long the launches take, about."""
        return sum(2 * BLOCKS * estimate(case, earlier).seconds for case in self.cases)


def missing_calibration(
    suite: Suite, size: str, missing: Sequence[NeededFloor], earlier: Earlier
) -> MissingCalibration:
    """For each kind of launch, at each message size, the cheapest case that some claim has."""
    groups = grouped(missing, lambda needed: (needed.kind, needed.nbytes))
    return MissingCalibration(suite, size, tuple(missing), _cheapest(groups, earlier), earlier)


def _by_metric(calibration: MissingCalibration, profile: MachineProfile) -> MissingCalibration:
    """What the profile still lacks, by the cheapest case of each metric: a launch may lack metrics of its kind."""
    lacking = [needed for needed in calibration.missing if not needed.is_paired(profile)]
    groups = grouped(lacking, lambda needed: (needed.kind, needed.nbytes, needed.metric.name))
    return replace(calibration, cases=_cheapest(groups, calibration.earlier))


def grouped(
    missing: Sequence[NeededFloor], key: Callable[[NeededFloor], tuple[object, ...]]
) -> list[list[NeededFloor]]:
    """By `key`; the smallest group first."""
    groups: dict[tuple[object, ...], list[NeededFloor]] = {}
    for needed in missing:
        groups.setdefault(key(needed), []).append(needed)
    return sorted(groups.values(), key=len)


def _cheapest(groups: Sequence[Sequence[NeededFloor]], earlier: Earlier) -> tuple[AnyCase, ...]:
    """One case for each group; a case that serves two groups is taken once."""
    chosen: dict[str, AnyCase] = {}
    seconds = seconds_of([needed for group in groups for needed in group], earlier)
    for group in groups:
        already = [needed for needed in group if needed.case.case_id in chosen]
        cheapest = min(already or group, key=lambda needed: seconds[needed.case.case_id])
        chosen[cheapest.case.case_id] = cheapest.case
    return tuple(chosen.values())


def seconds_of(missing: Sequence[NeededFloor], earlier: Earlier) -> dict[str, float]:
    """How long a launch of each case takes, about."""
    cases = {needed.case.case_id: needed.case for needed in missing}
    return {case_id: estimate(case, earlier).seconds for case_id, case in cases.items()}


def calibrate_missing(
    calibration: MissingCalibration,
    results: Path,
    progress: Progress,
    allocated: AllocatedNodes | None = None,
) -> tuple[MachineProfile, PlanOutcome]:
    """Run the launches and add their floors to the profile of this machine, or of the nodes `allocated`; a metric that
    got none has launches of a case that some claim with it has, then MOST_BLOCKS blocks. An interrupted one continues.
    SpecError when another run uses the results folder."""
    profile, outcome = _add_floors(calibration, BLOCKS, results, progress, allocated)
    rest = _by_metric(calibration, profile)
    if more := tuple(case for case in rest.cases if case not in calibration.cases):
        calibration = replace(calibration, cases=(*calibration.cases, *more))
        profile, outcome = _add_floors(calibration, BLOCKS, results, progress, allocated)
        rest = _by_metric(calibration, profile)
    if rest.cases and outcome.complete:
        return _add_floors(rest, MOST_BLOCKS, results, progress, allocated)
    return profile, outcome


def _add_floors(
    calibration: MissingCalibration,
    blocks: int,
    results: Path,
    progress: Progress,
    allocated: AllocatedNodes | None,
) -> tuple[MachineProfile, PlanOutcome]:
    machine = machine_id() if allocated is None else allocated.machine
    launches = calibration.launches(blocks)
    outcome = run_plan(
        launches,
        results,
        size=calibration.size,
        deadline_s=calibration.deadline_s,
        progress=progress,
        allocated=allocated,
    )
    floors, runs = noise_floors(launches, Store(results), allocated, suite_metrics(calibration.suite.folder))
    profile = profile_or_new(results, machine).with_floors(floors, runs)
    write_profile(results, profile)
    return profile, outcome


def profile_or_new(results: Path, machine: str) -> MachineProfile:
    """The machine's profile; an empty one where it has none."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return read_profile(results, machine) or MachineProfile(machine=machine, code="", measured_at=now)


def _seed(suite: str, index: int) -> int:
    return int.from_bytes(hashlib.sha256(f"floors/{suite}/{index}".encode()).digest()[:4]) >> 1
