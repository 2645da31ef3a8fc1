"""Helpers of all programs: mark the timed region, count iterations, close the transport."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.counters import read_counters
from scaleproof.core.recorder import now
from scaleproof.rank.process_facts import bound_sockets
from scaleproof.record.machine_load import read_core_load
from scaleproof.spec.case import CollectiveCase, OwnCase, TransferCase
from scaleproof.spec.stand_ins import check_stand_in
from scaleproof.transports.contract import Collectives, Transport
from scaleproof.transports.mailbox import Mailbox

MIB = 1 << 20
LEAST = 5
"""Fewest timed iterations of a size, even if they exceed the case's budget."""
SAMPLE_BYTES = 1 << 16
"""Bytes of the first minibatch in the digest that tells ranks apart."""


def mark(
    context: RankContext, event: str, step: int, transport: Collectives | Transport | Mailbox | None = None
) -> None:
    """Records a moment as an event of no length. At `start` and `end` of the timed region, just outside of it, also
    records the interface counters of this rank's namespace, the pace of its core, and the bytes requested of
    `transport` so far."""
    if event != "end":
        _read_counters(context, event, transport)
    moment = now()
    context.recorder.add(event, step, moment, moment)
    if event == "end":
        _read_counters(context, event, transport)


def _read_counters(context: RankContext, event: str, transport: Collectives | Transport | Mailbox | None) -> None:
    if event in ("start", "end"):
        context.counters[event] = read_counters()
        context.facts.setdefault("pace", {})[event] = read_core_load()
        if transport is not None:
            context.facts.setdefault("asked", {})[event] = transport.traffic.nbytes


def log_samples(context: RankContext, inputs: np.ndarray) -> None:
    """Records a digest of this rank's first samples, since no two ranks of a launch may draw the same samples."""
    first = np.ascontiguousarray(inputs).reshape(-1).view(np.uint8)[:SAMPLE_BYTES]
    context.facts.setdefault("seeds", {})["samples"] = hashlib.blake2b(first.data, digest_size=8).hexdigest()


def timed_iterations(context: RankContext, warmup: int, iterations: int) -> Iterator[int]:
    """Numbers 0 to warmup + iterations - 1. Events of the first `warmup` iterations are marked as warm-up, and so are
    messages that a traced launch sends outside of iterations."""
    _record_trace(context, -1)
    for iteration in range(warmup + iterations):
        context.recorder.warmup = iteration < warmup
        yield iteration
        _record_trace(context, iteration)
    context.recorder.warmup = False


def sleep_for_compute(context: RankContext, seconds: float) -> None:
    """Sleeps in place of computing. Only a case that says so in its option `slept` may, since the harness records its
    launches as `emulated` then (spec/evidence.py)."""
    case = context.case
    if not isinstance(case, OwnCase) or not case.slept:
        raise ValueError("a program that sleeps in place of computing needs the option `slept: 1`")
    time.sleep(seconds)


def stated_cost(case: OwnCase, option: str, seconds: float) -> Callable[[], None]:
    """A function that keeps its core busy for a stated time, in place of what this option names. Only a case with the
    value `emulated` there may (spec/stand_ins.py)."""
    check_stand_in(case, option)
    nanoseconds = round(seconds * 1e9)

    def spend() -> None:
        end = time.perf_counter_ns() + nanoseconds
        while time.perf_counter_ns() < end:
            pass

    return spend


def repetitions(case: TransferCase | CollectiveCase | OwnCase, nbytes: int) -> int:
    """Timed iterations of a size that moves `nbytes` in each: the case's number, or fewer if its budget is smaller."""
    if case.budget_mib is None or not nbytes:
        return case.iterations
    return min(case.iterations, max(LEAST, int(case.budget_mib * MIB) // nbytes))


@contextmanager
def first_use(context: RankContext, nbytes: int) -> Iterator[None]:
    """Records the first call of a size, which registers buffers and touches memory, separately from samples."""
    start = now()
    yield
    end = now()
    warmup, context.recorder.warmup = context.recorder.warmup, True
    context.recorder.add("first_use", -1, start, end, nbytes)
    context.recorder.warmup = warmup


def _record_trace(context: RankContext, step: int) -> None:
    """Records the messages that the engine traced; `value` is the peer. Called between two iterations, when no thread
    of this rank communicates."""
    if context.trace:
        warmup, context.recorder.warmup = context.recorder.warmup, step < 0 or context.recorder.warmup
        for event, start, end, nbytes, peer in context.trace:
            context.recorder.add(event, step, start, end, nbytes, peer)
        context.trace.clear()
        context.recorder.warmup = warmup


@contextmanager
def timed_region(context: RankContext, transport: Collectives | Transport) -> Iterator[None]:
    """Marks the timed region between two barriers of all ranks. The transport is closed afterwards, also after an
    error."""
    try:
        transport.barrier()
        mark(context, "start", 0, transport)
        yield
        mark(context, "end", 0, transport)
        context.at(0, "barrier")
        transport.barrier()
    finally:
        leave(context, transport)


def leave(context: RankContext, transport: Collectives | Transport | Mailbox) -> None:
    """Records the transport's traffic and capabilities and the addresses of its sockets, then closes it."""
    _record_trace(context, -1)
    context.facts["sockets"] = bound_sockets(context.held_sockets)
    context.facts["traffic"] = asdict(transport.traffic)
    context.facts["transport"] = asdict(transport.capabilities) | {"dtypes": sorted(transport.capabilities.dtypes)}
    transport.close()
