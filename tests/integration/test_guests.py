"""Launches on nodes with kernels of their own: what they record, what the wire gives, how they fail, and that nothing
is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from scaleproof.core.board import Board
from scaleproof.core.record_schema import Record
from scaleproof.fabric.guests.guest_plan import LINKS
from scaleproof.launch.start.on_guests import run_in_guests
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.teardown import clean, processes, shared_memory
from scaleproof.record.store import Store
from tests.family import family, remaining
from tests.integration.faulty.faulty_program import fault_of
from tests.integration.guests import guest_case, kernel_of, need_guests
from tests.integration.launches import assert_nothing_left, launches, living, use_faulty_program
from tests.waiting import wait_until

MBIT, DELAY_MS = 100.0, 5.0
PYTHON = sys.executable


@pytest.fixture(scope="module", autouse=True)
def guests() -> None:
    """No test here runs without guests."""
    need_guests()


def run(results: Path, cases: list[Any], **options: Any) -> list[Record]:
    """The records of a plan, one launch per case."""
    outcome = run_plan(launches(cases), results, size="ci", **{"deadline_s": 120.0, **options})
    assert_nothing_left(results, outcome.launches)
    return [Store(results).load(launch)[0] for launch in outcome.launches]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Record, Path]]:
    """One launch in one node, between two, between four, and one over a shaped link."""
    all_reduce = {"program": "collective", "operation": "all_reduce", "sizes": [65536], "iterations": 4}
    results = tmp_path_factory.mktemp("guests")
    cases = [
        guest_case(arm="one", nodes=1),
        guest_case(arm="two", tracing="full"),
        guest_case(arm="four", ranks=4, nodes=4, **all_reduce),
        guest_case(arm="shaped", link_mbit=MBIT, link_delay_ms=DELAY_MS),
    ]
    records = run(results, cases)
    return {record.case.arm: (record, Store(results).folder(record)) for record in records}


@pytest.mark.parametrize(("arm", "nodes"), [("one", 1), ("two", 2), ("four", 4), ("shaped", 2)])
def test_a_launch_in_guests_is_recorded_as_any_other(
    recorded: dict[str, tuple[Record, Path]], arm: str, nodes: int
) -> None:
    record, folder = recorded[arm]
    assert (record.status, record.failure, record.evidence) == ("ok", None, "emulated")
    assert record.case.interface == "eth0"
    network = record.transport["fabric"]
    assert (network["kind"], network["nodes"], network["rdma"]) == ("uml", nodes, "soft-RoCE")
    assert network["kernel"].startswith("6.1")
    assert [status.facts["node"] for status in record.ranks] == [
        rank * nodes // record.case.ranks for rank in range(record.case.ranks)
    ]
    assert len({part.namespace for part in record.network}) == nodes
    assert [check for check in record.checks if not check.passed] == []
    assert "leftovers" not in [warning.code for warning in record.warnings]
    assert set(pd.read_parquet(folder / "samples.parquet")["rank"]) == set(range(record.case.ranks))


def test_clocks_of_nodes_are_compared(recorded: dict[str, tuple[Record, Path]]) -> None:
    clocks = recorded["four"][0].clocks
    assert [clock.rank for clock in clocks] == [0, 1, 2, 3]
    assert any(abs(clock.offset_ns) > clock.uncertainty_ns for clock in clocks[1:]), (
        "kernels started at different times, though two may have started together"
    )


def test_set_delay_and_rate_are_in_effect(recorded: dict[str, tuple[Record, Path]]) -> None:
    record, folder = recorded["shaped"]
    network = record.transport["fabric"]
    assert (network["link_mbit"], network["link_delay_ms"]) == (MBIT, DELAY_MS)
    for link in network["found"]:
        assert 2 * DELAY_MS <= link["rtt_ms"] < 4 * DELAY_MS
        assert 0.2 * MBIT < link["mbit"] <= 1.1 * MBIT
    for link in recorded["two"][0].transport["fabric"]["found"]:
        assert link["rtt_ms"] < DELAY_MS
    rows = pd.read_parquet(folder / "samples.parquet")
    trips = rows[(rows["event"] == "transfer") & (rows["rank"] == 0) & ~rows["warmup"]]
    took_ms = (trips["end_ns"] - trips["start_ns"]) / 1e6
    large = took_ms[trips["nbytes"] == trips["nbytes"].max()]
    assert large.min() > 0.8 * 2 * (1 << 20) * 8 / (MBIT * 1e3) + 2 * DELAY_MS
    assert 2 * DELAY_MS <= took_ms[trips["nbytes"] == trips["nbytes"].min()].min() < 6 * DELAY_MS


def test_a_traced_launch_counts_what_was_on_the_wire(recorded: dict[str, tuple[Record, Path]]) -> None:
    record, folder = recorded["two"]
    wire = record.transport["fabric"]["wire"]
    asked_bytes = sum(part.asked_bytes for part in record.network)
    assert wire["lost"] == 0
    assert asked_bytes < wire["kinds"]["tcp"]["bytes"] < 1.1 * asked_bytes + (1 << 20)
    assert (folder / "wire.pcap").stat().st_size > 0
    assert recorded["shaped"][0].transport["fabric"]["wire"] is None


def test_a_nodes_progress_is_seen_and_its_death_names_the_rank(tmp_path: Path) -> None:
    with living(tmp_path, guest_case(sizes=[8], iterations=1_000_000)) as launch:
        folder = launch.folder()
        kernel = kernel_of(folder.name, 1)
        board = Board(folder / "board", 2)
        wait_until(lambda: all(board.read(rank).step >= 0 for rank in (0, 1)), "both ranks are at work")
        before = [board.mark(rank) for rank in (0, 1)]
        wait_until(lambda: all(board.mark(rank) != before[rank] for rank in (0, 1)), "both ranks move")
        # Beats are told on the supervisor's clock: seconds since a kernel started would look hours old.
        wait_until(
            lambda: all(abs(time.monotonic() - board.read(rank).beat_ns / 1e9) < 2.0 for rank in (0, 1)),
            "heartbeats are on this machine's clock",
        )
        board.close()
        kernel.kill()
        killed = time.monotonic()
    [record] = launch.records
    assert record.failure is not None
    assert (record.failure.code, record.failure.rank) == ("rank_killed", 1), record.failure
    assert "node 1 was killed by SIGKILL" in record.failure.message
    assert launch.watch.ended_at[record.launch] - killed < 10.0


@pytest.mark.parametrize(
    ("fault", "code", "deadline_s"), [("SIGSTOP", "rank_stopped", 120.0), ("raise", "rank_raised", 120.0)]
)
def test_a_rank_that_fails_in_a_guest_is_named_with_the_stacks_of_the_other(
    tmp_path: Path, fault: str, code: str, deadline_s: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use_faulty_program(patch, fault, tmp_path / "faults")
        case = guest_case(program="collective", sizes=[4096], arm="faulty")
        [record] = run(tmp_path / "results", [case], deadline_s=deadline_s)
    assert record.failure is not None
    assert (record.failure.code, record.failure.rank) == (code, fault_of(record.seed, 2)[0]), record.failure
    assert record.stall is not None
    other = record.stall.ranks[1 - record.failure.rank]
    assert other.waits_for == record.failure.rank
    assert any("faulty_program.py" in line for line in other.stack), other.stack


def test_a_kernel_that_cannot_boot_fails_at_once_and_says_so() -> None:
    started = time.monotonic()
    ran = run_in_guests(["true"], memory_mib=6)
    assert ran.code == 255
    assert "node 0" in ran.log
    assert time.monotonic() - started < 30


def test_a_node_that_cannot_set_up_its_link_says_why() -> None:
    ran = run_in_guests(["true"], link_delay_ms=-1)
    assert ran.code == 255
    assert "node 0: RuntimeError: `tc qdisc add" in ran.log


PINGS = """
import json, os, pathlib, socket, time
node, shared = int(os.environ["SCALEPROOF_NODE"]), pathlib.Path(os.environ["SCALEPROOF_SHARED"])
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind((os.environ["SCALEPROOF_ADDRESS"], 5000))
if node == 1:
    while (got := here.recvfrom(64))[0] != b"end":
        here.sendto(*got)
