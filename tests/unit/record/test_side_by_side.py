"""A results folder of many launches is read, and judged, by all cores; what a process fails to do the next one does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import psutil
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.record import index as index_module
from scaleproof.record import values as values_module
from scaleproof.record.index import Index
from scaleproof.record.side_by_side import side_by_side
from scaleproof.record.store import Store
from scaleproof.record.table import collect
from scaleproof.spec.plan import PlannedLaunch
from tests.unit.records import case, commit, record

CORES, LAUNCHES = 3, 7
PLAN = [PlannedLaunch(case(), number, 1, number) for number in range(LAUNCHES)]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven launches, of which two are already many, on three cores."""
    for number in range(LAUNCHES):
        commit(tmp_path, record(f"{number:02}", plan_index=number), rows=number)
    monkeypatch.setattr(index_module, "TURN", 1)
    monkeypatch.setattr(values_module, "ALONE", 1)
    for module in (index_module, values_module):
        monkeypatch.setattr(module, "usable_cores", lambda: float(CORES))
    return tmp_path


def test_shares_are_done_once_each_and_by_processes_of_their_own(tmp_path: Path) -> None:
    def work(share: Sequence[int]) -> None:
        for item in share:
            (tmp_path / str(item)).write_text(str(os.getpid()))

    before = psutil.Process().children()
    side_by_side(range(8), work, CORES)
    assert psutil.Process().children() == before
    done = {path.name: int(path.read_text()) for path in tmp_path.iterdir()}
    assert (
        sorted(done, key=int) == [str(item) for item in range(8)]
        and len(set(done.values())) == CORES
        and done["0"] == os.getpid()
    )
    assert psutil.Process().children() == before


@pytest.mark.parametrize("cores", [0, 1])
def test_one_core_or_less_does_all_of_it_here(cores: int) -> None:
    done: list[int] = []
    side_by_side(range(5), done.extend, cores)
    side_by_side([], done.extend, cores)
    assert done == list(range(5))


def test_where_no_process_can_be_forked_the_share_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    done: list[int] = []
    side_by_side(range(4), done.extend, 2)
    assert done == [0, 1]


def test_a_helper_ends_with_whom_it_helps(tmp_path: Path) -> None:
    def work(share: Sequence[int]) -> None:
        (tmp_path / str(share[0])).write_text(str(os.getpid()))
        os.read(os.pipe()[0], 1)  # for ever

    middle = os.fork()
    if middle == 0:
        side_by_side(range(2), work, 2)
    until = time.monotonic() + 10
    while len(told := [path.read_text() for path in tmp_path.iterdir()]) < 2 or not all(told):
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(middle, signal.SIGKILL)
    os.waitpid(middle, 0)
    while any(
        psutil.pid_exists(int(pid)) and psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE for pid in told
    ):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_failure_here_ends_the_helpers(tmp_path: Path) -> None:
    def work(share: Sequence[int]) -> None:
        if 0 in share:
            raise KeyboardInterrupt
        os.read(os.pipe()[0], 1)  # for ever

    before = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        side_by_side(range(2), work, 2)
    assert psutil.Process().children() == before


def test_many_launches_are_read_and_collected_as_few_are(results: Path) -> None:
    here, seen = os.getpid(), results / "seen"

    def samples(found: Record, frame: pd.DataFrame) -> float:
        with seen.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return float(len(frame))

    indexed = collect(PLAN, Store(results, index=Index(results)), {"rows": samples}, version="s-0")
    by = seen.read_text().split()
    assert len(by) == LAUNCHES and len(set(by)) == CORES and str(here) in by
    assert indexed.equals(collect(PLAN, Store(results), {"rows": samples})) and indexed["rows"].to_pylist() == [
        2.0 * number for number in range(LAUNCHES)
    ]
    seen.unlink()
    assert (
        collect(PLAN, Store(results, index=Index(results)), {"rows": samples}, version="s-0").equals(indexed)
        and not seen.exists()
    )


def test_what_a_process_left_undone_is_done_here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, original = os.getpid(), index_module.read_form

    def dies_elsewhere(folder: Path) -> Record:
        if os.getpid() != here:
            os._exit(9)
        return original(folder)

    monkeypatch.setattr(index_module, "read_form", dies_elsewhere)
    found = collect(
        PLAN, Store(results, index=Index(results)), {"rows": lambda _, frame: float(len(frame))}, version="s-0"
    )
    assert found["rows"].to_pylist() == [2.0 * number for number in range(LAUNCHES)]
