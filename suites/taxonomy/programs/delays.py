"""How long one exchange of a model takes under every scheme of Langer et al., section 3.4.1: all gradients in, one
update, all parameters out.

All ranks are workers, but for schemes with a parameter server of its own, which have it on the last rank. Options:
`scheme`; `slept: 1`, since ranks wait for their links and not for cores. A sample is one exchange on one rank, `nbytes`
what the rank sent in it. Before, the time of reducing and of updating a whole model is taken.
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
    """See the module. After the timed exchanges every worker's parameters are compared with what they must be."""
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
    """R_w and U_w, on one rank: the others would only take the cores."""
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
    """Synchronous schemes leave the same parameters everywhere; asynchronous ones at least each worker's own step, and
    the last worker's all of them."""
    everyone = sum(range(1, exchange.workers + 1))
    found = exchange.parameters
    if scheme == "async_per_worker":
        wanted, fits = "its own step", context.rank != 0 or bool((found == -0.5).all())
    elif scheme == "async_all_workers":
        last = -0.5 * everyone * ROUNDS[scheme]
        wanted, fits = "all steps", context.rank != exchange.workers - 1 or bool((found == last).all())
    else:
        wanted, fits = (
            "the step of all gradients",
            context.rank >= exchange.workers or bool((found == -0.5 * everyone).all()),
        )
    context.check("parameters", fits, f"{wanted}; found {float(found.min()):g} to {float(found.max()):g}")
