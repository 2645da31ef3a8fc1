"""What every strategy has: it owns the gradient buckets, hears when each gradient is ready, and decides what to exchange and when to step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.strategies import buckets
from harness.strategies.buckets import Bucket, Parameter
from harness.transports.base import Collectives

if TYPE_CHECKING:
    from harness.rank.context import RankContext
    from harness.workloads.model import Model

MIB = 1 << 20


def plain_memory(nbytes: int) -> np.ndarray:
    """Memory for gradients that never travel."""
    return np.empty(nbytes, np.uint8)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One all-reduce that is done: when its gradients were complete, when it started and ended, in ns, and its bytes."""

    ready_ns: int
    start_ns: int
    end_ns: int
    nbytes: int


class Strategy(ABC):
    """Knows no framework. Per step: `begin`, `gradient_ready` for every parameter as the backward pass goes, `finish`, and after the clock `report`."""

    def __init__(self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float) -> None:
        self.context = context
        self.group = group
        self.parameters = list(parameters)
        self.step = -1
        self.exchanges: list[Exchange] = []
        self.fused = context.case.fusion_mib is not None
        """Whether the transport fuses: it gets every tensor by itself."""
        self.buckets, self.gradients = self.allocate(0 if self.fused else bucket_mib * MIB)

    def allocate(self, limit_nbytes: float) -> tuple[list[Bucket], list[np.ndarray]]:
        """What is exchanged in one call each, and where the gradients go."""
        return buckets.allocate(self.parameters, limit_nbytes, self.group.allocate if self.group else plain_memory)

    @property
    def gradient_scale(self) -> float:
        """Factor on the local mean loss. 1/world_size makes the sum of the ranks' gradients that of the global mean, at no cost per element."""
        return 1.0 / self.context.world_size

    def start(self, model: Model) -> None:  # noqa: B027  most strategies leave the parameters where they are
        """Once, when all ranks hold the same parameters, before the first step: for strategies that keep the parameters elsewhere."""

    def begin(self, step: int) -> None:
        """A new step starts; all gradients are stale."""
        self.step = step

    @abstractmethod
    def gradient_ready(self, index: int) -> None:
        """The gradient of parameter `index` is final in its view. Called in the backward pass: return quickly."""

    @abstractmethod
    def finish(self, update: Callable[[], None]) -> None:
        """The backward pass is over: complete the exchange, keep its times in `exchanges`, and call `update` when the gradients are those to step with."""

    def report(self) -> None:
        """After the step, so that writing is no part of it: each bucket's all-reduce, and how long its complete gradients lay in the queue before."""
        for exchange in self.exchanges:
            self.context.recorder.add("queue", self.step, exchange.ready_ns, exchange.start_ns, exchange.nbytes)
            self.context.recorder.add("communication", self.step, exchange.start_ns, exchange.end_ns, exchange.nbytes)
        self.exchanges = []

    def apply(self, update: Callable[[], None]) -> None:
        """Run and record the optimiser's step."""
        self.context.at(self.step, "update")
        with self.context.recorder.span("update", self.step):
            update()

    def close(self) -> None:
        """Release threads and views of the transport's memory."""
        self.gradients, self.buckets = [], []
