"""What an all-reduce over shared memory loses because a barrier precedes it, as it does in `make bench`: the same calls
each after a barrier, and with none between them, two ranks.

Blocks of both kinds run in pairs on the same two ranks and buffers, in an order that each pair draws. A pair gives the
ratio of their medians, a launch the median of its pairs, and the interval is over launches."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.replay import REPLAY
from benchmarks.two_ranks import BOUNDS, all_reduce, bound_seconds, check, fill, results_of
from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.spec.units import format_bytes
from scaleproof.stats.intervals import median_interval
from scaleproof.transports._buffers import plain_memory
from scaleproof.transports.shm.shm import SharedMemory

SIZES = (1 << 20, 64 << 20)
LAUNCHES, PAIRS, WARMUP, CALLS = 8, 6, 2, 20
KINDS = ("after a barrier", "in a row")

Moments = list[tuple[int, int]]
"""Start and end of each call of a block on one rank, ns of the clock that both ranks share."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Median seconds of a call, by whether a barrier precedes it."""

    after_barrier: float
    in_a_row: float

    @property
    def ratio(self) -> float:
        """Above 1: calls after a barrier are slower."""
        return self.after_barrier / self.in_a_row


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("size", SIZES, ids=format_bytes)
@pytest.mark.parametrize("buffers", BOUNDS)
@pytest.mark.benchmark(timer=REPLAY.time)
def test_calls_after_a_barrier_beside_calls_in_a_row(
    buffers: str, size: int, benchmark: BenchmarkFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    launches, bounds = [], []
    for launch in range(LAUNCHES):
        launches.append(one_launch(buffers, size, launch))
        bounds.append(bound_seconds(BOUNDS[buffers], "all_reduce", size))
    ratios = [statistics.median(pair.ratio for pair in pairs) for pairs in launches]
    interval = median_interval(ratios)
    assert interval is not None
    after, row = (
        statistics.median(statistics.median(getattr(pair, name) for pair in pairs) for pairs in launches)
        for name in ("after_barrier", "in_a_row")
    )
    bound, middle = min(bounds), statistics.median(ratios)
    benchmark.extra_info |= {"ratio": middle, "low": interval.low, "high": interval.high, "bound_s": bound}
    with capfd.disabled():
        print(
            f"\nall_reduce, {format_bytes(size)}, {buffers}: {after * 1e6:.4g} us after a barrier ({bound / after:.2f} "
            f"of the bound), {row * 1e6:.4g} us in a row ({bound / row:.2f}); ratio {middle:.3f} "
            f"({interval.low:.3f} to {interval.high:.3f})"
        )
    REPLAY.run(benchmark, [statistics.median(pair.after_barrier for pair in pairs) for pairs in launches])


def one_launch(buffers: str, size: int, seed: int) -> list[Pair]:
    """All pairs of blocks of a launch."""
    first, second = results_of("barriers", size, partial(blocks, buffers=buffers, size=size, seed=seed))
    return [
        Pair(after_barrier(one[KINDS[0]], other[KINDS[0]]), in_a_row(one[KINDS[1]], other[KINDS[1]]))
        for one, other in zip(first, second, strict=True)
    ]


def after_barrier(one: Moments, other: Moments) -> float:
    """Median seconds of a call on its slower rank, as in `make bench`."""
    calls = [max(end - start for start, end in both) for both in zip(one, other, strict=True)]
    return statistics.median(calls) / 1e9


def in_a_row(one: Moments, other: Moments) -> float:
    """Median seconds from the end of a call on both ranks to the end of the next: a rank that is ahead waits inside its
    call, which would otherwise count on top of the peer's."""
    ends = [max(first, second) for (_, first), (_, second) in zip(one, other, strict=True)]
    return statistics.median(later - earlier for earlier, later in pairwise(ends)) / 1e9


def blocks(
    context: RankContext, transport: SharedMemory, group: Group, buffers: str, size: int, seed: int
) -> list[dict[str, Moments]]:
    """The moments of every call, by pair and kind of block, in an order that both ranks draw alike."""
    memory = transport.allocate if buffers == "registered" else plain_memory
    arrays = [memory(size).view(np.float32) for _ in range(2)]
    fill(arrays, context.rank, 0)
    transport.barrier()
    group.all_reduce(arrays[0]).wait()
    check("all_reduce", arrays)
    fill(arrays, context.rank, 1)
    shuffler = random.Random(seed)
    return [
        {kind: block(transport, group, arrays[0], kind) for kind in shuffler.sample(KINDS, len(KINDS))}
        for _ in range(PAIRS)
    ]


def block(transport: SharedMemory, group: Group, array: np.ndarray, kind: str) -> Moments:
    """Calls of one kind; those of the warm-up are left out."""
    moments: Moments = []
    transport.barrier()
    for _ in range(WARMUP + CALLS):
        if kind == KINDS[0]:
            transport.barrier()
        moments.append(all_reduce(group, array))
    return moments[WARMUP:]
