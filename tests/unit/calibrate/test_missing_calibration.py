"""Noise floors that a suite's claims need: which are missing, which launches measure them, and what they leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.calibrate.measured_noise_floors import noise_floors
from scaleproof.calibrate.missing_calibration import (
    BLOCKS,
    MOST_BLOCKS,
    MissingCalibration,
    calibrate_missing,
    missing_calibration,
)
from scaleproof.calibrate.needed_floors import missing_floors, needed_floors
from scaleproof.claims.metrics import METRICS
from scaleproof.cli import main
from scaleproof.launch.obstacle import Obstacle
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.progress import Silent
from scaleproof.record.digest import machine_id
from scaleproof.record.machine import Floor, write_profile
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase
from scaleproof.spec.estimate import Earlier
from scaleproof.spec.launch_kind import LaunchKind
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite, load_suite
from tests.noise_floors import floor, profile_of
from tests.unit.claims.test_judge import SPEEDUP, SUITE, commit

REAL = LaunchKind(program="train", compute="real", way="loopback", transport="gloo", ranks=2)
ALONE = LaunchKind(program="train", compute="real", way="no exchange", ranks=1)
KIB, SUITES = 1 << 10, Path(__file__).parents[3] / "suites"
LOSS: dict[str, Any] = {
    **{name: value for name, value in SPEEDUP.items() if name != "against"},
    "id": "mine.own.loss",
    "metric": "final_loss",
    "unit": "nat",
    "rule": {"name": "at_most", "value": 1},
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A claim about a speed-up over one rank, and one about a loss, on a machine with cores for all threads."""
    monkeypatch.setattr("scaleproof.calibrate.needed_floors.usable_cores", lambda: 8)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "suite.yaml").write_text(SUITE)
    (tmp_path / "mine" / "claims.yaml").write_text(yaml.safe_dump([SPEEDUP, LOSS]))
    return load_suite("mine", tmp_path)


def test_timings_need_the_floor_of_the_base_metric_on_each_side(suite: Suite) -> None:
    needed = needed_floors(suite, "smoke")
    assert {(each.kind, each.claim) for each in needed} == {(REAL, "mine.own.speedup"), (ALONE, "mine.own.speedup")}


def test_only_what_the_profile_lacks_is_missing(suite: Suite) -> None:
    assert {each.kind for each in missing_floors(suite, "smoke", None)} == {REAL, ALONE}
    known = profile_of(floor("throughput", REAL))
    assert {each.kind for each in missing_floors(suite, "smoke", known)} == {ALONE}
    other_metric = profile_of(floor("step_s", REAL), floor("throughput", ALONE))
    assert {each.kind for each in missing_floors(suite, "smoke", other_metric)} == {REAL}


def test_each_kind_is_measured_once_with_two_identical_arms_in_every_block(suite: Suite) -> None:
    calibration = missing_calibration(suite, "smoke", missing_floors(suite, "smoke", None), Earlier())
    launches = calibration.launches()
    assert len(launches) == 2 * 2 * BLOCKS and {launch.case.arm for launch in launches} == {"alone", "gloo"}
    block = [launch.case for launch in launches if launch.plan_index == 3]
    assert len({case.case_id for case in block}) == 4 and len({launch.seed for launch in launches}) == BLOCKS
    assert len({case.model_copy(update={"experiment": ""}).canonical() for case in block}) == 2


def test_the_cheapest_case_of_a_kind_is_measured(suite: Suite) -> None:
    missing = missing_floors(suite, "smoke", None)
    slow = Earlier({each.case.case_id: [1000.0] for each in missing if each.case.arm == "gloo"})
    assert "gloo" in {case.arm for case in missing_calibration(suite, "smoke", missing, Earlier()).cases}
    assert missing_calibration(suite, "smoke", missing, slow).seconds(slow) >= 2 * BLOCKS * 1000


