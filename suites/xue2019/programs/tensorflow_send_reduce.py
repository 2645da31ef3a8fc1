"""The same micro-benchmark in TensorFlow's own runtime: rank 1 requests a tensor from rank 0's server and computes its
largest element.

A sample is the time on rank 1 from the start of the step until the result is available: one RecvTensor request, the
tensor, and the reduction.
"""

from __future__ import annotations

import time

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark, repetitions, timed_iterations
from scaleproof.programs.payload import differing, pattern
from scaleproof.spec.case import OwnCase

ITEM = 4
LEAST = 7.0
MEET_S = 120.0
PRELOAD = ("tensorflow",)


def run(context: RankContext) -> None:
    """See the module."""
    from scaleproof.transports.tensorflow.session_server import HeldTensor, SessionServer

    case = context.case
    assert isinstance(case, OwnCase)
    servers = SessionServer(context)
    context.facts["tuning"] = {
        "in_use": context.facts.get("tuning", {}),
        "settings_tried": 1,
        "tried": "TensorFlow's defaults; it lifts the message limit",
    }
    try:
        tensor = HeldTensor(servers, owner=0)
        mark(context, "start", 0)
        for nbytes in case.sizes:
            _size(context, case, tensor, nbytes)
        mark(context, "end", 0)
        _meet(context, "end")
    finally:
        servers.close()


def _size(context: RankContext, case: OwnCase, tensor: object, nbytes: int) -> None:
    expected = pattern(nbytes // ITEM, "float32", 5)
    expected[-1] = LEAST
    if context.rank == 0:
        tensor.put(expected)  # type: ignore[attr-defined]
    _meet(context, f"put.{nbytes}")
    if context.rank == 1:
        wrong = differing(tensor.pull(), expected)  # type: ignore[attr-defined]
        context.check(f"content.{nbytes}", not wrong, f"{wrong} of {nbytes // ITEM} elements differ")
        processor = time.process_time()
        for iteration in timed_iterations(context, case.warmup, repetitions(case, nbytes)):
            context.at(iteration, f"tensor of {nbytes} B", 0)
            start = now()
            largest = tensor.reduce_max()  # type: ignore[attr-defined]
            context.recorder.add("send_reduce", iteration, start, now(), nbytes)
            if largest != LEAST:
                context.check(f"largest.{nbytes}.{iteration}", False, f"{largest} instead of {LEAST}")
        context.facts.setdefault("processor_s", {})[str(nbytes)] = time.process_time() - processor
    _meet(context, f"done.{nbytes}")


def _meet(context: RankContext, name: str) -> None:
    context.rendezvous.exchange(f"xue.{name}", context.rank, context.world_size, True, MEET_S)
