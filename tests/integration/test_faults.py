"""Ranks that fail at random steps on real processes: the launch ends soon, says why, leaves nothing, and the next one
runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.watch import failure_signs
from scaleproof.record.store import Store
from tests.integration.faulty.faulty_program import fault_of
from tests.integration.launches import (
    WITHIN_S,
    Timekeeper,
    assert_nothing_left,
    launches,
    small_case,
    use_faulty_program,
)

TIMES = 20
SOON_S, QUIET_S = 0.3, 4.0
"""How long a rank may be stopped, and be silent, where tests wait for that; one test of stops waits as long as a user
does."""


def run(
    tmp_path: Path, fault: str, cases: list, repetitions: int, deadline_s: float = 30.0
) -> tuple[PlanOutcome, list[Record], dict[str, float]]:
    """Run a plan in which one rank of each faulty launch fails; returns its records and the seconds from each fault to
    its record."""
    watch, results = Timekeeper(), tmp_path / "results"
    with pytest.MonkeyPatch.context() as patch:
        use_faulty_program(patch, fault, tmp_path / "faults")
        outcome = run_plan(launches(cases, repetitions), results, size="ci", deadline_s=deadline_s, progress=watch)
    store = Store(results)
    took = {
        path.name: watch.ended_at[path.name] - float(path.read_text())
        for path in (tmp_path / "faults").iterdir()
        if path.name in watch.ended_at
    }
    assert_nothing_left(results, outcome.launches)
    return outcome, [store.load(launch)[0] for launch in outcome.launches], took


@pytest.mark.parametrize(
    ("fault", "code"), [("SIGKILL", "rank_killed"), ("SIGSTOP", "rank_stopped"), ("raise", "rank_raised")]
)
def test_a_rank_that_fails_at_a_random_step_is_named_and_the_next_launch_runs(
    tmp_path: Path, fault: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_signs, "STOPPED_S", SOON_S)
    faulty = [
        small_case("shm"),
        small_case("tcp", transport="tcp"),
        small_case("tree", transport="tcp", collective="tree"),
    ]
    cases = [*faulty, small_case("healthy")]
    outcome, records, took = run(tmp_path, fault, cases, -(-TIMES // len(faulty)))
    failed = [record for record in records if record.case.arm != "healthy"]
    assert len(failed) >= TIMES
    for record in failed:
        rank, step = fault_of(record.seed, 2)
        assert record.failure is not None, record
        assert (record.failure.code, record.failure.rank) == (code, rank), record.failure
        assert record.failure.step == step if fault == "raise" else record.failure.step >= step
        assert record.failure.operation == "all_reduce"
        assert record.failure.advice
        assert took[record.launch] < WITHIN_S
        assert_flight_recorded(record, rank, stopped=fault == "SIGSTOP")
    assert [record.failure for record in records if record.case.arm == "healthy"] == [None] * (
        len(records) - len(failed)
    )
    assert (outcome.failed, outcome.completed) == (len(failed), len(records) - len(failed))


def assert_flight_recorded(record: Record, rank: int, stopped: bool) -> None:
    """The record names the rank, says that the other one waited for it, and has the stacks of both as far as they can
    be had."""
    assert record.stall is not None
    assert record.stall.first_silent == rank, record.stall
    other = record.stall.ranks[1 - rank]
    assert other.waits_for == rank, record.stall
    assert f"rank {1 - rank} waited for it" in record.stall.why
    assert "all_reduce" in other.operation
    assert any("faulty_program.py" in line for line in other.stack), other.stack
    assert not stopped or any("faulty_program.py" in line for line in record.stall.ranks[rank].stack), record.stall


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("exit", "rank_exited"),
        ("SIGSEGV", "rank_killed"),
        ("check", "check_failed"),
        ("hang", "deadline"),
        ("lock", "rank_silent"),
    ],
)
def test_every_other_way_to_fail_has_its_code_and_rank(
    tmp_path: Path, fault: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_signs, "SILENT_S", QUIET_S)
    _, records, took = run(
        tmp_path, fault, [small_case("tcp", transport="tcp")], 1, deadline_s=4.0 if fault == "hang" else 30.0
    )
    # Silence is believed only after a while: a library may wait for a slow peer with the interpreter's lock held.
    assert max(took.values()) < WITHIN_S + (failure_signs.SILENT_S if fault == "lock" else 0)
    assert [(record.failure.code, record.failure.rank) for record in records if record.failure] == [
        (code, fault_of(record.seed, 2)[0]) for record in records
    ]


@pytest.mark.parametrize(
    ("fault", "excerpt"),
    [("SIGSTOP", "faulty_program.py"), ("SIGSEGV", "Segmentation fault"), ("raise", "a fault on purpose")],
)
def test_the_log_of_the_failed_rank_says_where_it_was(tmp_path: Path, fault: str, excerpt: str) -> None:
    _, [record], _ = run(tmp_path, fault, [small_case("shm")], 1)
    assert record.failure is not None
    folder = Store(tmp_path / "results").folder(record)
    assert excerpt in (folder / f"rank-{record.failure.rank}.log").read_text()


def test_samples_of_a_killed_rank_are_kept(tmp_path: Path) -> None:
    _, records, _ = run(tmp_path, "SIGKILL", [small_case("tcp", transport="tcp")], 4)
    store = Store(tmp_path / "results")
    for record in records:
        rows = store.samples(record).to_pandas()
        rank, step = fault_of(record.seed, 2)
        assert (rows["rank"] == rank).sum() >= step


@pytest.mark.parametrize(("fault", "mebibytes"), [("none", 6), ("fill", 32)])
def test_a_full_disk_is_named_and_nothing_half_written_stays(tmp_path: Path, fault: str, mebibytes: int) -> None:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    results = tmp_path / "results"
    results.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(results)], capture_output=True
    ).returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        outcome, _, _ = run(tmp_path, fault, [small_case("shm")], 3)
        assert outcome.stopped.startswith("disk_full")
        assert not outcome.complete
        assert [record for record in Store(results).records() if record.status == "ok"] == []
        assert all((path / "run.json").exists() for path in results.glob("runs/*/*"))
    finally:
        subprocess.run(["umount", str(results)], check=True)
