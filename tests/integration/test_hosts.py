"""Launches over hosts of a list: by a shared folder and by files sent, through each launcher, and when nodes or the
supervisor go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.record.store import Store
from tests.integration.hosts import REACH, on_hosts, records, small
from tests.integration.netns import need_netns

MPI = {"mpi": "mpirun", "mpich": "mpich"}
"""Transports, and the launchers that they need."""
FOUR = [
    small("tcp", ranks=4),
    small("shm", transport="shm", ranks=2),
    *(
        small(library, transport=library, collective="native", launcher=launcher, ranks=4)
        for library, launcher in MPI.items()
    ),
]
TRAIN = small(
    "train",
    program="train",
    strategy="sync",
    transport="gloo",
    collective="native",
    workload="dnn_digits",
    minibatch=12,
    steps=3,
    data="digits",
)
for name in ("sizes", "iterations"):
    del TRAIN[name]


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    """No test here runs without them."""
    need_netns()


@pytest.fixture(scope="module", params=["shared", "streamed"])
def ran(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, dict[str, Record], Path]:
    """The same launches on three nodes, with one folder for all and with none."""
    streamed, folder = request.param == "streamed", tmp_path_factory.mktemp(request.param)
    variables: dict[str, Any] = {"SCALEPROOF_STREAM": "1"} if streamed else {}
    summary = on_hosts(folder, [*FOUR, TRAIN], 3, **variables)
    assert summary["left"] == [], summary["said"]
    return streamed, {record.case.arm: record for record in records(folder, summary)}, folder


def test_a_case_that_names_no_node_runs_on_several_and_says_where(ran):
    streamed, recorded, folder = ran
    record = recorded["tcp"]
    assert record.status == "ok", record.failure
    placement = record.placement
    assert placement is not None and (placement.kind, placement.launcher, placement.interface, placement.streamed) == (
        "hosts",
        "ssh",
        "eth0",
        streamed,
    )
    assert [(node.name, node.address, node.ranks) for node in placement.nodes] == [
        ("node0", "10.77.0.1", [0, 1]),
        ("node1", "10.77.0.2", [2]),
        ("node2", "10.77.0.3", [3]),
    ]
    assert record.evidence == "emulated" and record.case.interface == "lo" and record.case.nodes == 1
    samples = Store(folder / "results").samples(record).to_pandas()
    assert sorted(samples["rank"].unique()) == [0, 1, 2, 3] and (samples["end_ns"] >= samples["start_ns"]).all()


def test_ranks_of_one_node_are_bound_to_cores_of_their_own(ran):
    bound = [set(rank.facts["affinity"]) for rank in ran[1]["tcp"].ranks]
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core: nothing to share out")
    assert bound[0] and bound[1] and not bound[0] & bound[1] and bound[2] == os.sched_getaffinity(0)


def test_its_bytes_crossed_the_interface_between_nodes(ran):
    _, recorded, _ = ran
    assert len({part.namespace for part in recorded["tcp"].network}) == 3
    for part in recorded["tcp"].network:
        moved = part.after["eth0"]["tx_bytes"] - part.before["eth0"]["tx_bytes"]
        assert moved > part.asked_bytes / 4 > 0


def test_ranks_that_share_memory_stand_on_one_node(ran):
    record = ran[1]["shm"]
    assert record.status == "ok", record.failure
    assert record.placement is not None and [(node.name, node.ranks) for node in record.placement.nodes] == [
        ("node0", [0, 1])
    ]


@pytest.mark.parametrize("library", MPI)
def test_mpi_starts_its_ranks_on_every_node(ran, library):
    record = ran[1][library]
    assert record.status == "ok", record.failure
    assert [rank.facts["node"] for rank in record.ranks] == [0, 0, 1, 2]
    assert all(check.passed for check in record.checks) and record.checks
    assert {rank["path"] for rank in record.transport["ranks"]} == {"socket"}


def test_training_gives_every_node_the_same_parameters_and_keeps_its_logs(ran):
    _, recorded, folder = ran
    record = recorded["train"]
    assert record.status == "ok", record.failure
    record_folder = folder / "results" / "runs" / record.case_id / record.launch
    assert {path.name for path in record_folder.glob("rank-*.log")} == {"rank-0.log", "rank-1.log", "rank-2.log"}
    assert set(record.artifacts) <= {path.name for path in record_folder.iterdir()}
    samples = Store(folder / "results").samples(record).to_pandas()
    losses = samples[samples["event"].astype(str).str.contains("loss")]
    assert len(losses) and np.isfinite(losses["value"]).all()


@pytest.mark.parametrize("rendezvous", ["static", "c10d"])
def test_torchrun_starts_ranks_at_their_places(tmp_path, rendezvous):
    summary = on_hosts(tmp_path, [small("tcp")], 2, SCALEPROOF_LAUNCHER="torchrun", SCALEPROOF_RENDEZVOUS=rendezvous)
    [record] = records(tmp_path, summary)
    assert record.status == "ok", (record.failure, summary["said"])
    assert (
        record.placement is not None
        and record.placement.launcher == "torchrun"
        and [node.ranks for node in record.placement.nodes] == [[0, 1], [2]]
    )
    assert [rank.facts["node"] for rank in record.ranks] == [0, 0, 1] and summary["left"] == []


def test_a_node_that_finds_no_way_to_the_supervisor_is_no_lost_node_and_says_what_kept_it(tmp_path):
    barred = tmp_path / "barred"
    barred.write_text(f'#!/bin/sh\nhost=$1; shift\nexec {REACH} "$host" "ip route replace prohibit 10.77.0.1; $*"\n')
    barred.chmod(0o755)
    summary = on_hosts(tmp_path, [small("barred")], 2, SCALEPROOF_SSH=str(barred))
    [record] = records(tmp_path, summary)
    assert record.failure is not None and record.failure.code == "preflight" and summary["left"] == []
    assert "start_failed: node node1: its agent could not join the launch" in record.failure.message
    assert "10.77.0.1" in record.failure.message and "PermissionError" in record.failure.message


def _lost(
    folder: Path, fault: str, fields: dict[str, Any] | None = None, **variables: Any
) -> tuple[list[Record], dict[str, Any]]:
    cases = [small("long", iterations=500_000, **(fields or {})), small("two", ranks=2), small("three")]
    summary = on_hosts(folder, cases, 3, fault, **variables)
    return records(folder, summary), summary


def _went_on(recorded: Sequence[Record], summary: dict[str, Any]) -> None:
    """The launch names its node, the case of two ranks went on, those of three wait, nothing is left on nodes that
    live."""
    assert [(record.case.arm, record.status) for record in recorded] == [("long", "failed"), ("two", "ok")], summary[
        "said"
    ]
    failure = recorded[0].failure
    assert (
        failure is not None
        and (failure.code, failure.rank) == ("node_lost", 2)
        and failure.message.startswith("node node2: ")
    )
    assert recorded[1].placement is not None and [node.name for node in recorded[1].placement.nodes] == [
        "node0",
        "node1",
    ]
    assert "2 launches need as many nodes as before" in summary["stopped"]


def test_a_node_whose_processes_are_killed_is_lost_by_name_and_the_run_goes_on(tmp_path):
    recorded, summary = _lost(tmp_path, "kill", SCALEPROOF_STREAM="1")
    _went_on(recorded, summary)
    assert summary["left"] == []


@pytest.mark.parametrize("library", MPI)
def test_a_node_lost_under_mpi_ends_the_launch_by_its_name(tmp_path, library):
    recorded, summary = _lost(
        tmp_path, "kill", {"transport": library, "collective": "native", "launcher": MPI[library]}
    )
    _went_on(recorded, summary)
    assert summary["left"] == []


def test_a_node_without_a_cable_is_lost_and_ends_its_ranks_by_itself(tmp_path):
    recorded, summary = _lost(tmp_path, "cut")
    _went_on(recorded, summary)
    assert (
        "nothing was heard of it for 10 s" in (recorded[0].failure.message if recorded[0].failure else "")
        and summary["left"] == []
    )


def test_a_killed_supervisor_leaves_nothing_on_any_node_and_the_next_goes_on(tmp_path):
    summary = on_hosts(tmp_path, [small("long", iterations=500_000)], 3, "supervisor")
    assert summary["left"] == [] and len(summary["killed"]) == 1
    [record] = records(tmp_path, summary)
    assert record.status == "ok" and record.launch not in summary["killed"]
