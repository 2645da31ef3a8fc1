"""Whole launches on real processes: every launcher, resuming, exclusion, and what stays on disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.teardown import processes, shared_memory
from scaleproof.record.store import Store
from scaleproof.spec.errors import SpecError
from tests.integration.launches import Timekeeper, assert_nothing_left, launches, small_case, use_faulty_program
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


@contextmanager
def supervisor(results: Path, repetitions: int, iterations: int = 20) -> Iterator[subprocess.Popen[str]]:
    """run_small_plan.py in its own process."""
    command = [
        sys.executable,
        "-m",
        "tests.integration.run_small_plan",
        str(results),
        str(repetitions),
        str(iterations),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    """The next lines that it prints."""
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def started_launch(results: Path, earlier: set[str]) -> str:
    """Waits for a launch, other than the known ones, whose ranks are there."""

    def started() -> list[str]:
        names = {folder.name for folder in (results / "staging").glob("*")} - earlier
        return [name for name in names if len(processes(name)) == 3]

    return wait_until(started, "a launch has started", every_s=0.005)[0]


def finished(results: Path) -> dict[str, bytes]:
    """Every record's bytes, by launch."""
    return {path.parent.name: path.read_bytes() for path in results.glob("runs/*/*/run.json")}


def wait_gone(launch: str) -> None:
    wait_until(lambda: not processes(launch), "the processes of a supervisor end with it")


def test_a_launch_leaves_its_whole_record_and_nothing_else(tmp_path: Path) -> None:
    outcome = run_plan(launches([small_case()], 2), tmp_path, size="ci", deadline_s=30)
    assert (outcome.completed, outcome.complete) == (2, True)
    assert_nothing_left(tmp_path, outcome.launches)
    record, folder = Store(tmp_path).load(outcome.launches[0])
    assert {path.name for path in folder.iterdir()} == {
        "run.json",
        "samples.parquet",
        "rank-0.log",
        "rank-1.log",
        "launcher.log",
    }
    assert [rank.status for rank in record.ranks] == ["ok", "ok"]
    assert all(rank.facts["affinity"] and rank.facts["hash_seed"] == str(record.seed) for rank in record.ranks)
    assert record.environment["variables"]["OMP_NUM_THREADS"] == "1"
    assert record.transport["traffic"][0]["nbytes"] > 0
    assert all(check.passed for check in record.checks) and record.checks
    assert "token" not in (folder / "run.json").read_text()
    samples = Store(tmp_path).samples(record).to_pandas()
    assert set(samples["rank"]) == {0, 1}
    assert (samples["event"] == "all_reduce").sum() == 2 * (20 + 3)


def test_finished_launches_are_not_run_again_unless_asked(tmp_path: Path) -> None:
    plan = launches([small_case()], 2)
    run_plan(plan, tmp_path, size="ci", deadline_s=30)
    before = finished(tmp_path)
    second = run_plan(plan, tmp_path, size="ci", deadline_s=30)
    assert (second.skipped, second.launches, second.complete) == (2, [], True)
    assert finished(tmp_path) == before
    third = run_plan(plan[:1], tmp_path, size="ci", deadline_s=30, again=True)
    assert third.completed == 1 and before.items() < finished(tmp_path).items()


def test_a_failed_launch_is_tried_again_and_both_records_stay(tmp_path: Path) -> None:
    case, results = small_case("faulty"), tmp_path / "results"
    with pytest.MonkeyPatch.context() as patch:
        use_faulty_program(patch, "raise", tmp_path / "faults")
        assert run_plan(launches([case]), results, size="ci", deadline_s=30).failed == 1
    assert run_plan(launches([case]), results, size="ci", deadline_s=30).completed == 1
    assert [record.status for record in Store(results).records(case.case_id)] == ["failed", "ok"]


def test_mpirun_starts_ranks_and_ends_them_all_when_one_is_killed(tmp_path: Path) -> None:
    healthy = small_case(transport="mpi", collective="native", launcher="mpirun")
    faulty, results = (
        small_case("faulty", transport="mpi", collective="native", launcher="mpirun"),
        tmp_path / "results",
    )
    with pytest.MonkeyPatch.context() as patch:
        use_faulty_program(patch, "SIGKILL", tmp_path / "faults")
        outcome = run_plan(launches([faulty, healthy], 2), results, size="ci", deadline_s=30)
    assert_nothing_left(results, outcome.launches)
    records = [Store(results).load(launch)[0] for launch in outcome.launches]
    assert [record.failure and record.failure.code for record in records] == ["rank_killed", None, "rank_killed", None]


