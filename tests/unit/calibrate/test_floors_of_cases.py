"""Noise floors from a suite's own launches: which launches give one, of which case, and what a calibration then still
launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.calibrate import floors_of_cases as module
from scaleproof.calibrate.floors_of_cases import floors_of_cases
from scaleproof.calibrate.floors_of_plan import made_launches, to_measure, with_floors_of_plan
from scaleproof.calibrate.measured_noise_floors import floor_share_of_launches
from scaleproof.calibrate.needed_floors import NeededFloor, missing_floors
from scaleproof.cli import main
from scaleproof.core.record_schema import Record, Warning
from scaleproof.record.digest import machine_id
from scaleproof.record.machine import MachineProfile, read_profile
from scaleproof.record.store import Store
from scaleproof.spec.estimate import Earlier
from scaleproof.spec.launch_kind import LaunchKind
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite
from tests.noise_floors import floor, profile_of
from tests.unit.claims.test_judge import SPEEDUP, a_suite, commit

REAL = LaunchKind(program="train", compute="real", way="loopback", transport="gloo", ranks=2)
ALONE = LaunchKind(program="train", compute="real", way="no exchange", ranks=1)
LENGTHS = 100.0, 101.0, 99.0, 103.0, 100.5, 98.0
"""Of a step, ms, in six launches."""


@pytest.fixture(autouse=True)
def _all_launches_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def finished(case_id: str, repetitions: int, store: Store, *_: object) -> list[Record]:
        return sorted(store.records(case_id), key=lambda record: record.plan_index)[:repetitions]

    monkeypatch.setattr(module, "finished_launches", finished)
    monkeypatch.setattr("scaleproof.calibrate.floors_of_plan.finished_launches", finished)
    monkeypatch.setattr("scaleproof.calibrate.needed_floors.usable_cores", lambda: 8)


def run(
    tmp_path: Path, length: Callable[[PlannedLaunch], float | None], **fields: Any
) -> tuple[Suite, list[PlannedLaunch], Store]:
    """The launches of a suite whose steps take `length`, ms; None: a launch that is missing. `fields`: of records."""
    suite, store = a_suite(tmp_path, SPEEDUP), Store(tmp_path / "results")
    planned = plan(suite, "speed", "smoke")
    for launch in planned:
        made = length(launch)
        if made is not None:
            commit(store, launch, made, fields)
    return suite, planned, store


def of_arm(planned: Sequence[PlannedLaunch], arm: str, ranks: int) -> list[PlannedLaunch]:
    return [launch for launch in planned if launch.case.arm == arm and launch.case.ranks == ranks]


def from_plan(profile: MachineProfile, suite: Suite, missing: list[NeededFloor], store: Store) -> MachineProfile:
    made = made_launches(suite, "smoke", missing, store)
    return with_floors_of_plan(profile, suite, missing, made, Earlier(), store)


def test_six_launches_of_a_case_give_the_floor_of_their_values(tmp_path: Path) -> None:
    _, planned, store = run(tmp_path, lambda launch: LENGTHS[launch.plan_index])
    gloo = of_arm(planned, "gloo", 2)
    floors, runs = floors_of_cases(gloo, store)
    (throughput,) = [floor for floor in floors if floor.metric == "throughput"]
    assert throughput.share == pytest.approx(floor_share_of_launches(1 / np.array(LENGTHS)))
    assert throughput.spread == pytest.approx(np.std(np.log(LENGTHS), ddof=1))
    assert throughput.kind == REAL and len(runs) == 6 and throughput.code == "d"
    assert throughput.taken == "6 launches of one case, cd_dnn over gloo; bootstrap over launches, 6 an arm"
    assert not throughput.paired


def test_five_launches_give_no_floor(tmp_path: Path) -> None:
    _, planned, store = run(tmp_path, lambda launch: None if launch.plan_index == 2 else 100.0)
    assert floors_of_cases(of_arm(planned, "gloo", 2), store)[0] == []


def test_of_two_cases_of_one_kind_the_noisiest_counts_where_both_are_asked_for(tmp_path: Path) -> None:
    suite, planned, store = run(tmp_path, lambda launch: LENGTHS[launch.plan_index] ** (1 + (launch.case.arm == "tcp")))
    shares = {
        arm: {floor.metric: floor.share for floor in floors_of_cases(of_arm(planned, arm, 2), store)[0]}["throughput"]
        for arm in ("gloo", "tcp")
    }
    assert shares["tcp"] > 1.5 * shares["gloo"]


def test_each_missing_floor_comes_from_one_case_with_six_launches(tmp_path: Path) -> None:
    suite, _, store = run(tmp_path, lambda launch: LENGTHS[launch.plan_index])
    missing = missing_floors(suite, "smoke", None)
    assert {needed.kind for needed in missing} == {REAL, ALONE}
    profile = from_plan(profile_of(), suite, missing, store)
    assert {floor.kind for floor in profile.floors if floor.metric == "throughput"} == {REAL, ALONE}
    assert len(profile.runs) == 12


def test_a_floor_of_paired_arms_stays_and_comes_in_place_of_one_without_pairs(tmp_path: Path) -> None:
    suite, _, store = run(tmp_path, lambda launch: LENGTHS[launch.plan_index])
    paired = floor("throughput", REAL, share=0.001)
    known = profile_of(paired)
    profile = from_plan(known, suite, missing_floors(suite, "smoke", known), store)
    shares = {floor.kind: floor.share for floor in profile.floors if floor.metric == "throughput"}
    assert shares[REAL] == 0.001 and 0 < shares[ALONE] < 0.1
    everything = missing_floors(suite, "smoke", None)
    without = from_plan(profile_of(), suite, everything, store)
    merged = without.with_floors([paired], [])
    assert {floor.share for floor in merged.floors if (floor.metric, floor.kind) == ("throughput", REAL)} == {0.001}


@pytest.mark.parametrize(("alone", "measured"), [(2.2, False), (1.53, True), (1.0, False)])
def test_floors_that_change_no_verdict_are_not_measured(tmp_path: Path, alone: float, measured: bool) -> None:
    def length(launch: PlannedLaunch) -> float:
        return LENGTHS[launch.plan_index] * (alone if launch.case.ranks == 1 else 1)

    suite, _, store = run(tmp_path, length)
    missing = missing_floors(suite, "smoke", None)
    profile = from_plan(profile_of(), suite, missing, store)
    made = made_launches(suite, "smoke", missing, store)
    assert bool(to_measure(missing, made, profile, suite, "smoke", store)) == measured


def test_a_claim_without_launches_has_its_floors_measured(tmp_path: Path) -> None:
    suite, _, store = run(tmp_path, lambda launch: None)
    missing = missing_floors(suite, "smoke", None)
    made = made_launches(suite, "smoke", missing, store)
    assert to_measure(missing, made, profile_of(), suite, "smoke", store) == missing


def test_where_no_launch_counts_no_floor_is_measured(tmp_path: Path) -> None:
    saturated = Warning(code="saturated", message="m", advice="a")
    suite, _, store = run(tmp_path, lambda launch: LENGTHS[launch.plan_index], warnings=[saturated])
    missing = missing_floors(suite, "smoke", None)
    made = made_launches(suite, "smoke", missing, store)
    assert missing and to_measure(missing, made, profile_of(), suite, "smoke", store) == []


def test_the_command_launches_nothing_where_the_launches_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_launches(*_: Any, **__: Any) -> None:
        raise AssertionError("launched")

    monkeypatch.setattr("scaleproof.calibrate.missing_calibration.run_plan", no_launches)
    run(tmp_path, lambda launch: LENGTHS[launch.plan_index] * (2.2 if launch.case.ranks == 1 else 1))
    options = ["--size", "smoke", "--suites", str(tmp_path), "--results", str(tmp_path / "results")]
    assert main(["calibrate", "mine", *options, "--dry-run"]) == 0
    assert read_profile(tmp_path / "results", machine_id()) is None
    assert main(["calibrate", "mine", *options]) == 0
    assert "the launches of mine decide its claims: no noise floor has to be measured" in capsys.readouterr().out
    profile = read_profile(tmp_path / "results", machine_id())
    assert profile is not None and {floor.kind for floor in profile.floors} == {REAL, ALONE}
