"""Parents of the next launches import together, before any rank of them runs, and none is left when a run ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from scaleproof.core.record_schema import PreflightCheck, Record
from scaleproof.core.uninterrupted import uninterrupted
from scaleproof.launch.preflight.experiment_preflight import Preflight
from scaleproof.launch.progress import Silent
from scaleproof.launch.start import parents_ahead
from scaleproof.launch.start.started_launcher import StartedLauncher, wait_for_imports
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.teardown import clean_leftovers
from scaleproof.paths import IMPORT_ROOT
from scaleproof.record.store import Store
from scaleproof.spec.plan import PlannedLaunch
from tests.integration.launches import assert_nothing_left, launches, small_case
from tests.integration.netns import need_netns, netns_case
from tests.waiting import wait_until

PARENT, ON_NODES = "scaleproof.rank.fork_ranks", "scaleproof.rank.fork_in_namespaces"
HERE = Path(__file__).parent


def is_parent(process: psutil.Process) -> bool:
    """Whether it is one; a process of a preflight may end meanwhile."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE and PARENT in process.cmdline()
    except psutil.Error:
        return False


def parents() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if is_parent(child)]


class Watched(Silent):
    """At the end of each launch: the parents that are left, their processor time, and whether they have ranks."""

    def __init__(self, interrupt: bool = False) -> None:
        super().__init__()
        self.asleep: list[list[tuple[int, int]]] = []
        self._interrupt = interrupt

    def ended(self, record: Record) -> None:
        self.asleep.append([(each.pid, len(each.children())) for each in parents()])
        if self._interrupt:
            os.kill(os.getpid(), signal.SIGTERM)


def run(results: Path, plan: list[PlannedLaunch], watched: Watched) -> list[Record]:
    outcome = run_plan(plan, results, size="ci", deadline_s=60.0, progress=watched)
    return [Store(results).load(launch)[0] for launch in outcome.launches]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parents_ahead, "usable_cores", lambda: 2.0)


@pytest.mark.usefixtures("two_cores")
def test_every_second_launch_finds_its_parent_asleep_with_everything_imported(tmp_path: Path) -> None:
    watched = Watched()
    records = run(tmp_path, launches([small_case()], 4), watched)
    assert [record.status for record in records] == ["ok"] * 4
    assert [len(each) for each in watched.asleep] == [1, 0, 1, 0]
    assert all(ranks == 0 for each in watched.asleep for _, ranks in each)
    assert len({record.launch for record in records}) == len({record.seed for record in records}) == 4
    assert_nothing_left(tmp_path, [record.launch for record in records])


@pytest.mark.usefixtures("two_cores")
def test_launches_on_namespaces_whose_clocks_are_not_read_import_ahead_too(tmp_path: Path) -> None:
    need_netns()
    ahead: list[str] = []

    class Started(Silent):
        def ended(self, record: Record) -> None:
            ahead.extend(line for child in psutil.Process().children() for line in child.cmdline() if ON_NODES in line)

    plan = launches([netns_case()], 2)
    outcome = run_plan(plan, tmp_path, size="ci", deadline_s=60.0, progress=Started(), timed=False)
    records = [Store(tmp_path).load(launch)[0] for launch in outcome.launches]
    assert [record.status for record in records] == ["ok"] * 2 and len(ahead) == 1
    assert {rank.facts["hash_seed"] for record in records for rank in record.ranks} == {"0"}
    assert_nothing_left(tmp_path, [record.launch for record in records])


@pytest.mark.usefixtures("two_cores")
def test_a_launch_whose_processes_cannot_import_ahead_has_no_parent_beside_it(tmp_path: Path) -> None:
    by_mpi = small_case("by_mpi", transport="mpi", collective="native", launcher="mpirun")
    watched = Watched()
    records = run(tmp_path, launches([by_mpi, small_case()], 2), watched)
    assert [record.status for record in records] == ["ok"] * 4
    assert [len(each) for each in watched.asleep] == [0, 0, 0, 0]


def test_one_core_imports_for_one_launch_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parents_ahead, "usable_cores", lambda: 1.0)
    watched = Watched()
    run(tmp_path, launches([small_case()], 2), watched)
    assert [len(each) for each in watched.asleep] == [0, 0]


@pytest.mark.usefixtures("two_cores")
def test_a_launch_that_is_refused_after_all_ends_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = PreflightCheck(code="ports", passed=False, message="no port is free", advice="free one")
    of_launches = iter([[], [refused], [], []])
    monkeypatch.setattr(Preflight, "of", lambda self, case: next(of_launches))
    watched = Watched()
    records = run(tmp_path, launches([small_case()], 4), watched)
    assert [record.status for record in records] == ["ok", "failed", "ok", "ok"]
    assert [len(each) for each in watched.asleep] == [1, 0, 1, 0]
    assert_nothing_left(tmp_path, [record.launch for record in records])


