"""Noise floors on generated data with a known noise, the launches of a calibration, and what its command prints."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.calibrate import calibration_run, memory_bandwidth
from scaleproof.calibrate import measured_noise_floors as floors
from scaleproof.calibrate.calibration_run import _interleaved, comparisons_within, plans, suite
from scaleproof.calibrate.loopback_bandwidth import as_our_transport
from scaleproof.calibrate.machine_bounds import Bounds
from scaleproof.calibrate.measured_noise_floors import LAUNCHES, floor_share, floor_share_of_launches, spread
from scaleproof.cli import main
from scaleproof.core.handshake import LOOPBACK_CONGESTION
from scaleproof.launch.progress import progress_on_terminal
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.machine import Bound, Floor, MachineProfile, read_profile, write_profile
from scaleproof.record.store import Store
from scaleproof.stats.compare_arms import detectable
from tests.noise_floors import COLLECTIVE

ROOT = Path(__file__).parents[3]


def noise(generator: np.random.Generator, blocks: int, spread_of_launch: float) -> tuple[np.ndarray, np.ndarray]:
    """Two identical arms on a machine that also drifts by 20 % over the blocks."""
    drift = np.linspace(0, 0.2, blocks)
    first, second = np.exp(drift + generator.normal(0, spread_of_launch, (2, blocks)))
    return first, second


def test_new_comparisons_of_identical_arms_stay_within_the_floor_as_often_as_stated() -> None:
    generator = np.random.default_rng(7)
    inside = []
    for _ in range(20):
        floor = floor_share(*noise(generator, 30, 0.02))
        for _ in range(50):
            first, second = (np.median(arm) for arm in np.exp(generator.normal(0, 0.02, (2, LAUNCHES))))
            inside.append(1 / (1 + floor) <= first / second <= 1 + floor)
    assert 0.90 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("speeds", [1.0, 2.0])
@pytest.mark.parametrize("pairs", [True, False])
def test_six_blocks_or_launches_give_a_floor_that_others_stay_within_as_often_as_stated(
    pairs: bool, speeds: float
) -> None:
    generator = np.random.default_rng(11)

    def launches(*shape: int) -> np.ndarray:
        fast = generator.normal(0, 0.02, shape)
        return np.exp(fast) * np.where(generator.random(shape) < 0.5, speeds, 1.0)

    inside = []
    for _ in range(400):
        floor = floor_share(*launches(2, LAUNCHES)) if pairs else floor_share_of_launches(launches(LAUNCHES))
        first, second = np.median(launches(2, LAUNCHES, 200), axis=1)
        inside.append(np.mean(np.abs(np.log(first / second)) <= np.log1p(floor)))
    assert np.mean(inside) >= (0.94 if pairs else 0.93)


def test_a_floor_says_from_how_many_blocks_it_is() -> None:
    values = {arm: {block: 1.0 + (arm == "a") * block / 100 for block in range(6)} for arm in ("a", "b")}
    made = floors._floor(floors.Key(COLLECTIVE, "algbw", None), "over tcp", values)
    assert made is not None and made.comparisons == 1 and made.code == code_digest()
    assert made.taken.startswith("6 blocks of two identical launches, over tcp; bootstrap over blocks")


def test_a_floor_says_how_many_calls_made_its_blocks() -> None:
    values = {arm: {block: 1.0 + (arm == "a") * block / 100 for block in range(6)} for arm in ("a", "b")}
    calls = dict.fromkeys(range(4), {"before the pause"}) | dict.fromkeys((4, 5), {"after it"})
    made = floors._floor(floors.Key(COLLECTIVE, "algbw", None), "over tcp", values, calls)
    assert made is not None and made.taken.startswith("6 blocks of two identical launches made in 2 calls, over tcp;")


def test_the_floor_grows_with_the_noise_and_shrinks_with_the_launches() -> None:
    quiet, loud = (floor_share(*noise(np.random.default_rng(1), 60, each)) for each in (0.005, 0.05))
    assert loud == pytest.approx(10 * quiet, rel=0.5)
    few, many = (
        np.median([floor_share(*noise(np.random.default_rng(seed), 60, 0.02), launches) for seed in range(9)])
        for launches in (6, 30)
    )
    assert many < 0.7 * few


def test_drift_of_the_machine_is_no_part_of_the_spread() -> None:
    assert spread(*noise(np.random.default_rng(3), 2000, 0.02)) == pytest.approx(0.02, rel=0.1)


def test_equal_launches_have_a_floor_of_nothing_and_too_few_have_none() -> None:
    same = np.full(30, 2.5)
    assert floor_share(same, same) == 0
    with pytest.raises(ValueError, match="5 blocks are fewer than the 6 launches"):
        floor_share(same[:5], same[:5])
    with pytest.raises(ValueError, match="0 or below"):
        floor_share(same, same * 0)
    assert floor_share_of_launches(same) == 0
    with pytest.raises(ValueError, match="5 launches are fewer than the 6 launches"):
        floor_share_of_launches(same[:5])


def test_arms_of_a_calibration_are_identical_but_for_their_names() -> None:
    for name in ("messages", "training"):
        cases = suite().experiment(name).size("full").cases
        assert {case.arm for case in cases} == {"a", "b"}
        twins = Counter(case.model_copy(update={"arm": ""}).canonical() for case in cases)
        assert set(twins.values()) == {2}


def test_blocks_of_a_calibration_hold_every_case_once_in_an_order_of_their_own() -> None:
    ordered = _interleaved(plans(2))
    blocks = [[launch for launch in ordered if launch.plan_index == index] for index in range(12)]
    assert (
        [launch for block in blocks for launch in block] == ordered == sorted(ordered, key=lambda launch: launch.order)
    )
    assert [len(block) for block in blocks] == [10] * 6 + [8] * 6
    assert all(len({launch.case.case_id for launch in block}) == len(block) for block in blocks)
    assert len({tuple(launch.case.case_id for launch in block) for block in blocks[6:]}) > 1


def test_minutes_become_whole_comparisons() -> None:
    assert comparisons_within(0.1) == 1
    assert comparisons_within(3) in (5, 6, 7) and comparisons_within(30) > 9 * comparisons_within(3)


def test_the_bound_of_a_socket_has_the_congestion_control_of_the_transport_that_it_bounds() -> None:
    with socket.socket() as bound:
        as_our_transport(bound)
        used = bound.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    assert used.rstrip(bytes(1)).decode() == LOOPBACK_CONGESTION


@pytest.mark.parametrize(
    ("module", "arguments", "key"),
    [
        ("memory_bandwidth", ["4096"], "copy"),
        ("memory_bandwidth", ["4096"], "message"),
        ("plain_bandwidth", ["4096"], "message"),
        ("loopback_bandwidth", [], "bytes_per_second"),
        ("matrix_product_rate", [], "flop_per_second"),
    ],
)
def test_programs_of_the_bounds_print_what_they_measured(module: str, arguments: list[str], key: str) -> None:
    process = subprocess.run(
        [sys.executable, "-m", f"scaleproof.calibrate.{module}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    measured = json.loads(process.stdout)[key]
    assert (measured["4096"] if isinstance(measured, dict) else measured) > 0


def test_a_bound_is_the_fastest_launch_and_shows_the_slowest() -> None:
    measured = Bounds()
    by_size = (measured.copy, measured.all_reduce, measured.plain_copy, measured.plain_all_reduce)
    for rates in (*(rates for sizes in by_size for rates in sizes.values()), measured.loopback, measured.flop):
        rates += [4e9, 5e9, 1e9]
    assert {(bound.value, bound.low, bound.high, bound.n) for bound in measured.bounds()} == {(5e9, 1e9, 5e9, 3)}


def test_one_fast_repetition_decides_the_bound_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [5e-6, *[3e-6] * (memory_bandwidth.REPETITIONS - 2), 1e-6]
    monkeypatch.setattr(memory_bandwidth, "copies", lambda target, source: iter(times))
    assert memory_bandwidth.copy_seconds(np.empty(1), np.empty(1)) == 1e-6


def profile() -> MachineProfile:
    floor = Floor(
        metric="algbw",
        kind=COLLECTIVE,
        nbytes=1024,
        share=0.031,
        spread=0.02,
        launches_per_arm=6,
        comparisons=5,
        taken="t",
    )
    bound = Bound(name="loopback", value=4e9, low=3.5e9, high=4.25e9, n=6, unit="B/s", taken="how it was taken")
    return MachineProfile(
        machine=machine_id(), code="d", measured_at="2026-01-01T00:00:00+00:00", floors=(floor,), bounds=(bound,)
    )


def test_show_prints_noise_floors_detectable_differences_and_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_profile(tmp_path, profile())
    assert main(["calibrate", "--show", "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "resolution" in printed and str(COLLECTIVE) in printed
    assert all(f"from {detectable(0.02, launches, True, floor=0.031):.1%}" in printed for launches in (6, 10))
    assert "algbw" in printed and "3.1%" in printed and "4 GB/s" in printed and "3.5 to 4.25" in printed
    assert "calibrate again" in printed  # measured by other code


def test_show_says_when_the_machine_was_never_calibrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--show", "--results", str(tmp_path)]) == 1
    assert "type `scaleproof calibrate`" in capsys.readouterr().err


def test_a_profile_of_another_form_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_profile(tmp_path, profile()).write_text("{}")
    assert main(["calibrate", "--show", "--results", str(tmp_path)]) == 2
    assert "no profile of this version; `scaleproof calibrate` writes a new one" in capsys.readouterr().err


def test_a_dry_run_lists_the_launches_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--dry-run", "--comparisons", "1", "--results", str(tmp_path / "r")]) == 0
    printed = capsys.readouterr().out
    assert "calibration messages full: 8 cases, 48 launches" in printed and "60 launches, about" in printed
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("option", [["--minutes", "0"], ["--comparisons", "0"]])
def test_a_calibration_without_comparisons_is_an_error(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", *option, "--results", str(tmp_path)]) == 2
    assert "at least one comparison" in capsys.readouterr().err


def test_floors_of_several_nodes_come_from_launches_on_those_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested_nodes = []

    def finished_launches(case_id: str, count: int, store: Store, allocated: Any) -> list[Any]:
        requested_nodes.append(allocated)
        return []

    monkeypatch.setattr(floors, "finished_launches", finished_launches)
    nodes: Any = object()
    assert floors.noise_floors(plans(1)["messages"][:2], Store(tmp_path), nodes) == ([], [])
    assert requested_nodes and all(allocation is nodes for allocation in requested_nodes)


def test_a_calibration_keeps_the_floors_that_suites_needed_besides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_suite = profile().floors[0].model_copy(update={"code": code_digest()})
    earlier = profile().model_copy(update={"code": "", "floors": (of_suite,)})
    write_profile(tmp_path, earlier)
    again: list[bool] = []
    monkeypatch.setattr(calibration_run, "_measure", lambda *_: None)
    monkeypatch.setattr(calibration_run, "Bounds", lambda: SimpleNamespace(bounds=tuple))
    monkeypatch.setattr(calibration_run, "run_plan", lambda *_, **options: again.append(options["again"]))
    monkeypatch.setattr(calibration_run, "noise_floors", lambda *_: ([], []))
    measured, _ = calibration_run.calibrate(tmp_path, 1, progress_on_terminal("calibrate"), lambda _: None)
    assert measured.floors == (of_suite,) and read_profile(tmp_path, machine_id()) == measured
    assert again == [False]  # what suites needed is no calibration that was completed
