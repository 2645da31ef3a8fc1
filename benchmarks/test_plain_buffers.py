"""Registered and plain buffers over shared memory, two ranks: each beside a bound of its own, and of plain ones both
ways, through shared pieces and by the kernel, at every size: what LEAST_NBYTES has to be is read from here.

All arms run one after the other on the same two ranks, in an order that every launch draws; a launch gives a median per
arm. They do not take turns call by call: a call would find other arms' data in the caches, where the bound finds its
own. A bound is the fastest repetition of all launches, so that a share above 1 is a mistake of the bound, and fails."""

from __future__ import annotations

import random
import statistics
from dataclasses import asdict, dataclass
from functools import partial
from time import monotonic_ns as now

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.outcome import outcome
from benchmarks.replay import REPLAY
from benchmarks.two_ranks import BOUNDS, all_reduce, bound_seconds, check, fill, results_of
from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.spec.units import format_bytes
from scaleproof.stats.intervals import median_interval
from scaleproof.transports._buffers import plain_memory
from scaleproof.transports.shm import private_memory
from scaleproof.transports.shm.private_memory import LEAST_NBYTES
from scaleproof.transports.shm.shm import SharedMemory

SIZES = (64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
LAUNCHES, ITERATIONS, WARMUP = 8, 20, 10
NEVER = 1 << 62
SHIPPED = dict(LEAST_NBYTES)
LEAST = {
    "registered": SHIPPED,
    "plain": SHIPPED,
    "plain, pieces": dict.fromkeys(SHIPPED, NEVER),
    "plain, kernel": dict.fromkeys(SHIPPED, 1),
}
"""Arms, with the smallest plain buffer that the kernel copies, by its use."""
WANTED = {"registered": 0.9, "plain": 0.85}
JUDGED = 64 << 20
"""Bytes from which on the wanted share of the bound counts, with its whole interval."""
OPERATIONS = {"all_reduce": "all_reduce", "transfer": "message"}
"""With the name of its bound."""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("size", SIZES, ids=format_bytes)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.benchmark(timer=REPLAY.time)
def test_both_ways_beside_their_bounds(
    operation: str, size: int, benchmark: BenchmarkFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    times: dict[str, list[float]] = {}
    bounds: dict[str, list[float]] = {}
    for launch in range(LAUNCHES):
        for arm, seconds in one_launch(operation, size, launch).items():
            times.setdefault(arm, []).append(seconds)
        for arm, module in BOUNDS.items():
            bounds.setdefault(arm, []).append(bound_seconds(module, OPERATIONS[operation], size))
    for arm, seconds_of_arm in times.items():
        bound = min(bounds[arm.partition(",")[0]])
        row = beside_bound(seconds_of_arm, bound, WANTED.get(arm) if size >= JUDGED else None)
        benchmark.extra_info[arm] = asdict(row)
        with capfd.disabled():
            print(f"\n{operation}, {format_bytes(size)}, {arm}: {size / row.median_s / 1e9:.3g} GB/s, {row}")
        assert row.share <= 1, f"{arm} is faster than its bound: the measurement of the bound is wrong"
    REPLAY.run(benchmark, times["plain"])


@dataclass(frozen=True, slots=True)
class Share:
    """Of the bound, with its interval over launches, and what became of the target."""

    median_s: float
    bound_s: float
    share: float
    low: float
    high: float
    outcome: str

    def __str__(self) -> str:
        return f"{self.share:.2f} of its bound ({self.low:.2f} to {self.high:.2f}){self.outcome}"


def beside_bound(seconds: list[float], bound: float, wanted: float | None) -> Share:
    """A bound is one number, the best of all."""
    interval = median_interval(seconds)
    assert interval is not None
    middle, low, high = statistics.median(seconds), bound / interval.high, bound / interval.low
    judged = "" if wanted is None else f", {outcome(low, high, wanted)} (wanted: {wanted:g})"
    return Share(middle, bound, bound / middle, low, high, judged)


def one_launch(operation: str, size: int, seed: int) -> dict[str, float]:
    """Median seconds per arm, of one call or of one way; the time of a call is that of its slower rank."""
    first, second = results_of("plain", size, partial(turns, operation=operation, size=size, seed=seed))
    return {arm: statistics.median(map(max, first[arm], second[arm])) / 1e9 for arm in first}


def turns(
    context: RankContext, transport: SharedMemory, group: Group, operation: str, size: int, seed: int
) -> dict[str, list[int]]:
    """Nanoseconds of every call per arm, arms in an order that both ranks draw alike."""
    registered, plain = (
        [memory(size).view(np.float32) for _ in range(2)] for memory in (transport.allocate, plain_memory)
    )
    call = reduce if operation == "all_reduce" else partial(round_trip, transport=transport)
    buffers = {arm: registered if arm == "registered" else plain for arm in LEAST}
    shuffler, times = random.Random(seed), {arm: list[int]() for arm in LEAST}
    for arm in shuffler.sample(list(LEAST), len(LEAST)):
        private_memory.LEAST_NBYTES = LEAST[arm]
        for number in range(1 + WARMUP + ITERATIONS):
            fill(buffers[arm], context.rank, number)
            transport.barrier()
            took = call(group, buffers[arm])
            if number > WARMUP:
                times[arm].append(took)
            elif number == 0:
                check(operation, buffers[arm])
    return times


def reduce(group: Group, buffers: list[np.ndarray]) -> int:
    """One all-reduce."""
    start, end = all_reduce(group, buffers[0])
    return end - start


def round_trip(group: Group, buffers: list[np.ndarray], transport: SharedMemory) -> int:
    """Half of the time of a message to rank 1 and one back; rank 1 takes none of it."""
    start = now()
    if transport.rank == 0:
        sent = transport.send(buffers[0], 1)
        transport.recv(buffers[1], 1).wait()
        sent.wait()
        return (now() - start) // 2
    transport.recv(buffers[1], 0).wait()
    transport.send(buffers[0], 0).wait()
    return 0
