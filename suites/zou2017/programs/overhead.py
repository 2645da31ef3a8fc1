"""Lemma 1 in practice: the computation of a step is divided over the ranks, an overhead is not, and all ranks
synchronise at the end of the step.

Options: `slept`: 1 sleeps, `compute_ms` for the computation of a whole step and `overhead_ms` for the overhead of every
rank; 0 multiplies `products` matrices for the computation of a whole step and `overhead_products` for the overhead of
every rank. `overlapped`: 1 runs the overhead during the computation.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import sleep_for_compute, timed_iterations, timed_region
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
    compute, overhead = _work(context, case)
    transport = registry.load("transport", case.transport).connect(context)
    with timed_region(context, transport), ThreadPoolExecutor(1) as beside:
        for step in timed_iterations(context, case.warmup, case.iterations):
            context.at(step, "barrier")
            transport.barrier()
            context.at(step, "computation and overhead")
            start = now()
            going: Future[tuple[int, int]] | None = (
                beside.submit(_timed, overhead) if case.options["overlapped"] else None
            )
            with context.recorder.span("compute", step):
                compute()
            context.recorder.add("overhead", step, *(going.result() if going else _timed(overhead)))
            context.at(step, "barrier")
            transport.barrier()
            context.recorder.add("step", step, start, now())


def _timed(work: Callable[[], None]) -> tuple[int, int]:
    start = now()
    work()
    return start, now()


def _work(context: RankContext, case: OwnCase) -> tuple[Callable[[], None], Callable[[], None]]:
    """This rank's share of a step's computation, and its overhead."""
    options = case.options
    if case.slept:
        share_s, overhead_s = float(options["compute_ms"]) * MILLI / case.ranks, float(options["overhead_ms"]) * MILLI
        return lambda: sleep_for_compute(context, share_s), lambda: sleep_for_compute(context, overhead_s)
    products, overhead = int(options["products"]), int(options["overhead_products"])
    share = products // case.ranks + (context.rank < products % case.ranks)
    return _multiply(share), _multiply(overhead)


def _multiply(products: int) -> Callable[[], None]:
    matrix = np.full((SIDE, SIDE), 1 / SIDE, np.float32)
    out = np.empty_like(matrix)

    def compute() -> None:
        for _ in range(products):
            np.matmul(matrix, matrix, out=out)

    return compute
