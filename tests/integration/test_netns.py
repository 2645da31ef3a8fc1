"""Launches on nodes of namespaces: what they record, what their links give, how they fail, and that nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

from scaleproof.core.board import Board
from scaleproof.core.record_schema import Record
from scaleproof.doctor.leftovers import leftovers, remove_leftovers
from scaleproof.doctor.survey import survey
from scaleproof.fabric.netns import core_quota
from scaleproof.launch.start.on_namespaces import run_in_namespaces
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.teardown import clean, processes, shared_memory
from scaleproof.record.store import Store
from scaleproof.spec.cluster import Cluster, Link, star
from tests.family import family, remaining
from tests.integration.guests import need_guests
from tests.integration.launches import assert_nothing_left, launches, living
from tests.integration.netns import need_netns, netns_case
from tests.waiting import wait_until

MBIT, DELAY_MS, MIB = 100.0, 2.0, 1 << 20
PYTHON = sys.executable
PAIR = star("pair", 2, None, 0.0)
GRAPH = """
summary: four nodes, two switches, a circle of them, and one link past the switches
source: made up for a test
nodes: 4
switches: [left, right, third]
links:
  - {between: [node0, left], gbit: 0.4}
  - {between: [node1, left], gbit: 0.4}
  - {between: [node2, right], gbit: 0.4}
  - {between: [node3, right], gbit: 0.4}
  - {between: [left, right], gbit: 0.2, delay_us: 500}
  - {between: [right, third], gbit: 0.2}
  - {between: [third, left], gbit: 0.2}
  - {between: [node0, node3], gbit: 0.1}