@pytest.mark.usefixtures("two_cores")
def test_a_run_that_is_ended_leaves_no_parent_and_no_folder(tmp_path: Path) -> None:
    watched = Watched(interrupt=True)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, launches([small_case()], 2), watched)
    assert len(watched.asleep) == 1 and len(watched.asleep[0]) == 1
    assert not psutil.pid_exists(watched.asleep[0][0][0])
    assert_nothing_left(tmp_path, [])


def test_no_parent_outlives_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.run_small_plan", str(tmp_path), "2", "1000000"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(IMPORT_ROOT), str(HERE.parents[1])))}
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as supervisor:
        of_supervisor = psutil.Process(supervisor.pid)

        def both() -> list[psutil.Process]:
            found = [each for each in of_supervisor.children() if is_parent(each)]
            return found if len(found) == min(2, os.cpu_count() or 1) else []

        found = wait_until(both, "parents have started", 60.0)
        supervisor.kill()
    wait_until(lambda: not any(map(psutil.Process.is_running, found)), "all parents have ended", 10.0)
    clean_leftovers(tmp_path / "staging")
    assert not list((tmp_path / "staging").glob("*"))


@pytest.mark.usefixtures("two_cores")
def test_a_parent_that_ends_in_its_sleep_is_started_again(tmp_path: Path) -> None:
    class Deadly(Watched):
        def ended(self, record: Record) -> None:
            for each in parents():
                each.kill()
                each.wait()

    records = run(tmp_path, launches([small_case()], 4), Deadly())
    assert [record.status for record in records] == ["ok"] * 4
    assert_nothing_left(tmp_path, [record.launch for record in records])


@pytest.mark.usefixtures("two_cores")
def test_without_memory_for_several_one_launch_imports_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parents_ahead, "available_mib", lambda: 1024)
    watched = Watched()
    records = run(tmp_path, launches([small_case()], 2), watched)
    assert [record.status for record in records] == ["ok"] * 2 and watched.asleep == [[], []]


@pytest.mark.usefixtures("two_cores")
def test_a_spare_parent_that_cannot_start_costs_no_other_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parents_ahead, "start", full)
    watched = Watched()
    records = run(tmp_path, launches([small_case()], 2), watched)
    assert [record.status for record in records] == ["ok"] * 2 and watched.asleep == [[], []]
    assert_nothing_left(tmp_path, [record.launch for record in records])


@pytest.mark.usefixtures("two_cores")
def test_imports_ahead_are_no_work_of_others(tmp_path: Path) -> None:
    """Nor is their processor time taken for the launch's own after it was read."""
    records = run(tmp_path, launches([small_case(transport="gloo", collective="native")], 4), Watched())
    for record in records:
        load = record.environment["load"]
        ranks = sum(rank.facts["user_s"] + rank.facts["system_s"] for rank in record.ranks)
        assert load["after"]["own_cpu_s"] - load["before"]["own_cpu_s"] < ranks + 0.6
        assert record.wall_s > (load["after"]["at_ns"] - load["before"]["at_ns"]) / 1e9


def test_ranks_get_signals_that_were_blocked_when_their_parent_started() -> None:
    program = """
from scaleproof.core.go_signal import wait_for_go
wait_for_go()
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("SigBlk")))
"""
    with uninterrupted():
        assert _told(program, b"g") == (0, "0" * 16)


def test_ranks_do_not_inherit_the_socket_to_the_supervisor() -> None:
    program = """
import os
from scaleproof.core.go_signal import wait_for_go
wait_for_go()
open_files = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(10) if os.path.exists(f"/proc/self/fd/{fd}")]
print(open_files[0], sum("socket" in each for each in open_files))
"""
    assert _told(program, b"g") == (0, "/dev/null 0")


def test_a_parent_ends_when_the_supervisor_is_gone() -> None:
    program = "from scaleproof.core.go_signal import wait_for_go; wait_for_go(); print('went on')"
    assert _told(program, b"") == (1, "")


def _told(program: str, word: bytes) -> tuple[int, str]:
    """Exit code and output of a process that waits for a word."""
    ours, theirs = socket.socketpair()
    variables = {**os.environ, "PYTHONPATH": str(IMPORT_ROOT)}
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=theirs.fileno(), stdout=subprocess.PIPE, env=variables
        )
        theirs.close()
        wait_for_imports([StartedLauncher(process, ours, 0.0)], time.monotonic() + 30)
        ours.sendall(word)
        ours.shutdown(socket.SHUT_WR)
        output, _ = process.communicate(timeout=30)
    return process.returncode, output.decode().strip()
