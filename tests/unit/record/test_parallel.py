"""A results folder of many launches is read and judged by all cores; the parent does the share of a process that
failed."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import psutil
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.record import index as index_module
from scaleproof.record import metric_values as values_module
from scaleproof.record.index import Index
from scaleproof.record.parallel import in_parallel
from scaleproof.record.store import Store
from scaleproof.record.table import collect
from scaleproof.spec.plan import PlannedLaunch
from tests.unit.records import case, commit, record

CORES, LAUNCHES = 3, 7
HANG_S = 30.0
PLAN = [PlannedLaunch(case(), number, 1, number) for number in range(LAUNCHES)]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven launches on three cores; two launches already count as many."""
    for number in range(LAUNCHES):
        commit(tmp_path, record(f"{number:02}", plan_index=number), rows=number)
    monkeypatch.setattr(index_module, "BATCH", 1)
    monkeypatch.setattr(values_module, "SERIAL", 1)
    for module in (index_module, values_module):
        monkeypatch.setattr(module, "usable_cores", lambda: float(CORES))
    return tmp_path


def test_shares_are_done_once_each_and_by_processes_of_their_own() -> None:
    before = psutil.Process().children()
    results = in_parallel(lambda share: (list(share), os.getpid()), range(8), CORES)
    assert [items for items, _ in results] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert len({pid for _, pid in results}) == CORES and results[0][1] == os.getpid()
    assert psutil.Process().children() == before


@pytest.mark.parametrize("cores", [0, 1])
def test_with_one_core_the_parent_does_all_the_work(cores: int) -> None:
    assert in_parallel(lambda share: (list(share), os.getpid()), range(5), cores) == [([0, 1, 2, 3, 4], os.getpid())]
    assert in_parallel(list, [], cores) == []


def test_where_no_process_can_be_forked_the_parent_does_all_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    assert in_parallel(list, range(4), 2) == [[0, 1], [2, 3]]


def test_the_parent_does_the_share_of_a_killed_process() -> None:
    own_pid = os.getpid()

    def work(share: Sequence[int]) -> list[int]:
        if os.getpid() != own_pid:
            os.kill(os.getpid(), signal.SIGKILL)
        return list(share)

    assert in_parallel(work, range(4), 2) == [[0, 1], [2, 3]]


def test_a_worker_ends_with_its_parent() -> None:
    """Every worker writes a byte into a pipe and keeps it open, so that the pipe ends with the last worker."""
    reading, writing = os.pipe()

    def work(share: Sequence[int]) -> None:
        os.write(writing, b"w")
        os.read(os.pipe()[0], 1)  # for ever

    middle = os.fork()
    if middle == 0:
        in_parallel(work, range(2), 2)
    os.close(writing)
    assert [next_byte(reading), next_byte(reading)] == [b"w", b"w"]
    os.kill(middle, signal.SIGKILL)
    os.waitpid(middle, 0)
    assert next_byte(reading) == b""
    os.close(reading)


def next_byte(pipe: int) -> bytes:
    """The next byte of a pipe; b"" when all its writers have ended."""
    assert select.select([pipe], [], [], HANG_S)[0], f"nothing came within {HANG_S:g} s"
    return os.read(pipe, 1)


def test_a_failure_of_the_parent_ends_its_workers() -> None:
    def work(share: Sequence[int]) -> None:
        if 0 in share:
            raise KeyboardInterrupt
        os.read(os.pipe()[0], 1)  # for ever

    before = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        in_parallel(work, range(2), 2)
    assert psutil.Process().children() == before


def test_a_failure_of_a_worker_reaches_the_parent() -> None:
    def work(share: Sequence[int]) -> None:
        if 0 not in share:
            raise ValueError("of the second share")

    with pytest.raises(ValueError, match="of the second share"):
        in_parallel(work, range(2), 2)


def test_reading_in_parallel_gives_the_same_table_as_reading_alone(results: Path) -> None:
    own_pid, pids_folder = os.getpid(), results / "seen"

    def samples(record: Record, frame: pd.DataFrame) -> float:
        with pids_folder.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return float(len(frame))

    indexed = collect(PLAN, Store(results, index=Index(results)), {"rows": samples}, version="s-0")
    by = pids_folder.read_text().split()
    assert len(by) == LAUNCHES and len(set(by)) == CORES and str(own_pid) in by
    assert indexed.equals(collect(PLAN, Store(results), {"rows": samples})) and indexed["rows"].to_pylist() == [
        2.0 * number for number in range(LAUNCHES)
    ]
    pids_folder.unlink()
    assert (
        collect(PLAN, Store(results, index=Index(results)), {"rows": samples}, version="s-0").equals(indexed)
        and not pids_folder.exists()
    )


def test_the_parent_reads_what_a_killed_worker_left_unread(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_pid, original = os.getpid(), index_module.read_form

    def dies_elsewhere(folder: Path) -> Record:
        if os.getpid() != own_pid:
            os._exit(9)
        return original(folder)

    monkeypatch.setattr(index_module, "read_form", dies_elsewhere)
    table = collect(
        PLAN, Store(results, index=Index(results)), {"rows": lambda _, frame: float(len(frame))}, version="s-0"
    )
    assert table["rows"].to_pylist() == [2.0 * number for number in range(LAUNCHES)]