"""


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    """No test here runs without them."""
    need_netns()


def run(results: Path, cases: list[Any], **options: Any) -> dict[str, tuple[Record, Path]]:
    """Record and folder of a launch per case, by arm."""
    outcome = run_plan(launches(cases), results, size="ci", **{"deadline_s": 120.0, **options})
    assert_nothing_left(results, outcome.launches)
    records = [Store(results).load(launch)[0] for launch in outcome.launches]
    return {record.case.arm: (record, Store(results).folder(record)) for record in records}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Record, Path]]:
    """Launches over free and shaped links, on one node, four, sixteen, and on a graph."""
    results = tmp_path_factory.mktemp("netns")
    (results / "graph.yaml").write_text(GRAPH)
    transfer = {"program": "transfer", "sizes": [8, MIB], "iterations": 6}
    return run(
        results,
        [
            netns_case(arm="one", nodes=1, transport="shm"),
            netns_case(arm="far", transport="shm"),
            netns_case(arm="four", ranks=4, sizes=[MIB], link_mbit=200),
            netns_case(arm="gloo", ranks=4, sizes=[MIB], link_mbit=200, transport="gloo"),
            netns_case(arm="shaped", **transfer, link_mbit=MBIT, link_delay_ms=DELAY_MS),
            netns_case(arm="sixteen", ranks=16, sizes=[65536], node_cores=0.5),
            netns_case(arm="many", ranks=36, sizes=[4096], iterations=1, warmup=0),
            netns_case(arm="two each", ranks=8, nodes=4, sizes=[MIB]),
            netns_case(arm="shrunken", ranks=2, sizes=[MIB], shrink=64),
            netns_case(arm="graph", ranks=4, sizes=[MIB], cluster=str(results / "graph.yaml")),
        ],
    )


NODES = {
    "one": 1,
    "four": 4,
    "gloo": 4,
    "shaped": 2,
    "sixteen": 16,
    "many": 36,
    "two each": 4,
    "shrunken": 2,
    "graph": 4,
}
"""36 nodes know 1260 neighbours, more than the 1024 that a kernel keeps of those it learned by itself, whatever
namespaces they are in."""


@pytest.mark.parametrize(("arm", "nodes"), NODES.items())
def test_a_launch_on_nodes_is_recorded_as_any_other(
    recorded: dict[str, tuple[Record, Path]], arm: str, nodes: int
) -> None:
    record, folder = recorded[arm]
    assert (record.status, record.failure, record.evidence) == ("ok", None, "emulated")
    assert (record.case.interface, record.case.nodes) == ("eth0", nodes)
    network = record.transport["fabric"]
    assert (network["kind"], network["nodes"], len(network["found"])) == ("netns", nodes, nodes)
    assert [status.facts["node"] for status in record.ranks] == [
        rank * nodes // record.case.ranks for rank in range(record.case.ranks)
    ]
    assert len({part.namespace for part in record.network}) == nodes
    assert len({status.pid for status in record.ranks}) == record.case.ranks
    assert [check for check in record.checks if not check.passed] == []
    assert not {"leftovers", "other_address", "contended_network"} & {warning.code for warning in record.warnings}
    assert set(pd.read_parquet(folder / "samples.parquet")["rank"]) == set(range(record.case.ranks))


def test_bytes_asked_pass_the_links(recorded: dict[str, tuple[Record, Path]]) -> None:
    record, _ = recorded["four"]
    for part, moved in zip(record.network, record.transport["fabric"]["moved"], strict=True):
        assert part.asked_bytes > MIB
        assert part.asked_bytes < moved["eth0"]["tx_bytes"] < 2 * part.asked_bytes


def test_sockets_of_a_shrunken_launch_hold_less(recorded: dict[str, tuple[Record, Path]]) -> None:
    for arm, send, receive in (("four", 4 << 20, 6 << 20), ("shrunken", 64 << 10, 96 << 10)):
        links = recorded[arm][0].transport["fabric"]["found"]
        assert {(node["send_buffer"], node["receive_buffer"]) for node in links} == {(send, receive)}


def test_shared_memory_ends_at_the_node(recorded: dict[str, tuple[Record, Path]]) -> None:
    failure = recorded["far"][0].failure
    assert failure is not None
    assert failure.code == "transport_error"
    either = (
        "rank 1 runs on node1, rank 0 on node0",
        "rank 0 runs on node0, rank 1 on node1",
    )  # whoever looks first
    assert any(f"shared memory ends at the node: {nodes}" in failure.message for nodes in either)


def test_set_rate_and_delay_are_in_effect(recorded: dict[str, tuple[Record, Path]]) -> None:
    record, folder = recorded["shaped"]
    network = record.transport["fabric"]
    assert network["delayed_by"] in ("relay", "netem")
    assert [(link["mbit"], link["delay_ms"]) for link in network["links"]] == [(MBIT, DELAY_MS / 2)] * 2
    for found in network["found"]:
        assert (found["set_rtt_ms"], found["set_mbit"]) == (2 * DELAY_MS, MBIT)
        assert 2 * DELAY_MS <= found["rtt_ms"] < 3 * DELAY_MS
        assert 0.1 * MBIT < found["mbit"] <= MBIT
    rows = pd.read_parquet(folder / "samples.parquet")
    trips = rows[(rows["event"] == "transfer") & (rows["rank"] == 0) & ~rows["warmup"]]
    took_ms = (trips["end_ns"] - trips["start_ns"]) / 1e6
    assert took_ms[trips["nbytes"] == MIB].min() > 0.95 * 2 * MIB * 8 / (MBIT * 1e3) + 2 * DELAY_MS
    assert 2 * DELAY_MS <= took_ms[trips["nbytes"] == 8].min() < 4 * DELAY_MS


@pytest.mark.parametrize("arm", ["four", "gloo"])
def test_a_ring_takes_at_least_what_its_links_need(recorded: dict[str, tuple[Record, Path]], arm: str) -> None:
    """2 (n - 1) / n of the array over every link; the bucket and its refill while a rank computes leave a little."""
    rows = pd.read_parquet(recorded[arm][1] / "samples.parquet")
    calls = rows[(rows["event"] == "all_reduce") & ~rows["warmup"]].groupby("step")
    slowest_s = (calls["end_ns"].max() - calls["start_ns"].min()) / 1e9
    assert float(np.median(slowest_s)) > 0.9 * 1.5 * MIB * 8 / 200e6


def test_a_graph_gives_each_pair_its_own_way(recorded: dict[str, tuple[Record, Path]]) -> None:
    links = recorded["graph"][0].transport["fabric"]["found"]
    assert [(each["set_mbit"], each["set_rtt_ms"]) for each in links] == [
        (400.0, 0.0),
        (200.0, 1.0),
        (400.0, 0.0),
        (100.0, 0.0),
    ]
    assert links[1]["rtt_ms"] >= 1.0
    assert links[3]["mbit"] <= 105.0


def test_processor_time_of_nodes_is_limited(recorded: dict[str, tuple[Record, Path]]) -> None:
    quota = recorded["sixteen"][0].transport["fabric"]["quota"]
    assert quota["cores"] == 0.5
    if not quota["in_effect"]:
        pytest.skip(f"not runnable here: control groups cannot be made: {quota['why']}")
    code = "import time\nstart = time.time()\nwhile time.time() - start < 1: pass\nprint(time.process_time())"
    ran = run_in_namespaces([PYTHON, "-c", code], PAIR, cores=0.2)
    assert ran.code == 0, ran.log
    assert all(0.02 < float(used) < 0.3 for used in ran.output), ran.output
    assert core_quota.leftovers("scaleproof-") == []


OWN = """
import ctypes, json, os, pathlib, socket
libc = ctypes.CDLL(None)
key = libc.shmget(0x5ca1e, 4096, 0o3600)
pathlib.Path("/dev/shm/mine").write_text("x")
links = [name for name in os.listdir("/sys/class/net") if name != "lo"]
shared = sorted(os.listdir("/dev/shm"))
print(json.dumps([socket.gethostname(), socket.gethostbyname("node1"), os.getpid() < 100, key >= 0, shared, links]))
"""


def test_nodes_have_names_numbers_and_memory_files_of_their_own() -> None:
    ran = run_in_namespaces([PYTHON, "-c", OWN], PAIR)
    assert ran.code == 0, (ran.output, ran.log)
    for node, reported in enumerate(map(json.loads, ran.output)):
        # The second node made System V memory under the same key, exclusively: IPC is its own.
        assert reported[:4] == [f"node{node}", "10.77.0.2", True, True]
        assert "mine" in reported[4] and len([name for name in reported[4] if name.startswith("scaleproof-")]) == 1
        assert reported[5] == ["eth0"]
    assert not Path("/dev/shm/mine").exists()


def test_bytes_past_the_links_fail_the_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", f"{Path(__file__).parent / 'smuggling'}{os.pathsep}{Path(__file__).parents[2] / 'harness'}"
    )
    records = run(tmp_path, [netns_case(arm="smuggler", program="transfer", sizes=[MIB], iterations=4)])
    failure = records["smuggler"][0].failure
    assert failure is not None
    assert failure.code == "wrong_interface"
    assert "the links of node0 carried" in failure.message and "took another way" in failure.message


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("node", "rank_killed", "node 1 was killed by SIGKILL"),
        ("rank", "rank_killed", "killed by SIGKILL"),
        ("stop", "rank_stopped", "stopped"),
    ],
)
def test_who_fails_is_named(tmp_path: Path, fault: str, code: str, message: str) -> None:
    with living(tmp_path, netns_case(sizes=[65536], iterations=1_000_000)) as launch:
        board = Board(launch.folder() / "board", 2)
        wait_until(lambda: all(board.read(rank).calls > 9 for rank in (0, 1)), "both ranks have made calls")
        rank = psutil.Process(board.pid(1))
        board.close()
        hit = time.monotonic()
        process = rank.parent() if fault == "node" else rank
        assert process is not None
        process.send_signal(signal.SIGSTOP if fault == "stop" else signal.SIGKILL)
    [record] = launch.records
    assert record.failure is not None
    assert (record.failure.code, record.failure.rank) == (code, 1), record.failure
    assert message in record.failure.message
    assert launch.watch.ended_at[record.launch] - hit < 10.0
    assert record.stall is not None
    assert any("all_reduce" in line or "wait" in line for line in record.stall.ranks[0].stack), record.stall.ranks[
        0
    ].stack
    if fault == "stop":
        assert any("File" in line for line in record.stall.ranks[1].stack), "py-spy reads through the namespaces"


def test_a_killed_creator_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "from scaleproof.launch.start.on_namespaces import run_in_namespaces\n"
        "from scaleproof.spec.cluster import star\n"
        "run_in_namespaces(['sleep', '60'], star('s', 3, 100.0, 1.0), cores=0.5)"
    )
    with subprocess.Popen([PYTHON, "-c", code], cwd=Path(__file__).parents[2]) as creator:
        wait_until(lambda: len(family(creator.pid, "sleep")) == 3, "three nodes run")
        alive = family(creator.pid)
        launch = alive[0].environ()["SCALEPROOF_LAUNCH"]
        creator.send_signal(signal.SIGKILL)
        creator.wait()
    assert not remaining(alive)
    assert not processes(launch)
    kinds = [item["kind"] for item in leftovers(tmp_path) if item["launch"] == launch]
    assert set(kinds) <= {"control group", "shared memory"} and "shared memory" in kinds
    removed = remove_leftovers(tmp_path)
    assert any(launch in line for line in removed)
    assert not core_quota.leftovers(f"scaleproof-{launch}") and not shared_memory(launch)
    clean(launch)


def test_cables_are_pulled_and_put_back(tmp_path: Path) -> None:
    code = """
