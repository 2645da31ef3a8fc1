"""What is recorded and checked around real launches: counters, bound addresses, preflight, libraries, seeds,
padding."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scaleproof.cli import main
from scaleproof.core.counters import network_namespace, read_counters
from scaleproof.core.record_schema import RankNetwork
from scaleproof.launch import single_launch
from scaleproof.launch.preflight import machine_preflight
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.record.wire import other_carrier, traffic_by_namespace
from tests.integration.in_namespace import OTHER, namespaced, unshare
from tests.integration.launches import assert_nothing_left, launches, small_case
from tests.short_form import case_from

MIB = 1 << 20


def test_through_shared_memory_interfaces_stay_still(tmp_path: Path) -> None:
    [record] = namespaced(tmp_path, ["link set lo up"], [{"sizes": [4 * MIB], "iterations": 10}])
    [wire] = traffic_by_namespace(record.network)
    assert record.status == "ok" and wire.ranks == (0, 1)
    assert wire.asked_bytes >= 2 * 10 * 4 * MIB
    assert sum(wire.sent_bytes.values()) < 0.01 * wire.asked_bytes
    assert "interfaces_moved" not in {warning.code for warning in record.warnings}


def test_bytes_on_the_requested_interface_are_counted_beside_the_bytes_asked(tmp_path: Path) -> None:
    [record] = namespaced(tmp_path, ["link set lo up"], [{"transport": "tcp", "sizes": [4 * MIB], "iterations": 10}])
    [wire] = traffic_by_namespace(record.network)
    assert (record.status, wire.interface) == ("ok", "lo")
    assert wire.share is not None and 1 <= wire.share < 1.05
    assert record.network[0].after["lo"]["tx_packets"] > record.network[0].before["lo"]["tx_packets"]


def test_traffic_on_another_interface_than_the_requested_one_fails_the_launch(tmp_path: Path) -> None:
    [record] = namespaced(tmp_path, OTHER, [{"transport": "tcp", "sizes": [4 * MIB], "interface": "around0"}])
    assert record.failure is not None and record.failure.code == "wrong_interface"
    assert re.fullmatch(
        r"'lo' carried \d+ MiB of the 200 MiB asked, the requested 'around0' [\d.]+ K?i?B", record.failure.message
    ), record.failure.message
    [wire] = traffic_by_namespace(record.network)
    assert wire.sent_bytes["around0"] < 16 << 10  # the kernel's own: a new IPv6 address announces itself


def test_what_each_socket_transport_binds_is_recorded(tmp_path: Path) -> None:
    native = ("gloo", "horovod", "tensorflow-grpc", "tensorflow-mirrored")
    transports = {"tcp": "ring", "grpc": "ring", **dict.fromkeys(native, "native")}
    cases = [
        {"transport": name, "collective": collective, "interface": "around0"} for name, collective in transports.items()
    ]
    for record in namespaced(tmp_path, OTHER, cases):
        assert record.status == "ok", record.failure
        sockets = [rank.facts["sockets"] for rank in record.ranks]
        others = {address for addresses in sockets for kind in addresses.values() for address in kind} - {"10.99.0.1"}
        assert others == set(), (
            record.case.transport
        )  # horovod's too: the patch of its build names the interface to its process sets
        assert "other_address" not in {warning.code for warning in record.warnings}
        assert all("10.99.0.1" in addresses["connected"] for addresses in sockets)


def test_pairs_that_cannot_connect_refuse_the_launch_before_it_starts(tmp_path: Path) -> None:
    setup = [line for line in OTHER if line != "link set lo up"]  # the way between two addresses of one namespace
    [record] = namespaced(tmp_path, setup, [{"transport": "tcp", "interface": "around0"}])
    assert record.failure is not None and record.failure.code == "preflight" and record.ranks == []
    failed = {check.code: check for check in record.preflight if check.passed is False}
    assert "rank 1 to rank 0" in failed["pairs"].message and failed["pairs"].advice


def test_a_real_link_between_two_namespaces_is_the_one_that_carried() -> None:
    prefix = unshare()
    server = subprocess.Popen(
        [*prefix, sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        process = subprocess.run(
            [*prefix, sys.executable, "-c", _CLIENT, str(server.pid)],
            stdout=subprocess.PIPE,
            text=True,
            timeout=30,
            check=True,
        )
    finally:
        server.kill()
        server.wait()
    summary = json.loads(process.stdout)
    [wire] = traffic_by_namespace([RankNetwork(rank=0, asked_bytes=8 * MIB, **summary)])
    assert wire.interface == "wire0" and wire.share is not None and 1 <= wire.share < 1.1
    assert other_carrier(wire, "wire0") is None and other_carrier(wire, "lo") == "wire0"
    assert summary["namespace"] != network_namespace() and "wire0" not in read_counters()


_SERVER = """
import socket, sys
print("ready", flush=True)
sys.stdin.read(1)
"""
_CLIENT = """
import json, socket, subprocess, sys, time
from scaleproof.core.counters import network_namespace, read_counters
ip = lambda *words: subprocess.run(["ip", *words], check=True)
inside = ["nsenter", "-t", sys.argv[1], "-n"]
ip("link", "set", "lo", "up")
ip("link", "add", "wire0", "type", "veth", "peer", "name", "wire1", "netns", sys.argv[1])
ip("address", "add", "10.98.0.1/24", "dev", "wire0"); ip("link", "set", "wire0", "up")
for words in (["address", "add", "10.98.0.2/24", "dev", "wire1"], ["link", "set", "wire1", "up"]):
    subprocess.run([*inside, "ip", *words], check=True)
