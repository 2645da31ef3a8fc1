"""The bound of plain buffers does all the work of a call and no more: stepped in turns, its two processes end with the
result that the call has."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from scaleproof.calibrate.plain_bandwidth import WAYS, Pieces

COUNT, BLOCK = 1000, 512
"""Elements of float32, and bytes of a block: the last block of a half is a part of one."""


class Both:
    """The two processes in one: what the kernel copies, NumPy does."""

    def __init__(self) -> None:
        pieces = Pieces(*([np.zeros(BLOCK // 4, np.float32) for _ in range(2)] for _ in range(2)))
        self.each: list[Any] = [Process(rank, pieces, self) for rank in range(2)]
        self.start = [process.own.copy() for process in self.each]
        self.copied = 0

    def run(self, steps: Callable[[Any, int, int], Iterator[Callable[[], object]]]) -> None:
        programs = [list(steps(process, COUNT, BLOCK)) for process in self.each]
        assert len({len(program) for program in programs if program}) == 1
        for number in range(max(map(len, programs))):
            for program in programs:
                if program:
                    program[number]()


class Process:
    def __init__(self, rank: int, pieces: Pieces, both: Both) -> None:
        self.rank, self.peer, self.pieces, self._both = rank, 1 - rank, pieces, both
        self.own = np.arange(COUNT, dtype=np.float32) * (rank + 1)

    def reader(self, start: int, target: np.ndarray) -> Callable[[], object]:
        return lambda: self._copy(target, self._both.each[self.peer].own[start : start + target.size])

    def writer(self, start: int, source: np.ndarray) -> Callable[[], object]:
        return lambda: self._copy(self._both.each[self.peer].own[start : start + source.size], source)

    def _copy(self, target: np.ndarray, source: np.ndarray) -> None:
        self._both.copied += source.size
        target[:] = source


@pytest.mark.parametrize("way", ["pieces", "kernel"])
def test_both_ways_of_an_all_reduce_end_with_the_sum_on_both_sides(way: str) -> None:
    both = Both()
    both.run(WAYS["all_reduce"][way])
    for process in both.each:
        np.testing.assert_array_equal(process.own, both.start[0] + both.start[1])
    assert both.copied == (2 * COUNT if way == "kernel" else 0)


@pytest.mark.parametrize("way", ["pieces", "kernel"])
def test_both_ways_of_a_message_copy_all_of_it(way: str) -> None:
    both = Both()
    both.run(WAYS["copy"][way])
    for process in both.each:
        np.testing.assert_array_equal(process.own, both.start[0])
    assert both.copied == (COUNT if way == "kernel" else 0)


def test_the_bound_is_the_faster_way() -> None:
    command = [sys.executable, "-m", "scaleproof.calibrate.plain_bandwidth", "4096", "65536"]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    for operation, ways in measured["ways"].items():
        assert set(ways) in ({"pieces"}, {"pieces", "kernel"})
        for size in ("4096", "65536"):
            assert measured[operation][size] == min(way[size] for way in ways.values()) > 0
