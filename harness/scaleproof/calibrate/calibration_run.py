"""A calibration: identical arms interleaved, bounds measured before and after them, one machine profile."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from scaleproof.calibrate.machine_bounds import LAUNCHES as BOUND_LAUNCHES
from scaleproof.calibrate.machine_bounds import Bounds
from scaleproof.calibrate.measured_noise_floors import LAUNCHES, noise_floors
from scaleproof.launch.nodes.allocated_nodes import AllocatedNodes
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.progress import Progress
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.machine import MachineProfile, read_profile, write_profile
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite, load_suite

FOLDER = Path(__file__).parent / "calibration"
SIZE = "full"
COMPARISONS = 5
TRAINING_SHARE = 0.4
"""Share of the blocks that also hold trainings: a training takes as long as the rest of its block."""
DEADLINE_S = 120.0
BLOCK_S, TRAINING_BLOCK_S, BOUNDS_S = 2.6, 4.4, 12.0
"""Time of a block, of its trainings and of all bounds on two cores; for the number of comparisons that fit into a given
time."""


def suite() -> Suite:
    """The cases of a calibration."""
    return load_suite(FOLDER)


def comparisons_within(minutes: float) -> int:
    """How many comparisons fit into this time, at least one."""
    return max(1, int((minutes * 60 - BOUNDS_S) / (LAUNCHES * (BLOCK_S + TRAINING_SHARE * TRAINING_BLOCK_S))))


def plans(comparisons: int = COMPARISONS) -> dict[str, list[PlannedLaunch]]:
    """Launches by experiment: `comparisons` times 6 blocks of messages, 0.4 as many of trainings."""
    calibration, blocks = suite(), comparisons * LAUNCHES
    counts = {"messages": blocks, "training": max(LAUNCHES, math.ceil(TRAINING_SHARE * blocks))}
    cases = {name: calibration.experiment(name).size(SIZE).cases for name in counts}
    return {
        name: plan(calibration, name, SIZE, {case.case_id: count for case in cases[name]})
        for name, count in counts.items()
    }


def calibrate(
    results: Path,
    comparisons: int,
    progress: Progress,
    note: Callable[[str], None],
    allocated: AllocatedNodes | None = None,
) -> tuple[MachineProfile, PlanOutcome]:
    """Measure and store the profile of this machine, or of the nodes `allocated` together, which have floors only. A
    calibration that was interrupted continues; after a complete one everything is measured again, while floors that
    suites needed besides stay. `note` is called with lines for the user. SpecError when another run uses the results
    folder."""
    machine = machine_id() if allocated is None else allocated.machine
    earlier = _earlier(results, machine)
    again = earlier is not None and earlier.code == code_digest()
    launches = _interleaved(plans(comparisons))
    bounds = Bounds()
    if allocated is None:
        _measure(bounds, BOUND_LAUNCHES // 2, note)
    outcome = run_plan(
        launches, results, size=SIZE, deadline_s=DEADLINE_S, progress=progress, again=again, allocated=allocated
    )
    if allocated is None:
        _measure(bounds, BOUND_LAUNCHES - BOUND_LAUNCHES // 2, note)
    floors, runs = noise_floors(launches, Store(results), allocated)
    profile = MachineProfile(
        machine=machine,
        code=code_digest(),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        floors=tuple(floors),
        bounds=bounds.bounds() if allocated is None else (),
        runs=tuple(runs),
    )
    profile = profile.keeping(earlier) if earlier else profile
    write_profile(results, profile)
    return profile, outcome


def _earlier(results: Path, machine: str) -> MachineProfile | None:
    """The profile before; one in the form of another version counts as none."""
    try:
        return read_profile(results, machine)
    except SpecError:
        return None


def _measure(bounds: Bounds, launches: int, note: Callable[[str], None]) -> None:
    note(f"bounds of memory and loopback: {launches} launches")
    for _ in range(launches):
        bounds.launch()


def _interleaved(planned: dict[str, list[PlannedLaunch]]) -> list[PlannedLaunch]:
    """Both experiments in one order: block k holds repetition k of every case, shuffled."""
    all_launches = [launch for launches in planned.values() for launch in launches]
    shuffler, ordered = random.Random(LAUNCHES), list[PlannedLaunch]()
    for index in range(max(launch.plan_index for launch in all_launches) + 1):
        block = [launch for launch in all_launches if launch.plan_index == index]
        shuffler.shuffle(block)
        ordered += block
    return [replace(launch, order=order) for order, launch in enumerate(ordered)]
