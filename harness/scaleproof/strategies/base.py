"""The contract of a strategy: it owns the gradient buckets, is called when each gradient is ready, and decides what to
exchange and when to step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from scaleproof.spec.emulated import shrunk
from scaleproof.strategies import buckets
from scaleproof.strategies.buckets import Bucket, Parameter
from scaleproof.strategies.sender import Exchange
from scaleproof.transports.contract import Collectives
from scaleproof.workloads.networks import Network

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext
    from scaleproof.workloads.data import Batch
    from scaleproof.workloads.model_contract import Model

MIB = 1 << 20


def plain_memory(nbytes: int) -> np.ndarray:
    """Memory for gradients that are never sent."""
    return np.empty(nbytes, np.uint8)


class ReplicaGroup(NamedTuple):
    """Parameters of which some ranks hold replicas: a name that no other such group has, the collectives of those
    ranks, and the parameters' numbers."""

    name: str
    group: Collectives | None
    indices: Sequence[int]


class Strategy(ABC):
    """Knows no framework. Calls of a step: `begin`, `gradient_ready` for every parameter within the backward pass,
    `finish`, and outside the timed part `report`."""

    network: Network
    """The network that this rank's model computes."""

    @classmethod
    def open(cls, context: RankContext, group: Collectives | None, network: Network, bucket_mib: float) -> Self:
        """For a rank that trains this network. Most strategies leave the network as it is."""
        parameters = [
            Parameter(name, shrunk(math.prod(shape), context.case.shrink)) for name, shape in network.parameter_shapes
        ]
        strategy = cls(context, group, parameters, bucket_mib)
        strategy.network = network
        return strategy

    def __init__(
        self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float
    ) -> None:
        self.context = context
        self.group = group
        self.parameters = list(parameters)
        self.step = -1
        self.exchanges: list[Exchange] = []
        self.fused = context.case.value("transport.fusion_mib") is not None
        """Whether the transport fuses: it gets every tensor by itself."""
        self.buckets, self.gradients = self.allocate(0 if self.fused else bucket_mib * MIB / context.case.shrink)

    def allocate(self, limit_nbytes: float) -> tuple[list[Bucket], list[np.ndarray]]:
        """The buckets, each exchanged by one call, and the memory of each gradient."""
        return buckets.allocate(self.parameters, limit_nbytes, self.group.allocate if self.group else plain_memory)

    @property
    def gradient_scale(self) -> float:
        """Factor on the local mean loss. 1/world_size makes the sum of the ranks' gradients that of the global mean, at
        no cost per element."""
        return 1.0 / self.context.world_size

    @property
    def replica_groups(self) -> list[ReplicaGroup]:
        """Which ranks hold equal replicas of which parameters, before the first step and after every one."""
        return [ReplicaGroup("all", self.group, range(len(self.parameters)))]

    @property
    def evaluators(self) -> range:
        """Ranks that must evaluate the test set together so that rank 0 gets its accuracy."""
        return range(1)

    def own_values(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """This rank's part of the whole network's parameters, in the order of `parameters`."""
        return values

    def whole_values(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """The whole network's parameters from those of this rank; all ranks call it, and rank 0 gets them."""
        return values

    def own_batch(self, batch: Batch) -> Batch:
        """This rank's samples, with the labels of all samples whose logits it will compute."""
        return batch

    def start(self, model: Model) -> None:  # noqa: B027  most strategies leave the parameters where they are
        """Once, when all ranks hold the same parameters, before the first step: for strategies that keep the parameters
        elsewhere."""

    def begin(self, step: int) -> None:
        """A new step starts; all gradients are stale."""
        self.step = step

    @abstractmethod
    def gradient_ready(self, index: int) -> None:
        """The gradient of parameter `index` is final in its view. Called in the backward pass: return quickly."""

    @abstractmethod
    def finish(self, update: Callable[[], None]) -> None:
        """The backward pass is over: complete the exchange, keep its times in `exchanges`, and call `update` once the
        gradients are complete."""

    def report(self) -> None:
        """Record, outside the timed step, each bucket's all-reduce, and how long its complete gradients waited in the
        queue before."""
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