import json, os, pathlib, socket, time
shared = pathlib.Path(os.environ["SCALEPROOF_SHARED"])
def reaches():
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.settimeout(0.1)
    opened.sendto(b"x", ("10.77.0.2", 5000))
    try:
        return opened.recv(1) == b"x"
    except OSError:
        return False
def becomes(wanted):
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if reaches() is wanted:
            return True
    return False
if os.environ["SCALEPROOF_NODE"] == "1":
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.bind(("10.77.0.2", 5000))
    while not (shared / "end").exists():
        here.settimeout(0.1)
        try:
            here.sendto(*here.recvfrom(9))
        except OSError:
            pass
else:
    said = [becomes(True)]
    for up in (False, True):
        (shared / "draft").write_text(json.dumps({"1": up}))
        (shared / "draft").rename(shared / "links.json")
        said.append(becomes(up))
    (shared / "end").touch()
    print(said)
"""
    ran = run_in_namespaces([PYTHON, "-c", code], PAIR, keep=tmp_path)
    assert ran.output[0].strip() == "[True, True, True]", (ran.output, ran.log)


def test_without_namespaces_a_case_is_not_runnable_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "unshare"
    program.write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    record, _ = run(tmp_path / "results", [netns_case()])["netns"]
    assert record.status == "not_runnable" and record.failure is not None
    assert "Operation not permitted" in record.failure.message and "fabric `simulated`" in record.failure.advice


def test_connections_are_spread_over_parallel_links() -> None:
    pair = Cluster("parallel", 2, (), (Link(("node0", "node1"), 200.0, 0.0),) * 2)
    code = """
