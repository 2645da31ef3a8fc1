"""What all programs do the same way: mark the timed region, count iterations, leave the transport."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.counters import read_counters
from scaleproof.core.recorder import now
from scaleproof.rank.process_facts import bound_sockets
from scaleproof.record.pace import pace
from scaleproof.spec.case import CollectiveCase, OwnCase, TransferCase
from scaleproof.transports.contract import Collectives, Transport

MIB = 1 << 20
LEAST = 5
"""Timed iterations of a size whose one message is more than the case's budget."""
SAMPLE_BYTES = 1 << 16
"""How much of the first minibatch is looked at to tell ranks apart."""


def mark(context: RankContext, event: str, step: int, transport: Collectives | Transport | None = None) -> None:
    """A moment: an event whose start is its end. At `start` and `end` of the timed region the interface counters of
    this rank's namespace, the pace of its core and the bytes asked of `transport` so far are kept too, outside of the
    region."""
    if event != "end":
        _look(context, event, transport)
    moment = now()
    context.recorder.add(event, step, moment, moment)
    if event == "end":
        _look(context, event, transport)


def _look(context: RankContext, event: str, transport: Collectives | Transport | None) -> None:
    if event in ("start", "end"):
        context.counters[event] = read_counters()
        context.facts.setdefault("pace", {})[event] = pace()
        if transport is not None:
            context.facts.setdefault("asked", {})[event] = transport.traffic.nbytes


def log_samples(context: RankContext, inputs: np.ndarray) -> None:
    """Keep a digest of the first samples that this rank draws: no two ranks of a launch may draw the same ones."""
    first = np.ascontiguousarray(inputs).reshape(-1).view(np.uint8)[:SAMPLE_BYTES]
    context.facts.setdefault("seeds", {})["samples"] = hashlib.blake2b(first.data, digest_size=8).hexdigest()


def timed_iterations(context: RankContext, warmup: int, iterations: int) -> Iterator[int]:
    """Numbers 0 to warmup + iterations - 1; events of the first `warmup` are flagged, and so are messages of a traced
    launch outside of iterations."""
    _keep_trace(context, -1)
    for iteration in range(warmup + iterations):
        context.recorder.warmup = iteration < warmup
        yield iteration
        _keep_trace(context, iteration)
    context.recorder.warmup = False


def repetitions(case: TransferCase | CollectiveCase | OwnCase, nbytes: int) -> int:
    """Timed iterations of a size whose one iteration moves `nbytes`: the case's, or as many as its budget allows."""
    if case.budget_mib is None or not nbytes:
        return case.iterations
    return min(case.iterations, max(LEAST, int(case.budget_mib * MIB) // nbytes))


@contextmanager
def first_use(context: RankContext, nbytes: int) -> Iterator[None]:
    """The first call of a size, which registers buffers and touches memory: recorded apart from every sample."""
    start = now()
    yield
    end = now()
    warmup, context.recorder.warmup = context.recorder.warmup, True
    context.recorder.add("first_use", -1, start, end, nbytes)
    context.recorder.warmup = warmup


def _keep_trace(context: RankContext, step: int) -> None:
    """Between two iterations, when no thread of this rank communicates: record what the engine kept. `value` is the
    peer."""
    if context.trace:
        warmup, context.recorder.warmup = context.recorder.warmup, step < 0 or context.recorder.warmup
        for event, start, end, nbytes, peer in context.trace:
            context.recorder.add(event, step, start, end, nbytes, peer)
        context.trace.clear()
        context.recorder.warmup = warmup


@contextmanager
def timed_region(context: RankContext, transport: Collectives | Transport) -> Iterator[None]:
    """The timed region between two barriers of all ranks, with its marks; the transport is left afterwards, also when
    something failed in it."""
    try:
        transport.barrier()
        mark(context, "start", 0, transport)
        yield
        mark(context, "end", 0, transport)
        context.at(0, "barrier")
        transport.barrier()
    finally:
        leave(context, transport)


def leave(context: RankContext, transport: Collectives | Transport) -> None:
    """Keep what the transport counted and said of itself, and which addresses its sockets are bound to, then release
    it."""
    _keep_trace(context, -1)
    context.facts["sockets"] = bound_sockets(context.held_sockets)
    context.facts["traffic"] = asdict(transport.traffic)
    context.facts["transport"] = asdict(transport.capabilities) | {"dtypes": sorted(transport.capabilities.dtypes)}
    transport.close()
