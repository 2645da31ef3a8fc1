"""The line of a rank that waits on memory: the peer it waits for, and whether bytes move meanwhile."""

from __future__ import annotations

import itertools
import struct

from scaleproof.core.board import LINE, Post
from scaleproof.transports._waiting import wait_until

LOOKS = 40


def reports_of_waiting(moved: list[int]) -> int:
    """How often the line of a rank changed while it waited for LOOKS looks; `moved`: bytes moved so far at each
    sleep."""
    line = memoryview(bytearray(LINE)).cast("q")
    looks, sleeps, lines = itertools.count(), itertools.count(), []

    def sleep(seconds: float) -> None:
        next(sleeps)
        lines.append(bytes(line.cast("b")))

    counter = iter(moved)
    last = [0]

    def so_far() -> int:
        last[0] = next(counter, last[0])
        return last[0]

    wait_until(lambda: next(looks) > LOOKS, lambda: None, 0, Post(line), 3, sleep, 0, so_far)
    assert not any(struct.unpack(f"{LINE // 8}q", bytes(line.cast("b"))))
    return len(set(lines))


def test_the_line_of_a_rank_that_only_waits_does_not_change() -> None:
    assert reports_of_waiting([7] * LOOKS * 2) == 1


def test_the_line_of_a_waiting_rank_changes_while_its_bytes_move() -> None:
    assert reports_of_waiting([0] * 6 + [1] * 10 + [2] * 100) == 3