sink = "import socket; s = socket.create_server(('10.98.0.2', 7000)); print('up', flush=True); c = s.accept()[0]"
sink += "\\nwhile c.recv(1 << 20): pass"
other = subprocess.Popen([*inside, sys.executable, "-c", sink], stdout=subprocess.PIPE)
other.stdout.readline()
before = read_counters()
with socket.create_connection(("10.98.0.2", 7000), 10) as sending:
    sending.sendall(bytes(8 << 20))
other.wait(10)
print(json.dumps({"namespace": network_namespace(), "before": before, "after": read_counters()}))
"""


def test_a_launch_keeps_its_preflight_seeds_libraries_and_padding(tmp_path: Path) -> None:
    outcome = run_plan(launches([small_case()], 2), tmp_path, size="ci", deadline_s=30)
    records = [Store(tmp_path).load(launch)[0] for launch in outcome.launches]
    first = records[0]
    codes = [check.code for check in first.preflight]
    assert {
        "disk",
        "memory",
        "names",
        "ports",
        "pairs",
        "clock",
        "speed",
        "memlock",
        "oversubscribed",
        "same_libraries",
        "seeds",
    } <= set(codes)
    assert all(check.passed for check in first.preflight)
    assert "libc.so.6" in first.environment["libraries"] and all(
        rank.facts["libraries"] == {} == rank.facts["host"] for rank in first.ranks
    )
    assert [rank.facts["seeds"]["launch"] for rank in first.ranks] == [first.seed] * 2
    assert len({record.environment["padding_bytes"] for record in records}) == 2
    sizes = {record.ranks[0].facts["variables_bytes"] - record.environment["padding_bytes"] for record in records}
    assert len(sizes) == 1, "the padding is really in the ranks' environment"
    assert {"start", "end"} == set(first.ranks[0].facts["pace"]) and first.ranks[0].facts["thread_pools"]


def test_a_check_that_fails_is_recorded_and_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_preflight, "memory_mib", lambda: 1)
    outcome = run_plan(launches([small_case()]), tmp_path, size="ci", deadline_s=30)
    record = Store(tmp_path).load(outcome.launches[0])[0]
    assert outcome.failed == 1 and record.failure is not None
    assert (
        record.failure.code == "preflight"
        and record.failure.message.startswith("memory: ")
        and "smaller" in record.failure.advice
    )
    assert record.ranks == [] and record.wall_s == 0


def test_a_person_can_run_the_preflight_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["preflight", "das2016", "throughput", "--size", "ci", "--results", str(tmp_path / "none")]) == 0
    printed = capsys.readouterr().out
    assert "2 of 2 launches can run here" in printed and "pairs" in printed and "GFLOP/s" in printed
    assert not list(tmp_path.iterdir())


def test_show_has_the_wire_and_the_preflight(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = run_plan(launches([small_case(transport="tcp", sizes=[MIB])]), tmp_path, size="ci", deadline_s=30)
    assert main(["show", outcome.launches[0], "--results", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert (
        "wire of ranks 0, 1: requested" in shown
        and "per byte requested" in shown
        and "preflight:" in shown
        and "not readable here:" in shown
    )


def test_a_port_that_is_taken_is_nobody_elses_problem(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)):
        outcome = run_plan(launches([small_case(transport="tcp")], 2), tmp_path, size="ci", deadline_s=30)
    assert outcome.completed == 2


def test_a_wrong_result_fails_the_launch_in_every_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", f"{Path(__file__).parent / 'lying'}{os.pathsep}{Path(__file__).parents[2] / 'harness'}"
    )
    train = {
        "program": "train",
        "strategy": "sync",
        "workload": "dnn_digits",
        "workload.data": "digits",
        "minibatch": 8,
        "steps": 2,
        "collective": "ring",
    }
    cases = [
        small_case(transport="tcp"),
        case_from(
            {
                "program": "transfer",
                "suite": "tests",
                "experiment": "wrong",
                "arm": "a",
                "transport": "tcp",
                "collective": "ring",
                "sizes": [4096],
            }
        ),
        case_from({**train, "suite": "tests", "experiment": "wrong", "arm": "a", "ranks": 2, "transport": "tcp"}),
    ]
    outcome = run_plan(launches(cases), tmp_path, size="ci", deadline_s=60)
    records = [Store(tmp_path).load(launch)[0] for launch in outcome.launches]
    assert [record.failure and record.failure.code for record in records] == ["check_failed"] * 3
    assert {record.case.program for record in records} == {"collective", "transfer", "train"}


def test_a_launch_waits_for_near_cores_as_long_as_it_was_told_and_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def made_up(ranks: int, near_cores_s: float | None) -> dict[str, Any]:
        return {"round_trip_ns": 600, "cores": [0, 1], "waited_s": near_cores_s}

    monkeypatch.setattr(single_launch, "before_launch", made_up)
    results = ["--results", str(tmp_path)]
    assert main(["run", "das2016", "collective", "--size", "ci", "--near-cores", "2.5", *results]) == 0
    [record] = Store(tmp_path).records()
    assert record.environment["load"]["before"]["core_distance"]["waited_s"] == 2.5
    assert main(["show", record.launch, *results]) == 0
    assert (
        "cores: a cache line took 600 ns between 0, 1 and back (far), after 2.5 s of waiting" in capsys.readouterr().out
    )


def test_every_launch_of_several_ranks_records_the_distance_of_its_cores(tmp_path: Path) -> None:
    outcome = run_plan(launches([small_case()]), tmp_path, size="ci", deadline_s=30)
    distance = Store(tmp_path).load(outcome.launches[0])[0].environment["load"]["before"]["core_distance"]
    assert distance is None or ("waited_s" not in distance and distance["round_trip_ns"] > 0)
    assert_nothing_left(tmp_path, outcome.launches)
