"""How long one exchange of a model takes under every scheme of Langer et al., section 3.4.1: all gradients in, one
update, all parameters out.

All ranks are workers, except in schemes with a separate parameter server on the last rank. Options: `scheme`; `slept:
1`, since ranks wait for their links and not for cores. A sample is one exchange on one rank; `nbytes`: bytes that the
rank sent in it. The times to reduce and to update a whole model are measured before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from suite_programs.schemes import ROUNDS, SCHEMES, SERVED, Exchange

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_iterations, timed_region
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase
from scaleproof.transports.contract import PointToPoint

ITEM = 4
CALIBRATIONS = 5
LEARNING_RATE = np.float32(0.5)


def run(context: RankContext) -> None:
    """See the module. After the timed exchanges every worker's parameters are compared with the expected ones."""
    case = context.case
    assert isinstance(case, OwnCase) and case.transport is not None
    scheme = str(case.options["scheme"])
    transport: PointToPoint = registry.load("transport", case.transport).connect(context)
    elements = case.sizes[0] // ITEM
    exchange = Exchange(transport, case.ranks - (scheme in SERVED), elements, update)
    with timed_region(context, transport):
        _calibrate(context, elements)
        for number in timed_iterations(context, case.warmup, case.iterations):
            exchange.parameters.fill(0)
            exchange.gradient.fill(context.rank + 1)
            context.at(number, "barrier")
            transport.barrier()
            before = transport.traffic.nbytes
            context.at(number, scheme)
            start = now()
            SCHEMES[scheme](exchange)
            context.recorder.add(
                "delay", number, start, now(), transport.traffic.nbytes - before, ROUNDS.get(scheme, 1)
            )
        context.at(-1, "barrier")
        transport.barrier()
    _check(context, exchange, scheme)


def update(parameters: np.ndarray, gradient: np.ndarray) -> None:
    """A step of SGD."""
    np.subtract(parameters, LEARNING_RATE * gradient, out=parameters)


def _calibrate(context: RankContext, elements: int) -> None:
    """Measures R_w and U_w on one rank only, since other ranks would compete for the cores."""
    if context.rank:
        return
    first, second = np.ones(elements, np.float32), np.ones(elements, np.float32)
    parts: dict[str, Callable[[], object]] = {
        "reduce": lambda: np.add(first, second, out=first),
        "update": lambda: update(first, second),
    }
    for name, call in parts.items():
        for number in range(CALIBRATIONS):
            start = now()
            call()
            context.recorder.add(name, number, start, now(), elements * ITEM)


def _check(context: RankContext, exchange: Exchange, scheme: str) -> None:
    """Checks the parameters: after synchronous schemes they are equal everywhere; after asynchronous ones the server
    has all steps, and a worker has at least its own and at most all."""
    workers = [0] if scheme == "async_per_worker" else list(range(exchange.workers))
    if not exchange.is_server and exchange.rank not in workers:
        return
    least = most = sum(worker + 1 for worker in workers) * ROUNDS.get(scheme, 1)
    expected = "all steps"
    if scheme.startswith("async") and not exchange.is_server:
        least, expected = (exchange.rank + 1) * ROUNDS.get(scheme, 1), "at least the own steps, at most all"
    steps = -exchange.parameters / LEARNING_RATE
    low, high = float(steps.min()), float(steps.max())
    fits = low == high and least <= low <= most
    context.check("parameters", fits, f"{expected}, {least} to {most}; every element has {low:g} to {high:g}")
