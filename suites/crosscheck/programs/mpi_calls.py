"""Ping-pong by mpi4py's blocking calls, in the order of its benchmark, timed by our clock and stored in our record.

Option `written` 0: the buffers are never written, as in mpi4py's benchmark, so that the kernel backs all of them with
one page of zeros, which stays in the first-level cache; 1: they are written, as in our `transfer` and in the OSU
micro-benchmarks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import leave, mark
from scaleproof.spec import registry


def run(context: RankContext) -> None:
    """Round trips over `sizes`, recorded like those of `transfer`, but only after the last one: a pause between two
    round trips would let the other side get ahead."""
    transport = registry.load("transport", "mpi").connect(context)
    try:
        from mpi4py import MPI

        transport.barrier()
        mark(context, "start", 0)
        for nbytes in context.case.sizes:
            context.at(0, f"calls {nbytes} B", 1 - context.rank)
            _record(context, nbytes, _round_trips(MPI, context, nbytes))
        mark(context, "end", 0)
        transport.barrier()
    finally:
        leave(context, transport)


def _round_trips(mpi: Any, context: RankContext, nbytes: int) -> list[tuple[int, int]]:
    """Start and end of each round trip in ns."""
    case, world = context.case, mpi.COMM_WORLD
    out, back = ([np.empty(nbytes, np.uint8), nbytes, mpi.BYTE] for _ in range(2))
    if case.options["written"]:
        out[0].fill(1)
        back[0].fill(1)
    send, receive, times = world.Send, world.Recv, []
    world.Barrier()
    for _ in range(case.warmup + case.iterations):
        start = now()
        if context.rank == 0:
            send(out, 1)
            receive(back, 1)
        else:
            receive(back, 0)
            send(out, 0)
        times.append((start, now()))
    return times


def _record(context: RankContext, nbytes: int, times: list[tuple[int, int]]) -> None:
    for iteration, (start, end) in enumerate(times if context.rank == 0 else []):
        context.recorder.warmup = iteration < context.case.warmup
        context.recorder.add("transfer", iteration, start, end, nbytes)
    context.recorder.warmup = False
