"""Transports by pytest-benchmark: every round is one launch's median out of the interleaved run."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.arms import SIZES, Arm, transport_arms
from benchmarks.interleaved import Measured
from benchmarks.launches import BOUNDS, TENSORFLOW
from benchmarks.replay import REPLAY
from benchmarks.targets import above_bound

ARMS = [*transport_arms(), *BOUNDS, *TENSORFLOW]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: f"{arm.operation}-{arm.ranks}-{arm.name}")
@pytest.mark.benchmark(timer=REPLAY.time)
def test_speed(arm: Arm, size: int, measured: Measured, benchmark: BenchmarkFixture) -> None:
    seconds = measured.seconds(arm, size)
    if not seconds:
        pytest.skip("; ".join(dict.fromkeys(measured.missing.get(arm, ["no launch"]))))
    benchmark.group = f"{arm.operation} of {size} bytes, {arm.ranks} ranks"
    benchmark.extra_info.update(
        arm=arm.name, ranks=arm.ranks, operation=arm.operation, nbytes=size, setting=measured.setting(arm, size)
    )
    REPLAY.run(benchmark, seconds)
    if why := above_bound(measured, arm, size):
        pytest.fail(why)