def test_a_kind_whose_launches_gave_no_value_in_a_block_gets_more_blocks(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[dict[str, int]] = []

    def run(launches: Sequence[PlannedLaunch], *_: object, **__: object) -> PlanOutcome:
        ran.append(Counter(launch.case.arm for launch in launches))
        return PlanOutcome(planned=len(launches), completed=len(launches))

    def floors(launches: Sequence[PlannedLaunch], *_: object) -> tuple[list[Floor], list[str]]:
        known = [floor("throughput", REAL), floor("throughput", ALONE)]
        return known if len(ran) > 1 else known[1:], []

    monkeypatch.setattr("scaleproof.calibrate.missing_calibration.run_plan", run)
    monkeypatch.setattr("scaleproof.calibrate.missing_calibration.noise_floors", floors)
    calibration = missing_calibration(suite, "smoke", missing_floors(suite, "smoke", None), Earlier())
    profile, outcome = calibrate_missing(calibration, tmp_path, Silent())
    assert ran == [{"alone": 2 * BLOCKS, "gloo": 2 * BLOCKS}, {"gloo": 2 * MOST_BLOCKS}]
    assert not missing_floors(suite, "smoke", profile) and outcome.complete


@pytest.mark.parametrize(("given", "runs"), [({"throughput", "exposed_transfer_s"}, 1), ({"throughput"}, 2)])
def test_one_case_of_a_kind_is_measured_for_all_metrics_and_another_only_for_what_it_lacks(
    given: set[str], runs: int, suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[set[int]] = []

    def run(launches: Sequence[PlannedLaunch], *_: object, **__: object) -> PlanOutcome:
        ran.append({launch.case.value("steps") for launch in launches})
        return PlanOutcome(planned=len(launches), completed=len(launches))

    def floors(*_: object) -> tuple[list[Floor], list[str]]:
        return [floor(metric, REAL) for metric in (given if len(ran) == 1 else {"exposed_transfer_s"})], []

    monkeypatch.setattr("scaleproof.calibrate.missing_calibration.run_plan", run)
    monkeypatch.setattr("scaleproof.calibrate.missing_calibration.noise_floors", floors)
    cheap = next(each for each in missing_floors(suite, "smoke", None) if each.kind == REAL)
    dear = replace(cheap, metric=METRICS["exposed_transfer_s"], case=cheap.case.changed({"steps": 20}))
    calibration = missing_calibration(suite, "smoke", [cheap, dear], Earlier())
    calibrate_missing(calibration, tmp_path, Silent())
    assert ran == [{2}, {2, 20}][:runs]


def test_earlier_launches_say_which_case_of_a_lacking_metric_is_the_cheapest(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[set[int]] = []

    def run(launches: Sequence[PlannedLaunch], *_: object, **__: object) -> PlanOutcome:
        ran.append({launch.case.value("steps") for launch in launches})
        return PlanOutcome(planned=len(launches), completed=len(launches))

    monkeypatch.setattr("scaleproof.calibrate.missing_calibration.run_plan", run)
    monkeypatch.setattr(
        "scaleproof.calibrate.missing_calibration.noise_floors",
        lambda *_: ([floor("throughput" if len(ran) == 1 else "exposed_transfer_s", REAL)], []),
    )
    first = next(each for each in missing_floors(suite, "smoke", None) if each.kind == REAL)
    others = [
        replace(first, metric=METRICS["exposed_transfer_s"], case=first.case.changed({"steps": steps}))
        for steps in (20, 21)
    ]
    took = dict(zip((first.case.case_id, *(each.case.case_id for each in others)), (1.0, 9.0, 2.0), strict=True))
    earlier = Earlier({case_id: [seconds] for case_id, seconds in took.items()})
    calibrate_missing(missing_calibration(suite, "smoke", [first, *others], earlier), tmp_path, Silent())
    assert ran == [{2}, {2, 21}]


def test_two_cases_of_one_kind_are_not_paired_with_each_other(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "results")
    monkeypatch.setattr(
        "scaleproof.calibrate.measured_noise_floors.finished_launches", lambda case_id, *_: store.records(case_id)
    )
    needed = next(each for each in missing_floors(suite, "smoke", None) if each.kind == REAL)
    cases = needed.case, needed.case.changed({"minibatch": 16})
    launches = MissingCalibration(suite, "smoke", (needed,), cases, Earlier()).launches()
    for launch in launches:
        commit(store, launch, 100.0 if launch.case.value("minibatch") == 8 else 300.0, {})
    # The case that comes last is another one of each arm.
    launches.sort(key=lambda each: (each.case.value("minibatch") == 8) == (each.case.experiment == "floors_a"))
    assert {launch.case.experiment for launch in launches} == {"floors_a", "floors_b"}
    assert {floor.share for floor in noise_floors(launches, store)[0]} == {0}


def test_a_dry_run_names_the_kinds_and_says_how_long_they_take(
    suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--size", "smoke", "--suites", str(tmp_path), "--results", str(tmp_path / "results"), "--dry-run"]
    assert main(["calibrate", "mine", *options]) == 0
    printed = capsys.readouterr().out
    assert str(REAL) in printed and str(ALONE) in printed and f"{4 * BLOCKS} launches, about" in printed
    assert not (tmp_path / "results").exists()


def test_a_dry_run_of_the_suite_counts_the_claims_without_a_floor(
    suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaleproof.record.host.usable_cores", lambda: 8)
    known = profile_of(floor("throughput", REAL), floor("throughput", ALONE))
    printed = []
    for profile in (profile_of(floor("step_s", REAL)), known):
        write_profile(tmp_path / "results", profile.model_copy(update={"machine": machine_id()}))
        options = ["--size", "smoke", "--suites", str(tmp_path), "--results", str(tmp_path / "results"), "--dry-run"]
        assert main(["run", "mine", *options]) == 0
        printed.append(capsys.readouterr().out)
    assert "1 of 2 claims lack a noise floor" in printed[0] and "calibrate mine --size smoke" in printed[0]
    assert "lack a noise floor" not in printed[1]


def test_a_dry_run_of_the_suite_names_the_claims_that_this_machine_cannot_decide(
    suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaleproof.record.host.usable_cores", lambda: 8)
    near = {**SPEEDUP, "rule": {"name": "ratio", "low": 0.95, "high": 1.05}}
    (suite.folder / "claims.yaml").write_text(yaml.safe_dump([near, LOSS]))
    printed = []
    for share in (0.22, 0.01):
        floors = [floor("throughput", kind, share=share, spread=0.001) for kind in (REAL, ALONE)]
        write_profile(tmp_path / "results", profile_of(*floors, machine=machine_id()))
        options = ["--size", "smoke", "--suites", str(tmp_path), "--results", str(tmp_path / "results"), "--dry-run"]
        assert main(["run", "mine", *options]) == 0
        printed.append(capsys.readouterr().out)
    sentence = "mine.own.speedup: cannot be decided on this machine: resolution 22.1 %, effect 5.13 %; "
    assert sentence in printed[0] and "cannot be decided" not in printed[1]


def test_floors_that_the_launches_did_not_give_are_named_and_where_to_look_why(
    suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = profile_of(floor("throughput", ALONE)), PlanOutcome(planned=40, completed=37, failed=3)
    monkeypatch.setattr("scaleproof.calibrate.missing_calibration.calibrate_missing", lambda *_: ran)
    options = ["--size", "smoke", "--suites", str(tmp_path), "--results", str(tmp_path / "results")]
    assert main(["calibrate", "mine", *options]) == 1
    printed = capsys.readouterr().out
    assert "3 launches failed; see why: scaleproof results list suite:mine status:failed" in printed
    assert printed.rindex("without a noise floor") > printed.index("noise floors and resolution")


def test_both_sides_of_a_control_need_floors(suite: Suite, tmp_path: Path) -> None:
    control = {"statement": "s", "select": {"arm": "tcp"}, "against": {"arm": "alone", "ranks": 2}}
    (tmp_path / "mine" / "claims.yaml").write_text(yaml.safe_dump([{**SPEEDUP, "control": control}]))
    needed = {str(each.kind) for each in needed_floors(load_suite("mine", tmp_path), "smoke")}
    assert {
        "train, real compute, 2 ranks over tcp (loopback)",
        "train, real compute, 2 ranks without exchange",
    } < needed


def test_floors_of_cases_that_cannot_run_here_are_not_missing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    def obstacle(case: AnyCase, *_: object) -> Obstacle | None:
        return Obstacle("gloo is not here", "a") if case.transport == "gloo" else None

    monkeypatch.setattr("scaleproof.calibrate.needed_floors.obstacle", obstacle)
    assert {each.kind for each in missing_floors(suite, "smoke", None)} == {ALONE}


def test_a_message_size_far_from_those_with_a_floor_is_missing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    each = next(each for each in needed_floors(suite, "smoke") if each.kind == REAL)
    of_sizes = [replace(each, nbytes=nbytes) for nbytes in (4, 1024)]
    monkeypatch.setattr("scaleproof.calibrate.needed_floors.needed_floors", lambda *_: of_sizes)
    known = profile_of(floor("throughput", REAL, 1024))
    assert [missing.nbytes for missing in missing_floors(suite, "smoke", known)] == [4]


def test_a_case_without_the_message_size_of_a_claim_gives_no_floor_for_it() -> None:
    needed = [each for each in needed_floors(load_suite("crosscheck", SUITES), "small") if each.nbytes == 128 * KIB]
    assert needed and all(128 * KIB in each.case.value("sizes") for each in needed)
