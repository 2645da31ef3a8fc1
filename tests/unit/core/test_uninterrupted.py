"""Ctrl-C that comes while a process is forked takes effect, and the forked process ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import psutil
import pytest

from scaleproof.core.uninterrupted import uninterrupted
from scaleproof.record.core_distance import line_round_trip_ns
from scaleproof.record.parallel import in_parallel

_armed = list[bool]()


def _interrupt_once() -> None:
    if _armed:
        _armed.clear()
        signal.raise_signal(signal.SIGINT)


os.register_at_fork(after_in_parent=_interrupt_once)


def _measure_cores() -> None:
    core = min(os.sched_getaffinity(0))
    line_round_trip_ns(core, core)


@pytest.mark.parametrize("fork", [_measure_cores, lambda: in_parallel(list, range(4), 2)])
def test_ctrl_c_during_a_fork_is_not_lost(fork: Callable[[], object]) -> None:
    before, handler = psutil.Process().children(), signal.signal(signal.SIGINT, signal.default_int_handler)
    _armed.append(True)
    try:
        with pytest.raises(KeyboardInterrupt):
            fork()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert psutil.Process().children() == before


def test_the_end_of_the_block_is_where_it_takes_effect() -> None:
    handler, reached = signal.signal(signal.SIGTERM, signal.default_int_handler), False
    try:
        with pytest.raises(KeyboardInterrupt), uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            reached = True
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert reached
