"""One tensor over shared memory beside the memory-copy bound: static placement, send and receive, and bare copies, in
turns on the same two ranks.

Plain arms: the payload is not touched between transfers, as in ping-pong benchmarks. Fresh arms: the sender writes the
payload before every transfer and the receiver reads all of it afterwards. The bound of each is the one copy that it
needs, to the receiver's memory (placement) or from the sender's (receive), in the same memory and the same state of the
caches: the fastest of all repetitions in all launches."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic_ns as now
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.outcome import outcome
from benchmarks.replay import REPLAY
from benchmarks.targets import share_of_bound
from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.remote.tensor_channel import Edge, open_channel
from scaleproof.spec.case import parse_case
from scaleproof.spec.units import format_bytes
from scaleproof.stats.intervals import median_interval
from scaleproof.transports.shm.shm import SharedMemory

SIZES = (4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
LAUNCHES, WARMUP = 8, 2
MOVED = 128 << 20
"""Bytes per arm and launch, about."""
BOUNDS = {"placement": "push", "receive": "pull", "fresh placement": "fresh push", "fresh receive": "fresh pull"}
FACTOR, FROM, SHORT, SHORT_US = 0.8, 1 << 20, 4 << 10, 20.0
"""Wanted: that share of the bound from that size on, and at most that time for a short one."""


@pytest.mark.parametrize("size", SIZES, ids=format_bytes)
@pytest.mark.benchmark(timer=REPLAY.time)
def test_a_transfer_beside_the_memory_copy_bound(
    size: int, benchmark: BenchmarkFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Medians of each launch beside the fastest bare copy. Times are one way, by the clock that both ranks share."""
    case = parse_case(
        {
            "program": "transfer",
            "suite": "bench",
            "experiment": "remote",
            "arm": "shm",
            "transport": "shm",
            "sizes": [size],
        }
    )
    times: dict[str, list[float]] = {}
    for launch in range(LAUNCHES):
        with TemporaryDirectory() as folder:
            assert run_ranks(case, partial(turns, size=size, seed=launch, out=Path(folder) / "times.json")) == ["", ""]
            for arm, seconds in json.loads((Path(folder) / "times.json").read_text()).items():
                times.setdefault(arm, []).append(seconds)
    impossible = []
    for arm, bound in BOUNDS.items():
        row = compared(size, times[arm], min(times[bound]))
        benchmark.extra_info[arm] = {"bound": bound, **row}
        if row["ratio"] > 1:
            impossible.append(f"{arm}: {row['ratio']:.2f} of the bound: the measurement of the bound is wrong")
        with capfd.disabled():
            print(
                f"\n{format_bytes(size)} {arm}: {row['microseconds']:.1f} us, "
                f"{row['ratio']:.2f} of the bound ({row['low']:.2f} to {row['high']:.2f}) {row['outcome']}"
            )
    REPLAY.run(benchmark, times["placement"])
    assert not impossible


def compared(size: int, seconds: list[float], bound_s: float) -> dict[str, Any]:
    """The median launch beside the bound, and whether a target is met by the whole interval; no outcome where there is
    none for this size."""
    share, low, high = share_of_bound(seconds, bound_s)
    interval = median_interval(seconds)
    assert interval is not None and low is not None and high is not None
    reached = ""
    if size == SHORT:
        reached = outcome(SHORT_US / (1e6 * interval.high), SHORT_US / (1e6 * interval.low), 1)
    elif size >= FROM:
        reached = outcome(low, high, FACTOR)
    return {
        "microseconds": 1e6 * statistics.median(seconds),
        "bound_microseconds": 1e6 * bound_s,
        "ratio": share,
        "low": low,
        "high": high,
        "outcome": reached,
    }


