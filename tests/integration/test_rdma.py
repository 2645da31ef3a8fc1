"""Transport rdma in guests: real verbs over soft-RoCE in one node, between two and between four. The checks are in
tests/integration/rdma, many per boot.

On a machine with a device, RDMA_TEST_INTERFACE=NAME runs those of one node there, without guests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scaleproof.launch.start.node_command import CommandResult
from scaleproof.launch.start.on_guests import run_in_guests
from tests.integration.guests import need_guests
from tests.integration.rdma import faults, moving, remote, wires
from tests.integration.rdma.checks import CHECKS

WITHIN_S = 280.0
HEAP = str(1 << 32)
MEMORY = {"MALLOC_MMAP_THRESHOLD_": HEAP, "MALLOC_TRIM_THRESHOLD_": HEAP, "MALLOC_TOP_PAD_": str(64 << 20)}
"""A page fault costs a User-Mode Linux kernel far more than the copy of a page: freed memory is kept."""
SETS: dict[str, tuple[int, list[str]]] = {
    "one node": (
        1,
        [
            "conforms_with_2_ranks",
            "conforms_with_3_ranks",
            "device_operations",
            "copies_and_requests_are_counted",
            "a_long_write_shows_progress",
            *(name for name in CHECKS if CHECKS[name].__module__ == faults.__name__),
            "many_messages_never_overflow_a_queue",
            *(name for name in CHECKS if CHECKS[name].__module__ == remote.__name__),
        ],
    ),
    "two nodes": (
        2,
        [
            "conforms_with_a_rank_per_node",
            "device_operations",
            *(
                f"a_{fault}"
                for fault in ("link_set_down_and_up_loses_nothing", "node_that_is_cut_off_is_lost_within_seconds")
            ),
        ],
    ),
    "four nodes": (4, ["four_nodes_agree"]),
    "mailbox": (1, ["a_mailbox_conforms_with_3_ranks", "a_mailbox_whose_peer_dies_says_so"]),
    "mailbox between nodes": (2, ["a_mailbox_conforms_with_a_rank_per_node"]),
    "wire": (2, ["known_traffic"]),
}
"""Nodes and checks of each boot."""
ETHERNET, IPV4_UDP, BASE, CHECKSUM = 14, 28, 12, 4
RETH, AETH, IMMEDIATE = 16, 4, 4
OUTSIDE = "RDMA_TEST_INTERFACE"
GRANT_BYTES, PROBE_BYTES, SLOT = 40, 8, 16 << 10


@cache
def results(name: str, folder: Path) -> tuple[dict[tuple[str, int], str], CommandResult | None]:
    """Errors by check and node, and what the coordinator told."""
    nodes, checks = SETS[name]
    folder.mkdir()
    command = [sys.executable, "-m", "tests.integration.rdma.checks", *checks]
    variables = {**MEMORY, "NODES": str(nodes)}
    ran = None
    if OUTSIDE in os.environ:
        subprocess.run(
            command, env={**os.environ, **variables, "SCALEPROOF_SHARED": str(folder)}, timeout=WITHIN_S, check=False
        )
    else:
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, value)
            ran = run_in_guests(command, nodes=nodes, timeout_s=WITHIN_S, keep=folder, capture=name == "wire")
    outcomes = [json.loads(path.read_text()) for path in folder.glob("*.result")]
    return {(result["check"], result["node"]): result["error"] for result in outcomes}, ran


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rdma")


@pytest.mark.timeout(WITHIN_S + 60)
@pytest.mark.parametrize(("name", "check"), [(name, check) for name, (_, checks) in SETS.items() for check in checks])
def test_verbs(name: str, check: str, folder: Path) -> None:
    nodes = SETS[name][0]
    if OUTSIDE not in os.environ:
        need_guests()
    elif nodes > 1:
        pytest.skip("one machine is one node")
    errors, ran = results(name, folder / name.replace(" ", "-"))
    output = "\n".join([*ran.output, ran.log]) if ran else ""
    for node in range(nodes):
        assert (check, node) in errors, f"{check} did not end on node {node}\n{output}"
        assert not errors[check, node], errors[check, node]


@pytest.mark.timeout(WITHIN_S + 60)
def test_bytes_on_the_wire_are_those_asked_and_the_protocols_own(folder: Path) -> None:
    """Frames of a capture at the taps, by opcode, against what ranks asked their devices for; and what headers cost."""
    need_guests()
    _, ran = results("wire", folder / "wire")
    assert ran is not None and ran.network is not None
    roce, kinds = ran.network["wire"]["roce"], ran.network["wire"]["kinds"]
    asked_bytes: dict[str, int] = {}
    for path in (folder / "wire").glob("check-*/operations-*.json"):
        for name, count in json.loads(path.read_text()).items():
            asked_bytes[name] = asked_bytes.get(name, 0) + count
    if roce["again"]:
        pytest.skip(f"the device sent {roce['again']} packets again: the machine was too busy to count")
    small, large, read = wires.SMALL, wires.LARGE, wires.READ
    assert asked_bytes["write_with_imm"] == large[0] and asked_bytes["read"] == read[0]
    assert _messages(roce, "SEND") == asked_bytes["send"] and _messages(roce, "WRITE") == asked_bytes[
        "write_with_imm"
    ] + asked_bytes.get("write", 0)
    assert roce["operations"]["READ_REQUEST"] == read[0]
    payload = small[0] * small[1] + large[0] * (large[1] + GRANT_BYTES) + read[0] * read[1]
    assert roce["payload_bytes"] == payload + PROBE_BYTES * asked_bytes.get("write", 0)
    assert kinds["roce"]["bytes"] == roce["payload_bytes"] + _headers(roce["operations"], roce["payload_bytes"])


def _messages(roce: dict[str, Any], kind: str) -> int:
    """Messages of a kind: each ends in one packet."""
    return sum(
        count
        for name, count in roce["operations"].items()
        if name.startswith(kind) and ("ONLY" in name or "LAST" in name)
    )


def _headers(operations: dict[str, int], payload: int) -> int:
    """Ethernet, IP, UDP, base transport header and checksum of every packet, and what its opcode adds; no payload here
    needs padding."""
    assert payload % 4 == 0
    extra = 0
    for name, count in operations.items():
        extra += count * (IMMEDIATE * name.endswith("WITH_IMM"))
        extra += count * (RETH * (name.startswith(("WRITE_FIRST", "WRITE_ONLY")) or name == "READ_REQUEST"))
        extra += count * (AETH * (name == "ACKNOWLEDGE" or (name.startswith("READ_RESPONSE") and "MIDDLE" not in name)))
    return extra + sum(operations.values()) * (ETHERNET + IPV4_UDP + BASE + CHECKSUM)


assert moving  # its checks are named above
