"""The bound of plain buffers does all the work of a call and no more: stepped in turns, its two processes end with the
result that the call has."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from scaleproof.calibrate.plain_bandwidth import MOVED, REDUCED, Pieces, blocks, once, there_and_back

COUNT, BLOCK = 1000, 512
"""Elements of float32, and bytes of a block: the last block of a half is a part of one."""


class Both:
    """The two processes in one: what the kernel copies, NumPy does."""

    def __init__(self) -> None:
        self.pieces = Pieces(*([np.zeros(BLOCK // 4, np.float32) for _ in range(2)] for _ in range(2)))
        self.each: list[Any] = [Process(rank, self.pieces, self) for rank in range(2)]
        self.start = [process.own[:COUNT].copy() for process in self.each]
        self.copied = 0

    def run(self, turns: Callable[..., list[list[Callable[[], object]]]], way: Callable[..., Any]) -> None:
        for programs in zip(*(turns(way, process, COUNT, BLOCK) for process in self.each), strict=True):
            assert len({len(program) for program in programs if program}) == 1
            order = sorted(programs, key=lambda program: self.sends(program), reverse=True)
            for number in range(max(map(len, order))):
                for program in order:
                    if program:
                        program[number]()

    def sends(self, program: list[Callable[[], object]]) -> bool:
        """Whether a program copies into a piece, which the other then reads."""
        targets = [step.args[0] for step in program if isinstance(step, partial)]
        return any(np.shares_memory(target, piece) for target in targets for piece in self.pieces.halves)


class Process:
    def __init__(self, rank: int, pieces: Pieces, both: Both) -> None:
        self.rank, self.peer, self.pieces, self._both = rank, 1 - rank, pieces, both
        self.own = np.zeros(2 * COUNT, np.float32)
        self.own[:COUNT] = np.arange(COUNT, dtype=np.float32) * (rank + 1)

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
    both.run(once, REDUCED[way])
    for process in both.each:
        np.testing.assert_array_equal(process.own[:COUNT], both.start[0] + both.start[1])
    assert both.copied == (2 * COUNT if way == "kernel" else 0)


@pytest.mark.parametrize("way", ["pieces", "kernel"])
def test_both_ways_of_a_message_copy_all_of_it(way: str) -> None:
    both = Both()
    both.run(once, MOVED[way])
    for process in both.each:
        np.testing.assert_array_equal(process.own[:COUNT], both.start[0])
    assert both.copied == (COUNT if way == "kernel" else 0)


@pytest.mark.parametrize("way", ["pieces", "kernel"])
def test_messages_there_and_back_end_in_memory_of_their_own(way: str) -> None:
    both = Both()
    both.run(there_and_back, MOVED[way])
    for process in both.each:
        np.testing.assert_array_equal(process.own[:COUNT], both.start[process.rank])
        np.testing.assert_array_equal(process.own[COUNT:], both.start[process.peer])


def test_the_kernel_may_copy_a_message_in_one_call_as_the_transport_does() -> None:
    assert 64 << 20 in blocks("kernel", 64 << 20) and 64 << 20 not in blocks("pieces", 64 << 20)


def test_the_bound_is_the_faster_way() -> None:
    command = [sys.executable, "-m", "scaleproof.calibrate.plain_bandwidth", "4096", "65536"]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    for operation, ways in measured["ways"].items():
        assert set(ways) in ({"pieces"}, {"pieces", "kernel"})
        for size in ("4096", "65536"):
            assert measured[operation][size] == min(way[size] for way in ways.values()) > 0
