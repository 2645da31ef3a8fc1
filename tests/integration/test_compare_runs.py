"""Real launches: an injected slowdown is found as a regression, a set against itself is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.digest import machine_id
from scaleproof.record.machine import Floor, MachineProfile, write_profile
from scaleproof.spec.plan import PlannedLaunch
from tests.integration.launches import Timekeeper, launches, small_case
from tests.noise_floors import COLLECTIVE

BLOCKS = 10
FLOOR = 0.05
"""Stated for the test, not measured: a twentieth of the injected slowdown."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms in one interleaved run; every call of the second lasts twice as long."""
    folder = tmp_path_factory.mktemp("compare") / "results"
    fields = {"transport": "tcp", "sizes": [1 << 18], "iterations": 40}
    cases = [small_case("plain", **fields), small_case("slow", handicap=1.0, **fields)]
    planned = [launch for block in range(BLOCKS) for launch in _block(cases, block)]
    run_plan(planned, folder, size="ci", deadline_s=60.0, progress=Timekeeper())
    floor = Floor(
        metric="collective_latency",
        kind=COLLECTIVE,
        nbytes=1 << 18,
        share=FLOOR,
        spread=FLOOR / 2,
        launches_per_arm=BLOCKS,
        comparisons=1,
        taken="stated",
    )
    write_profile(folder, MachineProfile(machine=machine_id(), code="", measured_at="", floors=(floor,)))
    return folder


def _block(cases: list[Any], block: int) -> list[PlannedLaunch]:
    """Both arms of a block have its seed, as in a suite's plan; every other block begins with the second."""
    made = launches(cases if block % 2 else cases[::-1])
    return [
        replace(launch, plan_index=block, seed=100 + block, order=2 * block + index)
        for index, launch in enumerate(made)
    ]


def compare(results: Path, a: str, b: str) -> int:
    return main(
        ["compare", a, b, "--metric", "collective_latency", "--fail-on", "regression", "--results", str(results)]
    )


def test_an_injected_slowdown_is_a_regression(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(results, "@arm:plain,handicap:0", "@arm:slow,handicap:1") == 1
    printed = capsys.readouterr().out
    assert "handicap: 0 in A, 1 in B" in printed and " regression" in printed and "block by block" in printed
    assert compare(results, "@arm:slow,handicap:1", "@arm:plain,handicap:0") == 0


def test_a_set_against_itself_is_none(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(results, "@arm:plain", "@arm:plain") == 0
    assert "environment: no difference" in capsys.readouterr().out


def test_the_slowdown_is_never_compared_silently(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(results, "@arm:plain", "@arm:slow") == 2
    assert "differs in handicap (0 here, 1 there)" in capsys.readouterr().out
