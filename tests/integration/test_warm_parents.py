"""Launches of which no clock is read are forked from one process that has imported, and are launches like others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import Record
from scaleproof.launch.adopted_process import AdoptedProcess
from scaleproof.launch.progress import Silent
from scaleproof.launch.start import warm_parents
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.teardown import clean_leftovers, processes
from scaleproof.paths import IMPORT_ROOT
from scaleproof.rank.warm_parent import MODULE
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from tests.integration.launches import assert_nothing_left, launches, living, small_case
from tests.short_form import case_from
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


def warm() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if MODULE in child.cmdline()]


class Watched(Silent):
    """At the end of each launch: the processes that have imported."""

    def __init__(self, kill: bool = False) -> None:
        super().__init__()
        self.warm: list[list[int]] = []
        self._kill = kill

    def ended(self, record: Record) -> None:
        found = warm()
        self.warm.append([each.pid for each in found])
        if self._kill:
            for each in found:
                each.kill()


def run(results: Path, plan: list[PlannedLaunch], watched: Watched | None = None, timed: bool = False) -> list[Record]:
    outcome = run_plan(plan, results, size="ci", deadline_s=60.0, progress=watched or Watched(), timed=timed)
    return [Store(results).load(launch)[0] for launch in outcome.launches]


def test_launches_of_one_kind_are_forked_from_one_process(tmp_path: Path) -> None:
    watched = Watched()
    records = run(tmp_path, launches([small_case()], 3), watched)
    assert [record.status for record in records] == ["ok"] * 3
    assert len({tuple(each) for each in watched.warm}) == 1 and len(watched.warm[0]) == 1
    assert len({rank.pid for record in records for rank in record.ranks}) == 6
    assert_nothing_left(tmp_path, [record.launch for record in records])


def test_kinds_that_read_something_else_at_import_have_processes_of_their_own(tmp_path: Path) -> None:
    watched = Watched()
    two_threads = small_case("threads", threads_per_rank=2)
    records = run(tmp_path, launches([small_case(), two_threads, small_case("tcp", transport="tcp")]), watched)
    assert [record.status for record in records] == ["ok"] * 3
    assert [len(each) for each in watched.warm] == [1, 2, 3]


def test_launches_whose_clocks_are_read_start_anew(tmp_path: Path) -> None:
    watched = Watched()
    records = run(tmp_path, launches([small_case()], 2), watched, timed=True)
    assert watched.warm == [[], []]
    assert len({record.environment["hash_seed"] for record in records}) == 2


def test_the_record_says_which_hash_seed_and_variables_its_ranks_had(tmp_path: Path) -> None:
    (record,) = run(tmp_path, launches([small_case()]))
    assert record.environment["hash_seed"] == "0" and record.environment["padding_bytes"] == 0
    assert {rank.facts["hash_seed"] for rank in record.ranks} == {"0"}
    (timed,) = run(tmp_path / "timed", launches([small_case()]), timed=True)
    assert [rank.facts["packages"] for rank in record.ranks] == [rank.facts["packages"] for rank in timed.ranks]


def test_a_launch_goes_on_without_the_process_that_should_have_forked_it(tmp_path: Path) -> None:
    watched = Watched(kill=True)
    records = run(tmp_path, launches([small_case()], 3), watched)
    assert [record.status for record in records] == ["ok"] * 3
    assert len(watched.warm[0]) == 1 and watched.warm[1] == [] and len(watched.warm[2]) == 1
    assert_nothing_left(tmp_path, [record.launch for record in records])


def test_a_fork_that_fails_is_answered_at_once_and_the_launch_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = warm_parents._started

    def with_short_mark(launch_spec: LaunchSpec, variables: dict[str, str]) -> warm_parents._Warm:
        return started(replace(launch_spec, launch="short"), variables)

    monkeypatch.setattr(warm_parents, "_started", with_short_mark)
    began = time.monotonic()
    (record,) = run(tmp_path, launches([small_case()]))
    assert record.status == "ok" and time.monotonic() - began < 45  # its deadline is 60 s
    assert_nothing_left(tmp_path, [record.launch])


def test_a_launcher_that_cannot_be_forked_starts_as_ever(tmp_path: Path) -> None:
    by_mpi = small_case("by_mpi", transport="mpi", collective="native", launcher="mpirun")
    watched = Watched()
    (record,) = run(tmp_path, launches([by_mpi]), watched)
    assert record.status == "ok" and watched.warm == [[]]


def test_what_fails_to_import_is_in_the_log_of_the_launch(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "broken.py").write_text('PRELOAD = ("scaleproof.nowhere",)\n\n\ndef run(context): ...\n')
    values = {
        "program": "own",
        "suite": "tests",
        "experiment": "broken",
        "arm": "broken",
        "entry": "broken",
        "ranks": 1,
    }
    case = case_from(values)
    plan = [PlannedLaunch(case, 0, 1, 0, programs=str(programs))]
    (record,) = run(tmp_path / "results", plan)
    assert record.failure is not None and record.failure.code == "start_failed"
    assert "scaleproof.nowhere" in record.failure.message


def test_a_forked_launch_is_found_by_its_id_and_ended(tmp_path: Path) -> None:
    case = small_case(iterations=10_000_000)
    with living(tmp_path, case, timed=False, deadline_s=4.0) as launch:
        folder = launch.folder()
        found = wait_until(lambda: len(found := processes(folder.name)) == 3 and found, "a parent and two ranks", 30.0)
        assert found
        parents = [psutil.Process(pid) for pid in found if psutil.Process(pid).ppid() == os.getpid()]
        assert len(parents) == 1 and os.getsid(parents[0].pid) == parents[0].pid
    assert launch.records[0].failure is not None and launch.records[0].failure.code == "deadline"


def test_no_process_outlives_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.run_small_plan", str(tmp_path), "1", "1000000", "--beside"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(IMPORT_ROOT), str(ROOT)))}
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as supervisor:
        of_supervisor = psutil.Process(supervisor.pid)

        def running() -> list[psutil.Process]:
            found = of_supervisor.children(recursive=True)
            return found if len(found) == 4 else []

        found = wait_until(running, "a warm process, a parent and two ranks", 60.0)
        supervisor.kill()
    wait_until(lambda: not any(map(psutil.Process.is_running, found)), "all have ended", 10.0)
    clean_leftovers(tmp_path / "staging")
    assert not list((tmp_path / "staging").glob("*"))


@pytest.mark.parametrize(
    ("program", "code"), [("import os; os._exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)]
)
def test_an_adopted_process_ends_as_a_child_does(program: str, code: int) -> None:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ)
    process = AdoptedProcess(pid)
    assert process.wait(30.0) == process.poll() == code
    process.kill()  # of one that has ended


def test_an_adopted_process_that_lives_is_waited_for_and_ended() -> None:
    process = AdoptedProcess(os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ))
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        assert process.poll() is None
        threading.Timer(0.1, process.terminate).start()
        began = time.monotonic()
        assert process.wait() == -15 and time.monotonic() - began < 10
    finally:
        process.kill()
        process.wait()
