"""How far apart the cores of a machine are now: the round trip of a shared cache line between two of them.

A hypervisor may move the cores of a virtual machine (vCPUs) between physical cores, so the distance can change between
two launches, and with it the speed of everything that ranks send through memory. Two processes write the line in turn.
Both loops are Python's, which adds 50 to 150 ns. Each round is timed alone, and the median is immune to the few rounds
in which one of the processes had to wait for its core."""

from __future__ import annotations

import mmap
import os
import signal
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from scaleproof.core.uninterrupted import uninterrupted

ROUNDS = 400
FEWEST_ROUNDS = 50
LIMIT_S = 0.1
"""Per pair of cores: a machine with other work gives fewer rounds in this time, or too few."""
MOST_CORES = 8
NEAR_NS = 350.0
"""Median round trip, with Python's share. Cores that share a cache stay below it; through memory, or between two
sockets, it takes longer."""
PAUSE_S = 0.25
SPINS = 2000
"""Looks at the line between two looks at the clock or the parent."""
LINE = 16
"""Items of 8 bytes between the two flags: two cache lines, which are often fetched together."""


@dataclass(frozen=True, slots=True)
class CoreDistance:
    """`round_trip_ns`: the longest median between neighbours among `cores`. `waited_s`: how long the launch waited for
    near cores, None where it was not asked to."""

    round_trip_ns: float
    cores: tuple[int, ...]
    waited_s: float | None = None

    @property
    def near(self) -> bool:
        """Whether all of them are near each other."""
        return is_near(self.round_trip_ns)

    def facts(self) -> dict[str, Any]:
        """For a launch's record."""
        waited = {} if self.waited_s is None else {"waited_s": round(self.waited_s, 3)}
        return {"round_trip_ns": round(self.round_trip_ns), "cores": list(self.cores), **waited}


def is_near(round_trip_ns: float) -> bool:
    """Whether a round trip is one between near cores."""
    return round_trip_ns <= NEAR_NS


def core_distance(ranks: int, round_trip: Callable[[int, int], float | None] | None = None) -> CoreDistance | None:
    """The distance between the cores that so many ranks can use, at most MOST_CORES of them; None with one core, or
    where they were too busy. `round_trip` measures two cores, in ns."""
    cores = sorted(os.sched_getaffinity(0))[: min(max(ranks, 2), MOST_CORES)]
    measured = [(round_trip or line_round_trip_ns)(one, other) for one, other in pairwise(cores)]
    times = [nanoseconds for nanoseconds in measured if nanoseconds is not None]
    return CoreDistance(max(times), tuple(cores)) if times and len(times) == len(measured) else None


def wait_for_near_cores(
    measure: Callable[[], CoreDistance | None],
    limit_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> CoreDistance | None:
    """Measures until the cores are near, at most `limit_s`; the last measurement, with the time that was waited. None
    when the cores were too busy for one at the end."""
    start = clock()
    while True:
        distance, waited_s = measure(), clock() - start
        if (distance is not None and distance.near) or waited_s >= limit_s:
            return distance and CoreDistance(distance.round_trip_ns, distance.cores, waited_s)
        sleep(min(PAUSE_S, limit_s - waited_s))


def line_round_trip_ns(one: int, other: int) -> float | None:
    """Median time in ns in which a change of a cache line gets from a core to another and back. This thread is on core
    `one` meanwhile. None when there were too few rounds, because the cores had other work."""
    allowed = os.sched_getaffinity(0)
    with mmap.mmap(-1, mmap.PAGESIZE) as memory, memoryview(memory) as view, view.cast("q") as line:
        creator = os.getpid()
        with uninterrupted():
            answerer = os.fork()
            if not answerer:
                _answer(line, other, creator)
            try:
                os.sched_setaffinity(0, {one})
                times = _ask(line)
            finally:
                os.sched_setaffinity(0, allowed)
                os.kill(answerer, signal.SIGKILL)
                os.waitpid(answerer, 0)
    return statistics.median(times) if len(times) >= FEWEST_ROUNDS else None


def _ask(line: memoryview) -> list[int]:
    """Writes a number, waits for it to come back; ns of each round but the first, in which the other process starts."""
    clock, times = time.perf_counter_ns, list[int]()
    end = clock() + round(LIMIT_S * 1e9)
    for number in range(1, ROUNDS + 2):
        start = clock()
        line[0] = number
        while line[LINE] != number:
            # Few statements between two looks: they are part of the time.
            for _ in range(SPINS):
                if line[LINE] == number:
                    break
            else:
                if clock() > end:
                    return times[1:]
        times.append(clock() - start)
    return times[1:]


def _answer(line: memoryview, core: int, creator: int) -> None:
    """In the child: writes back each number that appears, until it is killed or its parent has ended. Never returns."""
    try:
        os.sched_setaffinity(0, {core})
        number = 1
        while True:
            for _ in range(SPINS):
                if line[0] == number:
                    line[LINE] = number
                    number += 1
                    break
            else:
                if os.getppid() != creator:
                    return
    finally:
        os._exit(0)


def before_launch(ranks: int, near_cores_s: float | None) -> dict[str, Any] | None:
    """The fact `core_distance` of a launch of so many ranks that is about to start, after waiting up to `near_cores_s`
    for near cores; None with one rank or one core, and where the cores were too busy."""
    if ranks < 2 or len(os.sched_getaffinity(0)) < 2:
        return None
    distance = (
        core_distance(ranks)
        if near_cores_s is None
        else wait_for_near_cores(lambda: core_distance(ranks), near_cores_s)
    )
    return None if distance is None else distance.facts()


def recorded_round_trip_ns(environment: Mapping[str, Any]) -> float | None:
    """The round trip in a record's environment; None where none was measured."""
    facts = environment.get("load", {}).get("before", {}).get("core_distance")
    return None if not facts else float(facts["round_trip_ns"])


def distance_sentence(facts: Mapping[str, Any]) -> str:
    """The fact `core_distance` of a record, for a reader."""
    cores, time_ns = ", ".join(map(str, facts["cores"])), facts["round_trip_ns"]
    waited = f", after {facts['waited_s']:g} s of waiting" if "waited_s" in facts else ""
    distance = "near" if is_near(time_ns) else "far"
    return f"a cache line took {time_ns} ns between {cores} and back ({distance}){waited}"


def distance_difference(sides: Sequence[tuple[str, Sequence[float]]]) -> str | None:
    """How these named groups of round trips differ, where some are near by their median and others far; None
    otherwise."""
    medians = {name: statistics.median(times) for name, times in sides if times}
    if len({is_near(median) for median in medians.values()}) < 2:
        return None
    parts = [f"{name} {median:.0f} ns" for name, median in medians.items()]
    return f"a cache line went to another core and back in {', '.join(parts)} (medians over launches)"