else:
    here.settimeout(0.1)
    def answered():
        here.sendto(b"ping", ("10.77.0.2", 5000))
        try:
            return here.recv(64) == b"ping"
        except TimeoutError:
            return False
    def until(wanted):
        latest = time.monotonic() + 20
        while (same := answered() is wanted) is False and time.monotonic() < latest:
            pass
        return same
    def pull(out):
        (shared / "draft").write_text(json.dumps({"1": not out}))
        (shared / "draft").rename(shared / "links.json")
    said = [until(True)]
    for out in (True, False):
        pull(out)
        said.append(until(not out))
    here.settimeout(10)  # a guest may wait for a busy machine
    print(said, all(answered() for _ in range(5)))
    here.sendto(b"end", ("10.77.0.2", 5000))
"""


def test_a_cable_that_is_pulled_and_put_back(tmp_path: Path) -> None:
    assert LINKS == "links.json"
    ran = run_in_guests([PYTHON, "-c", PINGS], nodes=2)
    assert ran.output[0].strip() == "[True, True, True] True", (ran.output, ran.log)


LOOKS = """
import errno, os, pathlib, socket, time
peer = ("10.77.0.2", "10.77.0.1")[int(os.environ["SCALEPROOF_NODE"])]
sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sending.setblocking(False)
until, wrong = time.monotonic() + 10, []
while time.monotonic() < until:
    for number in range(4):
        try:
            sending.sendto(bytes(1400), (peer, 5000))
        except OSError:
            pass
    for number in range(40):
        try:
            os.stat(f"/missing-{number}-{time.monotonic_ns()}")
        except OSError as error:
            if error.errno != errno.ENOENT:
                wrong.append(errno.errorcode[error.errno])
