"""Guests and their network without booting any: plan, shaping, command lines, packet counts of a capture, placement of
ranks, the name of the level of evidence."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from scaleproof.core import location
from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.core.evidence_marks import evidence_text
from scaleproof.fabric import capture
from scaleproof.fabric.guests import bridge, qemu, uml
from scaleproof.fabric.guests.guest_node import shaping
from scaleproof.fabric.guests.guest_plan import GuestPlan, address, read_plan
from scaleproof.fabric.guests.guests import Guests
from scaleproof.launch.finish.disturbances import link_warnings
from scaleproof.launch.launchers.launcher_contract import ranks_of
from scaleproof.launch.watch.failure_signs import ended_badly
from scaleproof.launch.watch.rank_processes import OnNodes
from scaleproof.rank.status_publisher import processes_file
from tests.short_form import case_from

TRANSFER = {"program": "transfer", "suite": "s", "experiment": "e", "arm": "a", "transport": "tcp", "sizes": [8]}


@pytest.mark.parametrize(
    ("ranks", "nodes", "placed"),
    [(2, 1, [[0, 1]]), (2, 2, [[0], [1]]), (5, 2, [[0, 1, 2], [3, 4]]), (4, 4, [[0], [1], [2], [3]])],
)
def test_ranks_fill_nodes_in_order_and_no_node_stays_empty(ranks, nodes, placed):
    assert [ranks_of(node, nodes, ranks) for node in range(nodes)] == placed


def test_a_case_in_guests_means_eth0_unless_it_says_otherwise():
    assert case_from({**TRANSFER, "fabric": "guests"}).interface == "eth0"
    assert case_from({**TRANSFER, "fabric": "guests", "interface": "eth1"}).interface == "eth1"
    assert case_from(TRANSFER).interface == "lo"
    hindrance = Guests("eth1").obstacle()
    assert hindrance is not None and "no interface 'eth1'" in hindrance[0]


def test_a_plan_comes_back_as_it_was_written(tmp_path):
    plan = GuestPlan(nodes=2, commands=[["a"], ["b"]], ranks=[[0], [1]], link_mbit=100, link_delay_ms=1.5, capture=True)
    plan.write(tmp_path)
    assert read_plan(tmp_path) == plan


def test_addresses_are_distinct_over_many_nodes():
    assert address(0) == "10.77.0.1"
    assert len({address(node) for node in range(1000)}) == 1000
    assert len({bridge.mac(node) for node in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("mbit", "delay_ms", "lines"),
    [
        (None, 0, []),
        (None, 2.5, ["root handle 1: netem delay 2.5ms limit 100000"]),
        (100, 0, ["root handle 2: tbf rate 100000000bit burst 65536 limit 4194304"]),
        (
            1000,
            1,
            [
                "root handle 1: netem delay 1ms limit 100000",
                "parent 1:1 handle 2: tbf rate 1000000000bit burst 500000 limit 4194304",
            ],
        ),
    ],
)
def test_what_a_node_sends_is_delayed_and_then_shaped(mbit, delay_ms, lines):
    assert shaping(GuestPlan(nodes=2, commands=[], link_mbit=mbit, link_delay_ms=delay_ms)) == lines


def test_command_lines_name_memory_tap_and_first_program():
    plan = GuestPlan(nodes=2, commands=[], memory_mib=700)
    argv = uml.command(Path("/k/linux"), plan, 1, Path("/s/init-1"), Path("/s"))
    assert argv[:2] == ["/k/linux", "mem=700M"] and "init=/s/init-1" in argv
    assert f"vec0:transport=tap,ifname={bridge.tap(1)},depth=64,mac={bridge.mac(1)},mtu=4500" in argv
    argv = qemu.command(Path("/k"), plan, 1, Path("/s/start-1"))
    assert argv[argv.index("-m") + 1] == "700"
    assert argv[argv.index("-append") + 1].endswith("scaleproof.start=/s/start-1")


def ethernet(protocol: int, body: bytes) -> bytes:
    return bytes(12) + struct.pack(">H", protocol) + body


def ipv4(protocol: int, ports: tuple[int, int], body: bytes, sender: int = 1) -> bytes:
    transport = (
        struct.pack(">HHHH", *ports, 8 + len(body), 0) if protocol == 17 else struct.pack(">HH", *ports) + bytes(16)
    )
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(transport) + len(body), 0, 0, 64, protocol, 0)
    return ethernet(0x0800, head + bytes([10, 77, 0, sender, 10, 77, 0, 3]) + transport + body)


def roce(opcode: int, number: int, headers: int, payload: int, padding: int = 0) -> bytes:
    base = struct.pack(">BBHII", opcode, padding << 4, 0xFFFF, 17, number)
    return ipv4(17, (49152, 4791), base + bytes(headers + payload + padding + 4))


def pcap(path: Path, frames: list[bytes]) -> Path:
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
    path.write_bytes(
        head + b"".join(struct.pack("<IIII", 0, 0, min(len(frame), 96), len(frame)) + frame[:96] for frame in frames)
    )
    return path


def test_a_capture_counts_operations_messages_and_payload(tmp_path):
    write = [roce(6, 0, 16, 4096), roce(7, 1, 0, 4096), roce(9, 2, 4, 101, 3)]
    frames = [*write, roce(17, 2, 4, 0), roce(12, 3, 16, 0), roce(16, 3, 4, 300), roce(10, 4, 16, 8), roce(4, 5, 0, 64)]
    counts = capture.count(pcap(tmp_path / "wire.pcap", frames))
    assert counts["frames"] == 8 and counts["bytes"] == sum(map(len, frames))
    assert counts["roce"] == {
        "operations": {
            "ACKNOWLEDGE": 1,
            "READ_REQUEST": 1,
            "READ_RESPONSE_ONLY": 1,
            "SEND_ONLY": 1,
            "WRITE_FIRST": 1,
            "WRITE_LAST_WITH_IMM": 1,
            "WRITE_MIDDLE": 1,
            "WRITE_ONLY": 1,
        },
        "messages": 4,
        "payload_bytes": 2 * 4096 + 101 + 300 + 8 + 64,
        "again": 0,
    }


def test_what_is_sent_again_counts_once_as_payload(tmp_path):
    counts = capture.count(
        pcap(tmp_path / "wire.pcap", [roce(10, 7, 16, 512), roce(10, 7, 16, 512), roce(17, 7, 4, 0), roce(17, 7, 4, 0)])
    )
    assert (counts["roce"]["payload_bytes"], counts["roce"]["again"]) == (512, 1)


def test_other_traffic_is_counted_apart_from_the_fabrics_own_probe(tmp_path):
    frames = [
        ipv4(6, (40000, 5000), b"data"),
        ipv4(6, (40001, 9), b"rate"),
        ipv4(17, (40002, 7), b"echo"),
        ethernet(0x0806, bytes(28)),
        ethernet(0x86DD, bytes(60)),
    ]
    kinds = capture.count(pcap(tmp_path / "wire.pcap", frames))["kinds"]
    assert {kind: counts["frames"] for kind, counts in kinds.items()} == {"arp": 1, "ipv6": 1, "probe": 2, "tcp": 1}


def test_a_file_that_is_no_capture_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"no pcap")
    with pytest.raises(ValueError, match="no pcap file"):
        capture.count(tmp_path / "x")


def test_a_rank_on_a_node_maps_in_its_memory_and_binds_its_nodes_address(tmp_path, monkeypatch):
    assert (location.node(), location.mapped(tmp_path), location.address("127.0.0.1"), location.to_supervisor_ns()) == (
        None,
        tmp_path,
        "127.0.0.1",
        0,
    )
    for name, value in {
        "SCALEPROOF_NODE": "1",
        "SCALEPROOF_ADDRESS": "10.77.0.2",
        "SCALEPROOF_CLOCK_NS": "-5",
        "TMPDIR": "/dev/shm/x",
    }.items():
        monkeypatch.setenv(name, value)
    assert (location.node(), location.mapped(tmp_path), location.address("127.0.0.1"), location.to_supervisor_ns()) == (
        1,
        Path("/dev/shm/x/mapped"),
        "10.77.0.2",
        -5,
    )
    assert location.namespace().startswith("node1/")


def test_processes_of_guests_are_those_that_their_nodes_report(tmp_path):
    write_json(processes_file(tmp_path, 1), {"2": {"state": "T", "used_s": 1.5, "read_bytes": 7}})
    processes = OnNodes(tmp_path, [0, 0, 1])
    assert (processes.state(2, 99, ()), processes.disk_bytes(2, 99)) == (("T", 1.5), 7)
    assert processes.state(0, 99, ()) == ("", 0.0)
    assert read_json(tmp_path / "absent") is None


def test_a_rank_of_a_dead_node_failed_as_its_coordinator_says():
    sign = ended_badly(
        1,
        {
            "pid": 0,
            "exit_code": None,
            "signal": 9,
            "at_ns": 5,
            "code": "rank_killed",
            "message": "node 1 was killed by SIGKILL",
        },
        None,
    )
    assert sign is not None
    assert (sign.code, sign.rank, sign.message) == ("rank_killed", 1, "node 1 was killed by SIGKILL")


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ({"rtt_ms": 10.4, "mbit": 95.0}, None),
        ({"rtt_ms": 9.0, "mbit": 95.0}, "node 0 round trip 9 ms, 10 set"),
        ({"rtt_ms": 30.0, "mbit": 95.0}, "node 0 round trip 30 ms"),
        ({"rtt_ms": 10.4, "mbit": 40.0}, "node 0 40 Mbit/s, 100 set"),
        ({"rtt_ms": 10.4, "mbit": 900.0}, "node 0 900 Mbit/s, 100 set"),
        ({}, None),
        (None, None),
    ],
)
def test_a_link_that_misses_its_set_rate_or_delay_is_a_warning(link, message):
    warnings = link_warnings({"link_delay_ms": 5.0, "link_mbit": 100.0, "found": [link]})
    assert [message in warning.message for warning in warnings] == ([True] if message else [])
    assert link_warnings(None) == []


def test_figures_of_soft_roce_are_labelled():
    assert evidence_text("emulated", "guests", "rdma") == "emulated, soft-RoCE"
    assert evidence_text("emulated", "guests", "grpc+rdma") == "emulated, soft-RoCE"
    assert evidence_text("emulated", "guests", "tcp") == "emulated"
    assert evidence_text("measured", "host", "rdma") == "measured"
