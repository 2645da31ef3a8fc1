"""Feeds pytest-benchmark with times that were measured in the ranks of launches."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_benchmark.fixture import BenchmarkFixture


class Replay:
    """A clock that advances by the measured samples, so that pytest-benchmark stores and compares them."""

    def __init__(self) -> None:
        self._now = 0.0
        self._left: Iterator[float] = iter(())

    def time(self) -> float:
        """The clock: `timer` of the mark `benchmark`."""
        return self._now

    def run(self, benchmark: BenchmarkFixture, seconds: list[float]) -> None:
        """A round of the benchmark for each sample, at least one."""
        self._left = iter(seconds)
        benchmark.pedantic(self._next, rounds=len(seconds), iterations=1, warmup_rounds=0)

    def _next(self) -> None:
        self._now += next(self._left)


REPLAY = Replay()
