"""Synchronous all-reduce every n-th step: gradients of the steps between are added up, and the optimiser steps with the
mean of all of them. Replicas are equal after every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic_ns as now
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Compute
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.base import Strategy
from scaleproof.strategies.buckets import Parameter
from scaleproof.strategies.sender import Exchange
from scaleproof.strategies.step_program import Passed, Plan, Step, calls_of, end_of_step, start_all
from scaleproof.strategies.strategy_options import BucketOptions
from scaleproof.transports.contract import Collectives

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class AccumulateOptions(BucketOptions):
    """Options of this strategy."""

    every: int = Field(2, gt=0, description="Steps from an exchange to the next.")


class Accumulate(Strategy):
    """Blocking calls on the main thread, in every n-th step."""

    def __init__(
        self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float
    ) -> None:
        super().__init__(context, group, parameters, bucket_mib)
        self.every = context.case.options_of(AccumulateOptions).every
        self.sums = [np.zeros_like(bucket.buffer) for bucket in self.buckets]

    @property
    def gradient_scale(self) -> float:
        """The sum over ranks and accumulated steps is the gradient of the mean."""
        return super().gradient_scale / self.every

    def gradient_ready(self, index: int) -> None:
        """Nothing to do before all are ready."""

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy."""
        for total, bucket in zip(self.sums, self.buckets, strict=True):
            total += bucket.buffer
        if (self.step + 1) % self.every == 0:
            self._exchange()
            self.apply(update)

    def _exchange(self) -> None:
        assert self.group is not None
        self.context.at(self.step, "all_reduce")
        ready = start = now()
        for total, bucket in zip(self.sums, self.buckets, strict=True):
            np.copyto(bucket.buffer, total)
            total.fill(0)
            self.group.all_reduce(bucket.buffer).wait()
            end = now()
            self.exchanges.append(Exchange(ready, start, end, bucket.nbytes))
            start = end
        self.context.recorder.add("wait", self.step, ready, start)


def check(case: TrainCase) -> None:
    """Raises FieldError where the simulator, for which all steps are alike, would predict something else."""
    if case.plugin("fabric").predicted and case.options_of(AccumulateOptions).every != 1:
        raise FieldError("strategy.every", f"fabric {case.fabric!r} predicts steps that are all alike: set every: 1")


def simulated_step(plan: Plan, passed: Passed, update: Compute, across: bool) -> Step:
    """All buckets are exchanged after the backward pass."""
    for _, before, after in passed:
        yield Compute(before + after, event="backward")
    calls = yield from start_all(calls_of(plan))
    return (yield from end_of_step(calls, update, across))


PLUGIN = StrategyPlugin(
    name="accumulate",
    summary="gradients are added up and all-reduced every n-th step",
    implementation=Accumulate,
    options=AccumulateOptions,
    check=check,
    simulated_step=simulated_step,
    tags=synchronous_tags("DP", "data"),
)
