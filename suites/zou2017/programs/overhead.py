"""Lemma 1 in practice: the computation of a step is divided over the ranks, an overhead is not, and all ranks
synchronise at the end of the step.

Options: `slept`: 1 sleeps for the computation, `compute_ms` per whole step; 0 multiplies `products` matrices per step.
`overhead_ms`: sleep injected into every step of every rank. `overlapped`: 1 runs the overhead during the computation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_iterations, timed_region
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase

SIDE = 256
"""Side of the square matrices: a product takes well under a millisecond, so that the work of a step can be divided
finely."""
MILLI = 1e-3


def run(context: RankContext) -> None:
    """See the module. Records each step as a whole, and its computation and overhead separately."""
    case = context.case
    assert isinstance(case, OwnCase) and case.transport is not None
    overhead_s = float(case.options["overhead_ms"]) * MILLI
    compute = _computation(context, case)
    transport = registry.load("transport", case.transport).connect(context)
    with timed_region(context, transport), ThreadPoolExecutor(1) as beside:
        for step in timed_iterations(context, case.warmup, case.iterations):
            context.at(step, "barrier")
            transport.barrier()
            context.at(step, "computation and overhead")
            start = now()
            going: Future[tuple[int, int]] | None = (
                beside.submit(_sleep, overhead_s) if case.options["overlapped"] else None
            )
            with context.recorder.span("compute", step):
                compute()
            context.recorder.add("overhead", step, *(going.result() if going else _sleep(overhead_s)))
            context.at(step, "barrier")
            transport.barrier()
            context.recorder.add("step", step, start, now())


def _sleep(seconds: float) -> tuple[int, int]:
    start = now()
    time.sleep(seconds)
    return start, now()


def _computation(context: RankContext, case: OwnCase) -> Callable[[], None]:
    """This rank's share of a step's work."""
    if case.options["slept"]:
        share_s = float(case.options["compute_ms"]) * MILLI / case.ranks
        return lambda: time.sleep(share_s)
    products = int(case.options["products"])
    share = products // case.ranks + (context.rank < products % case.ranks)
    matrix = np.full((SIDE, SIDE), 1 / SIDE, np.float32)
    out = np.empty_like(matrix)

    def compute() -> None:
        for _ in range(share):
            np.matmul(matrix, matrix, out=out)

    return compute