@pytest.mark.parametrize("finished_before", [1, 3])
def test_after_a_killed_supervisor_the_next_one_cleans_up_and_resumes(tmp_path: Path, finished_before: int) -> None:
    with supervisor(tmp_path, 5) as process:
        ids = {line.split()[0] for line in lines(process, finished_before)}
        orphan = started_launch(tmp_path, ids)
        process.kill()
        wait_gone(orphan)
    before, notes = finished(tmp_path), Timekeeper()
    assert ids <= set(before)
    outcome = run_plan(launches([small_case()], 5), tmp_path, size="ci", deadline_s=30, progress=notes)
    assert (outcome.skipped, outcome.completed) == (len(before), 5 - len(before))
    assert before.items() <= finished(tmp_path).items()
    assert any(orphan in note for note in notes.notes) or orphan in before
    assert_nothing_left(tmp_path, [orphan, *outcome.launches])


def test_ranks_die_with_their_supervisor(tmp_path: Path) -> None:
    with supervisor(tmp_path, 1, iterations=10**7) as process:
        orphan = started_launch(tmp_path, set())
        process.kill()
        wait_gone(orphan)
    run_plan([], tmp_path, size="ci", deadline_s=30)
    assert_nothing_left(tmp_path, [orphan])


def test_processes_that_outlived_their_supervisor_are_ended_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "staging" / "feedc0ffee").mkdir(parents=True)
    leftover = subprocess.Popen(["sleep", "60"], env={**os.environ, "SCALEPROOF_LAUNCH": "feedc0ffee"})
    # Popen returns a moment before the kernel shows the new environment.
    wait_until(lambda: processes("feedc0ffee"), "the process has its environment", every_s=0.001)
    shared = Path("/dev/shm/test-feedc0ffee-segment")
    shared.touch()
    run_plan([], tmp_path, size="ci", deadline_s=30)
    assert not processes("feedc0ffee") and not psutil.pid_exists(leftover.pid)
    assert not shared.exists() and not list((tmp_path / "staging").iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_tears_its_launch_down(tmp_path: Path, number: int) -> None:
    with supervisor(tmp_path, 50) as process:
        ids = {line.split()[0] for line in lines(process, 1)}
        orphan = started_launch(tmp_path, ids)
        process.send_signal(number)
        assert process.wait(20) == 130
    assert_nothing_left(tmp_path, [*ids, orphan])
    assert {record.failure.code for record in Store(tmp_path).records() if record.failure} <= {"interrupted"}


def test_an_interrupt_while_a_launch_starts_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def interrupted(*_: object, env: dict[str, str], **__: object) -> None:
        started.append(env["SCALEPROOF_LAUNCH"])
        assert shared_memory(started[-1]), "its scratch"
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_plan(launches([small_case()]), tmp_path, size="ci", deadline_s=30)
    assert started
    assert_nothing_left(tmp_path, started)


def test_two_supervisors_exclude_each_other(tmp_path: Path) -> None:
    with supervisor(tmp_path, 50) as process:
        lines(process, 1)
        with pytest.raises(SpecError, match=rf"another scaleproof \(pid {process.pid} on "):
            run_plan(launches([small_case()]), tmp_path, size="ci", deadline_s=30)
        with supervisor(tmp_path, 1) as second:
            assert second.wait(20) == 2
            assert lines(second, 1)[0].startswith("another scaleproof")
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    assert not [child for child in psutil.Process().children(recursive=True) if child.is_running()]


def test_a_case_whose_interface_is_missing_is_recorded_once_as_not_runnable(tmp_path: Path) -> None:
    plan = launches([small_case(interface="wlan99")])
    for _ in range(2):
        outcome = run_plan(plan, tmp_path, size="ci", deadline_s=30)
        assert (outcome.not_runnable, outcome.complete) == (1, False)
    [record] = Store(tmp_path).records()
    assert record.failure is not None and "wlan99" in record.failure.message and record.ranks == []
