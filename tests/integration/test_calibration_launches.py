"""Calibration and sequential stopping on real launches, and a rate that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.calibrate import calibration_run as measure
from scaleproof.calibrate.measured_noise_floors import LAUNCHES
from scaleproof.cli import main
from scaleproof.record.digest import machine_id
from scaleproof.record.machine import Bound, read_profile, write_profile
from scaleproof.record.stops import read_stops
from scaleproof.spec.case import TransferCase

SUITE = """\
suite: x
title: t
experiments:
  e:
    summary: s
    base: {program: transfer, ranks: 2, sizes: [64], iterations: 3}
    arms: {shm: {transport: shm}}
    sizes:
      smoke:
        launches: 2
        stop: {metric: transfer_latency, nbytes: 64, target: 0.000001, budget: 4}
        matrix: [{arms: [shm]}]
"""


def test_a_calibration_measures_floors_and_bounds_and_keeps_the_launches_behind_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [
        launch
        for launch in measure.plans(1)["messages"]
        if isinstance(launch.case, TransferCase) and launch.case.transport == "shm"
    ]
    monkeypatch.setattr(measure, "plans", lambda comparisons: {"messages": expected})
    monkeypatch.setattr(measure, "BOUND_LAUNCHES", 1)
    assert main(["calibrate", "--comparisons", "1", "--results", str(tmp_path)]) == 0
    profile = read_profile(tmp_path, machine_id())
    assert profile is not None and len(profile.runs) == len(expected) == 2 * LAUNCHES
    assert {(floor.metric, floor.nbytes) for floor in profile.floors} == {
        (metric, size)
        for metric in ("transfer_latency", "transfer_bandwidth", "first_call_s")
        for size in (1 << 10, 64 << 10, 1 << 20, 16 << 20)
    }
    assert all(
        floor.share >= 0 and floor.launches_per_arm == LAUNCHES and "6 blocks" in floor.taken
        for floor in profile.floors
    )
    assert {bound.name for bound in profile.bounds} == {
        "memory_copy",
        "plain_memory_copy",
        "two_rank_all_reduce",
        "plain_two_rank_all_reduce",
        "loopback",
        "single_core_flop",
    }
    assert all(bound.n == 1 and bound.value > 0 for bound in profile.bounds)
    assert {path.name for path in (tmp_path / "runs").glob("*/*")} == set(profile.runs)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder beside a suite."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "suite.yaml").write_text(SUITE)
    return tmp_path / "results"


def command(results: Path, *arguments: str) -> int:
    return main(
        [*arguments[:1], str(results.parent / "x"), *arguments[1:], "--size", "smoke", "--results", str(results)]
    )


def test_launches_go_on_to_the_budget_are_not_repeated_and_the_table_says_what_decided(results: Path) -> None:
    assert command(results, "run") == 0
    made = sorted((results / "runs").glob("*/*"))
    stops = read_stops(results, "x", "e", "smoke")
    assert (
        len(made) == 4
        and stops is not None
        and [(case.decided, case.launches) for case in stops.cases] == [("budget spent", 4)]
    )
    assert command(results, "run") == 0 and sorted((results / "runs").glob("*/*")) == made
    assert command(results, "collect", "e") == 0
    table: Any = pd.read_parquet(results / "tables" / "x.e.smoke.parquet")
    assert (
        list(table["stop"]) == ["budget spent"] * 4
        and list(table["status"]) == ["ok"] * 4
        and len(set(table["order"])) == 4
    )


def test_a_launch_that_is_faster_than_its_machines_memory_fails(results: Path) -> None:
    slow = Bound(
        name="memory_copy",
        nbytes=64,
        value=1.0,
        low=1.0,
        high=1.0,
        n=6,
        unit="B/s",
        taken="a machine that copies one byte a second",
    )
    profile = measure.MachineProfile(
        machine=machine_id(), code="d", measured_at="2026-01-01T00:00:00+00:00", bounds=(slow,)
    )
    write_profile(results, profile)
    assert command(results, "run", "--launch", "0") == 1
    record = json.loads(next((results / "runs").glob("*/*/run.json")).read_text())
    assert record["status"] == "failed" and record["failure"]["code"] == "impossible_value"
    assert "64 B" in record["failure"]["message"]
