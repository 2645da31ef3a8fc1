"""Transports by pytest-benchmark: every round is one launch's median out of the interleaved run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.arms import BOUND, RING_OVER_GRPC, SIZES, TENSORFLOW_GRPC, Arm, transport_arms
from benchmarks.interleaved import Measured

ARMS = [*transport_arms(), Arm(BOUND, 2, "all_reduce"), Arm(BOUND, 1, "copy"), Arm(RING_OVER_GRPC, 2, "all_reduce"), Arm(TENSORFLOW_GRPC, 2, "transfer")]


class Replay:
    """A clock that moves by the samples that were measured in the ranks: pytest-benchmark then stores and compares them."""

    def __init__(self) -> None:
        self._now = 0.0
        self._left: Iterator[float] = iter(())

    def load(self, seconds: list[float]) -> None:
        """What the next rounds will take."""
        self._left = iter(seconds)

    def time(self) -> float:
        """The clock."""
        return self._now

    def run(self) -> None:
        """Take as long as the next sample."""
        self._now += next(self._left)


REPLAY = Replay()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: f"{arm.operation}-{arm.ranks}-{arm.name}")
@pytest.mark.benchmark(timer=REPLAY.time)
def test_speed(arm: Arm, size: int, measured: Measured, benchmark: BenchmarkFixture) -> None:
    seconds = measured.seconds(arm, size)
    if not seconds:
        pytest.skip("; ".join(dict.fromkeys(measured.missing.get(arm, ["no launch"]))))
    REPLAY.load(seconds)
    benchmark.group = f"{arm.operation} of {size} bytes, {arm.ranks} ranks"
    benchmark.extra_info.update(arm=arm.name, ranks=arm.ranks, operation=arm.operation, nbytes=size)
    benchmark.pedantic(REPLAY.run, rounds=len(seconds), iterations=1, warmup_rounds=0)
