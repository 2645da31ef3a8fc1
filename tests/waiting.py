"""Tests wait for a state of another process, not for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(reached: Callable[[], T], problem: str, within_s: float = 60.0, every_s: float = 0.02) -> T:
    """The first true value of `reached`; fails with `problem` after `within_s`, which only a hang takes."""
    until = time.monotonic() + within_s
    while not (value := reached()):
        assert time.monotonic() < until, f"not within {within_s:g} s: {problem}"
        time.sleep(every_s)
    return value
