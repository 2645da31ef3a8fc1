"""The same micro-benchmark in TensorFlow's own runtime: rank 1 requests a tensor from rank 0's server and computes its
largest element.

A sample is the time on rank 1 from the start of the step until the result is available: the RecvTensor requests, the
tensor, and the reduction. Before the timed region a tensor of each size is requested in every number of pieces of a
grid; the fastest is used, and the record has the times of all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, repetitions, timed_iterations
from scaleproof.programs.payload import differing, pattern
from scaleproof.spec.case import OwnCase

if TYPE_CHECKING:
    from scaleproof.transports.tensorflow.session_server import HeldTensor

ITEM = 4
LEAST = 7.0
MEET_S = 120.0
PIECES = (1, 2, 3, 4, 6, 8, 12, 16)
"""Numbers of pieces that are tried for each size: as many settings as our gRPC service had (experiment `tuning`)."""
TRIES = 3
"""Requests per setting, of which the fastest counts: the first one sends the graph to the servers too."""
SECOND = 1e9
PRELOAD = ("tensorflow",)


def run(context: RankContext) -> None:
    """See the module."""
    from scaleproof.transports.tensorflow.session_server import HeldTensor, SessionServer

    case = context.case
    assert isinstance(case, OwnCase)
    servers = SessionServer(context)
    context.facts["tuning"] = {"in_use": context.facts.get("tuning", {}), "tried": {}, "pieces": {}}
    try:
        held = PIECES if context.rank else (1,)
        tensors = {pieces: HeldTensor(servers, owner=0, pieces=pieces) for pieces in held}
        chosen = {nbytes: _tuned(context, tensors, nbytes) for nbytes in case.sizes}
        mark(context, "start", 0)
        for nbytes in case.sizes:
            _size(context, case, tensors[chosen[nbytes]], nbytes)
        mark(context, "end", 0)
        _meet(context, "end")
    finally:
        servers.close()


def _size(context: RankContext, case: OwnCase, tensor: HeldTensor, nbytes: int) -> None:
    expected = _put(context, tensor, nbytes, "timed")
    if context.rank == 1:
        wrong = differing(tensor.pull(), expected)
        context.check(f"content.{nbytes}", not wrong, f"{wrong} of {nbytes // ITEM} elements differ")
        processor = time.process_time()
        for iteration in timed_iterations(context, case.warmup, repetitions(case, nbytes)):
            context.at(iteration, f"tensor of {nbytes} B", 0)
            start = now()
            largest = tensor.reduce_max()
            context.recorder.add("send_reduce", iteration, start, now(), nbytes)
            if largest != LEAST:
                context.check(f"largest.{nbytes}.{iteration}", False, f"{largest} instead of {LEAST}")
        context.facts.setdefault("processor_s", {})[str(nbytes)] = time.process_time() - processor
    _meet(context, f"done.{nbytes}")


def _put(context: RankContext, tensor: HeldTensor, nbytes: int, when: str) -> np.ndarray:
    """Lets rank 0 hold a tensor of this size; returns its content on every rank."""
    content = pattern(nbytes // ITEM, "float32", 5)
    content[-1] = LEAST
    if context.rank == 0:
        tensor.put(content)
    _meet(context, f"{when}.{nbytes}")
    return content


def _tuned(context: RankContext, tensors: dict[int, HeldTensor], nbytes: int) -> int:
    """The number of pieces with which a tensor of this size arrives soonest on rank 1, after all were tried."""
    _put(context, tensors[1], nbytes, "tuned")
    tried = {}
    if context.rank == 1:
        for pieces, tensor in tensors.items():
            context.at(-1, f"{pieces} pieces of {nbytes} B", 0)
            tried[pieces] = min(_request_s(tensor) for _ in range(TRIES))
        tuning = context.facts["tuning"]
        tuning["tried"][str(nbytes)] = [{"pieces": pieces, "s": seconds} for pieces, seconds in tried.items()]
        tuning["pieces"][str(nbytes)] = fastest(tried)
    _meet(context, f"tried.{nbytes}")
    return fastest(tried) if tried else 1


def fastest(tried: Mapping[int, float]) -> int:
    """The setting with the least time."""
    return min(tried, key=lambda pieces: tried[pieces])


def _request_s(tensor: HeldTensor) -> float:
    start = now()
    tensor.reduce_max()
    return (now() - start) / SECOND


def _meet(context: RankContext, name: str) -> None:
    context.rendezvous.exchange(f"xue.{name}", context.rank, context.world_size, True, MEET_S)
