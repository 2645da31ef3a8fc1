"""Synchronous SGD with a distributed update (das2016): gradients are part-reduced, every rank updates the part of the
parameters that it owns, and the new parameters are part-broadcast.

A rank sends as many bytes as in a ring all-reduce, 2V(N-1)/N, but updates and keeps momentum for only 1/N of the
parameters. Part-reduce and part-broadcast are das2016's terms for reduce-scatter and all-gather.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic_ns as now
from typing import TYPE_CHECKING, cast

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.rank_programs.effects import Await, AwaitAll, Compute
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies import update_parts
from scaleproof.strategies.buckets import Bucket
from scaleproof.strategies.step_program import (
    Calls,
    Passed,
    Plan,
    Step,
    beside_backward,
    calls_of,
    plan_of_buckets,
    start_all,
)
from scaleproof.strategies.strategy_options import OverlapOptions, check_divided
from scaleproof.strategies.sync_overlap import SyncOverlap
from scaleproof.strategies.update_parts import Part, SharedParameters
from scaleproof.transports.contract import Handle
from scaleproof.workloads.networks import Network

if TYPE_CHECKING:
    from scaleproof.workloads.model_contract import Model, PiecewiseModel


class DistributedUpdate(SyncOverlap):
    """The part-reduce of a bucket overlaps the backward pass, its part-broadcast overlaps the updates of the next
    buckets. The next forward pass waits for everything."""

    def allocate(self, limit_nbytes: float) -> tuple[list[Bucket], list[np.ndarray]]:
        """See Strategy; also allocates the memory of the parameters."""
        self.shared = self.divide(limit_nbytes)
        self.parts: list[Part] = sorted(
            (part for shared in self.shared for part in shared.parts), key=lambda part: -max(part.gradients.members)
        )
        gradients = {index: view for shared in self.shared for index, view in shared.gradients.items()}
        return [part.gradients for part in self.parts], [gradients[index] for index in range(len(self.parameters))]

    def divide(self, limit_nbytes: float) -> list[SharedParameters]:
        """Groups of ranks that share the update of parameters: here all ranks share all parameters."""
        assert self.group is not None
        return [update_parts.allocate(self.group, self.parameters, range(len(self.parameters)), limit_nbytes)]

    def start(self, model: Model) -> None:
        """See Strategy: the parameters move into the receive buffers, and the model's optimiser updates only this
        rank's parts."""
        self._model = cast("PiecewiseModel", model)
        memory = {index: view for shared in self.shared for index, view in shared.values.items()}
        if not model.use_memory([memory[index].reshape(value.shape) for index, value in enumerate(model.values())]):
            raise TransportError(
                "the distributed update needs a framework whose parameters can lie in the transport's memory"
            )
        for part in self.parts:
            part.copy_own_values()
        self._model.step_pieces([part.own_values for part in self.parts], [part.own_gradients for part in self.parts])

    def begin(self, step: int) -> None:
        """See Strategy; completes calls that were made between steps."""
        super().begin(step)
        self._sender.drain()
        self._reduces: list[int | None] = []

    def send_bucket(self, number: int) -> None:
        """See SyncOverlap."""
        part = self.parts[number]
        self._reduces.append(
            None if part.alone else self._sender.submit(part.gradients.nbytes, partial(self._exchange, number))
        )

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy; `update` is not called, since it would update all parameters."""
        self.expect_all()
        self.context.at(self.step, "part-reduce, step, part-broadcast")
        start = now()
        for number, (part, reduce) in enumerate(zip(self.parts, self._reduces, strict=True)):
            if reduce is not None:
                self.context.post.wait()
                self._sender.wait(reduce)
            self.apply(partial(self._model.update, [number]))
            if not part.alone:
                self._sender.submit(part.gradients.nbytes, part.broadcast)
        self.context.post.wait()
        self.exchanges = self._sender.drain()
        self.context.recorder.add("wait", self.step, start, now())

    def close(self) -> None:
        """See Strategy."""
        super().close()
        self.parts, self.shared = [], []

    def _exchange(self, number: int) -> Handle:
        return self.parts[number].reduce()


def simulated_step(plan: Plan, passed: Passed, update: Compute, across: bool) -> Step:
    """Part-reduce during the backward pass; then each rank updates its part of one bucket while the previous bucket is
    part-broadcast."""
    reduces = yield from beside_backward(plan, passed, list(calls_of(plan, "reduce_scatter")))
    total, gathers = plan.undivided or sum(plan.nbytes), Calls()
    for number, gather in enumerate(calls_of(plan, "all_gather", len(plan.nbytes))):
        yield Await(reduces[number])
        update_s = update.seconds * plan.nbytes[number] / total / plan.sharers(number)
        yield Compute(update_s, event="update")
        gathers |= yield from start_all([gather])
    if plan.alone:
        yield Compute(update.seconds * plan.alone / total, event="update")
    yield AwaitAll((*reduces.values(), *gathers.values()))
    return {}


def simulated_plan(case: TrainCase, network: Network) -> Plan:
    """Buckets that can be divided over all ranks."""
    return plan_of_buckets(case, network, case.ranks)


PLUGIN = StrategyPlugin(
    name="distributed_update",
    summary="part-reduce of gradients, step on the own part, part-broadcast",
    implementation=DistributedUpdate,
    options=OverlapOptions,
    check=check_divided,
    communicates_beside_compute=True,
    divides_update=True,
    simulated_step=simulated_step,
    simulated_plan=simulated_plan,
    tags=synchronous_tags("DP", "data", exchange="scatter-reduce", topology="distributed-PS(k=n)"),
)