import os, socket
listening = os.environ["SCALEPROOF_NODE"] == "0"
with socket.create_server((os.environ["SCALEPROOF_ADDRESS"], 5000 if listening else 0)) as listener:
    for number in range(16):
        while True:
            try:
                opened = listener.accept()[0] if listening else socket.create_connection(("node0", 5000), 5)
                break
            except ConnectionRefusedError:
                pass
        opened.recv(1 << 16, socket.MSG_WAITALL) if listening else opened.sendall(bytes(1 << 16))
        listening or opened.recv(1)  # until the other side has it all: counters are read when this program ends
        opened.close()
"""
    ran = run_in_namespaces([PYTHON, "-c", code], pair, timeout_s=30)
    assert ran.code == 0 and ran.network is not None, (ran.output, ran.log)
    sent = [ran.network["moved"][1][name]["tx_bytes"] for name in ("eth0", "eth1")]
    assert sum(sent) > 16 << 16 and min(sent) > 1 << 16, sent


def test_doctor_says_that_the_fabric_runs_here() -> None:
    [row] = [row for row in survey() if (row.kind, row.name) == ("fabric", "netns")]
    assert row.available, row


NETEM = """
from pyroute2 import IPRoute
from scaleproof.fabric.netns.veth_links import has_netem, shape
from scaleproof.spec.cluster import Link
with IPRoute() as route:
    index = route.link_lookup(ifname="eth0")[0]
    shape(route, index, Link(("a", "b"), 50.0, 3.0), netem=True)
    print(has_netem(), sorted(queue.get("kind") for queue in route.get_qdiscs(index=index)))
"""


def test_a_kernel_with_netem_delays_by_itself() -> None:
    """The guests' kernel has it."""
    need_guests()
    from scaleproof.launch.start.on_guests import run_in_guests

    ran = run_in_guests([PYTHON, "-c", NETEM])
    assert ran.code == 0, (ran.output, ran.log)
    assert ran.output[0].strip() == "True ['netem', 'tbf']"


def test_a_ring_of_direct_links_passes_on_through_nodes() -> None:
    ring = Cluster(
        "ring", 4, (), tuple(Link((f"node{node}", f"node{(node + 1) % 4}"), 200.0, 0.0) for node in range(4))
    )
    code = """
import os, pathlib, socket, threading, time
me, node = os.environ["SCALEPROOF_ADDRESS"], int(os.environ["SCALEPROOF_NODE"])
listener = socket.create_server((me, 5000))
peers = [peer for peer in range(4) if peer != node]
def serve():
    for _ in peers:
        opened = listener.accept()[0]
        opened.sendall(opened.getpeername()[0].encode())
        opened.close()
serving = threading.Thread(target=serve)
serving.start()
for peer in peers:
    while True:
        try:
            opened = socket.create_connection((f"node{peer}", 5000), 1)
            break
        except OSError:
            time.sleep(0.05)
    print(opened.recv(64, socket.MSG_WAITALL).decode() == me, end=" ")
serving.join()
shared = pathlib.Path(os.environ["SCALEPROOF_SHARED"])
(shared / f"read.{node}").touch()
while len(list(shared.glob("read.*"))) < 4:  # until then this node passes on what others send
    time.sleep(0.02)
"""
    ran = run_in_namespaces([PYTHON, "-c", code], ring, timeout_s=30)
    assert ran.output == ["True True True "] * 4, (ran.output, ran.log)