print(wrong)
"""


def test_what_a_call_says_is_not_the_error_of_a_packet_sent_meanwhile() -> None:
    ran = run_in_guests([PYTHON, "-c", LOOKS], nodes=2, link_mbit=MBIT, link_delay_ms=DELAY_MS)
    assert ran.output == ["[]\n", "[]\n"], ran.log


def test_a_killed_coordinator_takes_its_nodes_with_it() -> None:
    code = "from scaleproof.launch.start.on_guests import run_in_guests\nrun_in_guests(['sleep', '60'], nodes=2)"
    with subprocess.Popen([PYTHON, "-c", code], cwd=Path(__file__).parents[2]) as creator:
        kernels = wait_until(lambda: _two_kernels(creator.pid), "two kernels run")
        members = family(creator.pid)
        launch = kernels[0].environ()["SCALEPROOF_LAUNCH"]
        creator.send_signal(signal.SIGKILL)
        creator.wait()
    assert not remaining(members)
    clean(launch)
    assert not [*processes(launch), *shared_memory(launch)]


def _two_kernels(pid: int) -> list[psutil.Process]:
    kernels = [*family(pid, "umid=node0"), *family(pid, "umid=node1")]
    return kernels if len(kernels) == 2 else []


def test_qemu_is_the_same_fabric_with_another_kernel() -> None:
    ran = run_in_guests(
        ["sh", "-c", "uname -r; cat /sys/class/infiniband/rxe0/ports/1/state"], kind="qemu", timeout_s=180
    )
    assert ran.code == 0, ran.log
    kernel, state = ran.output[0].split("\n")[:2]
    assert kernel.endswith("amd64")
    assert "ACTIVE" in state
    assert ran.network is not None
    assert (ran.network["kind"], ran.network["kernel"]) == ("qemu", kernel)
