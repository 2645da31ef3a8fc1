"""Ping-pong by mpi4py's own blocking calls, timed by our clock and record: what our `transfer` would measure without our transport's layer."""

from __future__ import annotations

import numpy as np

from harness.programs.common import leave, mark, timed_iterations
from harness.rank.context import RankContext
from harness.rank.recorder import now
from harness.spec import registry


def run(context: RankContext) -> None:
    """Round trips over `sizes`, recorded as `transfer` does."""
    transport = registry.load("transport", "mpi").connect(context)
    try:
        from mpi4py import MPI

        world, case = MPI.COMM_WORLD, context.case
        transport.barrier()
        mark(context, "start", 0)
        for nbytes in case.sizes:
            out, back = [np.zeros(nbytes, np.uint8), nbytes, MPI.BYTE], [np.zeros(nbytes, np.uint8), nbytes, MPI.BYTE]
            context.at(0, f"calls {nbytes} B", 1 - context.rank)
            world.Barrier()
            for iteration in timed_iterations(context, case.warmup, case.iterations):
                start = now()
                if context.rank == 0:
                    world.Send(out, 1)
                    world.Recv(back, 1)
                    context.recorder.add("transfer", iteration, start, now(), nbytes)
                else:
                    world.Recv(back, 0)
                    world.Send(out, 0)
        mark(context, "end", 0)
        transport.barrier()
    finally:
        leave(context, transport)
