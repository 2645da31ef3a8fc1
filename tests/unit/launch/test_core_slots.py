"""Predictions wait for a free core."""

from __future__ import annotations

import errno
import multiprocessing
import time
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import pytest

from scaleproof.launch.start import core_slots

HELD_S = 0.2


def hold(running: Synchronized[int], most: Synchronized[int]) -> None:
    with core_slots.core_slot():
        with running.get_lock():
            running.value += 1
            most.value = max(most.value, running.value)
        time.sleep(HELD_S)
        with running.get_lock():
            running.value -= 1


@pytest.mark.parametrize("places", [1, 2])
def test_no_more_run_at_a_time_than_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: int
) -> None:
    monkeypatch.setattr(core_slots, "usable_cores", lambda: float(places))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    forked = multiprocessing.get_context("fork")
    running, most = forked.Value("i", 0), forked.Value("i", 0)
    processes = [forked.Process(target=hold, args=(running, most)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(20)
        assert process.exitcode == 0
    assert most.value == places


def test_where_files_have_no_locks_nothing_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("fcntl.flock", flock)
    with core_slots.core_slot():
        pass


def test_without_a_folder_for_temporary_files_nothing_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with core_slots.core_slot(), core_slots.core_slot():
        pass