def turns(context: RankContext, size: int, seed: int, out: Path) -> None:
    """Median seconds per arm, of a bound the least, arms in an order that both ranks draw alike."""
    arms, shuffler = Arms(context, size), random.Random(seed)
    times: dict[str, list[int]] = {}
    for number in range(WARMUP + min(max(MOVED // size, 6), 100)):
        for name in shuffler.sample(list(arms.each), len(arms.each)):
            arms.transport.barrier()
            took = arms.each[name](number)
            if number >= WARMUP:
                times.setdefault(name, []).append(took)
    if context.rank == 0:
        of_launch = {
            name: min(values) if name in BOUNDS.values() else statistics.median(values)
            for name, values in times.items()
        }
        out.write_text(json.dumps({name: value / 1e9 for name, value in of_launch.items()}))
    arms.transport.close()


class Arms:
    """The timed arms: rank 0 has the payload, rank 1 receives it. Every arm returns the nanoseconds known to rank 0 and
    checks the received payload: fresh arms each time, plain arms once, since a check touches the payload."""

    def __init__(self, context: RankContext, size: int) -> None:
        self.transport, self.rank = SharedMemory.connect(context), context.rank
        self.edges = (Edge("payload", 0, 1, (size,), "uint8"), Edge("time", 1, 0, (1,), "int64"))
        self.channel = open_channel("zero_copy", self.transport, self.edges, context)
        self.own, self.word = self.transport.allocate(size), self.transport.allocate(8).view(np.int64)
        self.known: list[list[int]] = []
        self.placed = self.channel.outgoing(self.edges[0]) if self.rank == 0 else self.channel.incoming(self.edges[0])
        # Bare copies use the memory of the arm that they bound, so that caches hold the same part of it.
        self.there_placed, self.there = (self.peers(context, memory) for memory in (self.placed, self.own))
        self.each: dict[str, Callable[[int], int]] = {
            "placement": partial(self.still, self.placement, self.placed),
            "receive": partial(self.still, self.receive, self.own),
            "fresh placement": partial(self.fresh, self.placement, self.placed),
            "fresh receive": partial(self.fresh, self.receive, self.own),
            "push": partial(self.still, self.push, self.placed),
            "pull": partial(self.still, self.pull, self.own),
            "fresh push": partial(self.fresh, self.push, self.placed),
            "fresh pull": partial(self.fresh, self.pull, self.own),
        }
        self.own[:] = self.placed[:] = 1
        self.transport.barrier()

    def peers(self, context: RankContext, memory: np.ndarray) -> np.ndarray:
        """The peer's counterpart of a local array."""
        offsets = context.rendezvous.exchange(f"memory-{len(self.known)}", self.rank, 2, self.transport.locate(memory))
        self.known.append(offsets)
        return self.transport.memory(1 - self.rank)[offsets[1 - self.rank] :][: memory.size]

    def fresh(self, arm: Callable[[], int], memory: np.ndarray, number: int) -> int:
        """Write, move, read."""
        if self.rank == 0:
            memory.fill(number % 256)
        self.transport.barrier()
        took = arm()
        self.transport.barrier()
        assert (memory == number % 256).all()
        return took

    def still(self, arm: Callable[[], int], memory: np.ndarray, number: int) -> int:
        """Send once before and check the result, so that caches hold the payload; then time the plain transfer."""
        self.fresh(arm, memory, number)
        arm()
        self.transport.barrier()
        return arm()

    def placement(self) -> int:
        """Time until the receiver sees the flag."""
        payload, time = self.edges
        if self.rank:
            self.channel.recv(payload).wait()
            word = self.channel.outgoing(time)
            word[0] = now()
            self.channel.send(time, word).wait()
            self.channel.release(payload)
            return 0
        start = now()
        self.channel.send(payload, self.placed).wait()
        took = int(self.channel.recv(time).wait()[0]) - start
        self.channel.release(time)
        return took

    def receive(self) -> int:
        """Time until the receiver has the message."""
        if self.rank:
            self.transport.recv(self.own, 0).wait()
            self.word[0] = now()
            self.transport.send(self.word, 0).wait()
            return 0
        start = now()
        self.transport.send(self.own, 1).wait()
        self.transport.recv(self.word, 1).wait()
        return int(self.word[0]) - start

    def push(self) -> int:
        """The sender's core copies into the receiver's memory."""
        start = now()
        if self.rank == 0:
            np.copyto(self.there_placed, self.placed)
        return now() - start

    def pull(self) -> int:
        """The receiver's core copies out of the sender's memory."""
        if self.rank:
            start = now()
            np.copyto(self.own, self.there)
            self.word[0] = now() - start
            self.transport.send(self.word, 0).wait()
            return 0
        self.transport.recv(self.word, 1).wait()
        return int(self.word[0])
