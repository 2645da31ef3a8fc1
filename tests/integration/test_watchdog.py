"""Launches in which nobody fails and nothing moves: the record names the first silent rank, whom each other one waited
for, and has all stacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.commands.show_stall import stall_lines
from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.launch.watch.failure_signs import SILENT_S
from scaleproof.record.store import Store
from scaleproof.spec import registry
from tests.integration.faulty.faulty_program import fault_of
from tests.integration.launches import (
    WITHIN_S,
    Timekeeper,
    assert_nothing_left,
    launches,
    small_case,
    use_faulty_program,
)

STALL_S = 1.5
TCP: dict[str, Any] = {"transport": "tcp"}
GLOO: dict[str, Any] = {"transport": "gloo", "collective": "native"}
MPI: dict[str, Any] = {"transport": "mpi", "collective": "native", "launcher": "mpirun"}
HOROVOD: dict[str, Any] = {"transport": "horovod", "collective": "native"}


def run(
    tmp_path: Path, fault: str, fields: dict[str, Any], stall_s: float = STALL_S, deadline_s: float = 30.0
) -> tuple[Record, float]:
    """The record of one launch, and the seconds from its fault to its record."""
    watch, results = Timekeeper(), tmp_path / "results"
    with pytest.MonkeyPatch.context() as patch:
        use_faulty_program(patch, fault, tmp_path / "faults")
        [launch] = run_plan(
            launches([small_case("faulty", **fields)]),
            results,
            size="ci",
            deadline_s=deadline_s,
            stall_s=stall_s,
            progress=watch,
        ).launches
    assert_nothing_left(results, [launch])
    return Store(results).load(launch)[0], watch.ended_at[launch] - float((tmp_path / "faults" / launch).read_text())


@pytest.mark.parametrize(
    ("fields", "fault", "where"),
    [
        (TCP, "wait in Python", "wait_for_nobody"),
        ({}, "wait in Python", "wait_for_nobody"),
        ({"transport": "grpc"}, "wait in Python", "wait_for_nobody"),
        (GLOO, "wait in Python", "wait_for_nobody"),
        (MPI, "wait in Python", "wait_for_nobody"),
        (HOROVOD, "wait in Python", "wait_for_nobody"),
        (TCP, "sleep in C", "in fail"),
    ],
    ids=["tcp", "shm", "grpc", "gloo", "mpi", "horovod", "C"],
)
def test_a_rank_that_stands_still_is_named_and_the_others_wait_for_it(
    tmp_path: Path, fields: dict[str, Any], fault: str, where: str
) -> None:
    if not (availability := registry.availability("transport", fields.get("transport", "shm"))).available:
        pytest.skip(availability.why)
    record, took = run(tmp_path, fault, fields)
    rank, step = fault_of(record.seed, 2)
    assert record.failure is not None and record.stall is not None
    assert (record.failure.code, record.failure.rank, record.failure.step, record.stall.first_silent) == (
        "stalled",
        rank,
        step,
        rank,
    ), record.failure
    still, other = record.stall.ranks[rank], record.stall.ranks[1 - rank]
    assert any(where in line for line in still.stack), still
    assert still.waits_for == -1
    # A library does not say for whom it waits.
    assert other.waits_for == (-1 if fields in (GLOO, MPI, HOROVOD) else rank), other
    assert f"rank {1 - rank} waits for rank {rank}" in record.stall.why
    assert "all_reduce" in other.operation and any("faulty_program.py" in line for line in other.stack), other
    assert min(still.still_s, other.still_s) >= STALL_S
    assert took < STALL_S + WITHIN_S


def test_two_ranks_that_wait_for_each_other_are_a_deadlock(tmp_path: Path) -> None:
    record, _ = run(tmp_path, "deadlock", TCP)
    assert record.failure is not None and record.stall is not None
    assert record.failure.code == "stalled"
    assert "deadlock" in record.failure.message and "deadlock" in record.stall.why
    assert [doing.waits_for for doing in record.stall.ranks] == [1, 0]
    assert record.stall.first_silent in (0, 1)
    assert all("wait" in " ".join(doing.stack) for doing in record.stall.ranks)
    table = "\n".join(stall_lines(record))
    assert "deadlock" in table and "rank 0" in table and "in fail" in table


@pytest.mark.parametrize("fault", ["compute", "child computes"])
def test_a_step_that_only_takes_long_is_no_stall(tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaleproof.launch.watch.failure_signs.FAMILY_S", 0.3)
    record, took = run(tmp_path, fault, TCP, stall_s=1.0)
    assert (record.status, record.failure, record.stall) == ("ok", None, None)
    assert took > 2


def test_a_deadline_says_who_was_behind(tmp_path: Path) -> None:
    record, _ = run(tmp_path, "wait in Python", TCP, stall_s=60, deadline_s=2)
    assert record.failure is not None and record.stall is not None
    rank = fault_of(record.seed, 2)[0]
    assert (record.failure.code, record.failure.rank, record.stall.first_silent) == ("deadline", rank, rank)
    assert "waits for nobody" in record.failure.message


def test_a_rank_that_holds_the_interpreters_lock_is_read_from_outside(tmp_path: Path) -> None:
    record, took = run(tmp_path, "lock", TCP)
    assert record.failure is not None and record.stall is not None
    rank = fault_of(record.seed, 2)[0]
    assert (record.failure.rank, record.stall.first_silent) == (rank, rank)
    assert any("in fail" in line for line in record.stall.ranks[rank].stack), record.stall
    assert took < SILENT_S + WITHIN_S
    log = (Store(tmp_path / "results").folder(record) / f"rank-{rank}.log").read_text()
    assert "Stacks read by py-spy" in log
