"""The interface of a strategy: it owns the gradient buckets, is called when each gradient is ready, and decides what to
exchange and when to update."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from scaleproof.collectives.group import channels_of
from scaleproof.spec.emulated import shrunk
from scaleproof.strategies import buckets
from scaleproof.strategies.buckets import Bucket, Parameter
from scaleproof.strategies.sender import Exchange
from scaleproof.transports._buffers import plain_memory
from scaleproof.transports.contract import Collectives, Handle
from scaleproof.workloads.networks import Network

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext
    from scaleproof.workloads.data import Batch
    from scaleproof.workloads.model_contract import Model

MIB = 1 << 20


class ReplicaGroup(NamedTuple):
    """Parameters that some ranks hold replicas of: a unique name, the collectives of those ranks, and the indices of
    the parameters."""

    name: str
    group: Collectives | None
    indices: Sequence[int]


class Strategy(ABC):
    """Independent of the framework. Calls in a step: `begin`, `gradient_ready` for every parameter during the backward
    pass, `finish`, and after the timed part `report`."""

    network: Network
    """The network that this rank's model computes."""

    @classmethod
    def open(cls, context: RankContext, group: Collectives | None, network: Network, bucket_mib: float) -> Self:
        """The strategy of a rank that trains this network. Most strategies leave the network unchanged."""
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
        self.channels = channels_of(group) if group is not None else ()
        """Groups whose calls may be made at the same time: bucket n is exchanged on channel n mod channels."""
        self.parameters = list(parameters)
        self.step = -1
        self.exchanges: list[Exchange] = []
        self.fused = context.case.value("transport.fusion_mib") is not None
        """Whether the transport fuses tensors; then every bucket holds one tensor."""
        self.buckets, self.gradients = self.allocate(0 if self.fused else bucket_mib * MIB / context.case.shrink)

    def allocate(self, limit_nbytes: float) -> tuple[list[Bucket], list[np.ndarray]]:
        """The buckets, each exchanged in one call, and the memory of each gradient."""
        memories = cycle([channel.allocate for channel in self.channels] or [plain_memory])
        return buckets.allocate(self.parameters, limit_nbytes, lambda nbytes: next(memories)(nbytes))

    def all_reduce(self, number: int) -> Handle:
        """Start the exchange of a bucket on its channel."""
        return self.channels[number % len(self.channels)].all_reduce(self.buckets[number].buffer)

    @property
    def gradient_scale(self) -> float:
        """Factor on the local mean loss. With 1/world_size the sum of the ranks' gradients is the gradient of the
        global mean, at no cost per element."""
        return 1.0 / self.context.world_size

    @property
    def replica_groups(self) -> list[ReplicaGroup]:
        """Groups of ranks that hold equal replicas of parameters before the first and after every step."""
        return [ReplicaGroup("all", self.group, range(len(self.parameters)))]

    @property
    def evaluators(self) -> range:
        """Ranks that must evaluate the test set together so that rank 0 gets the accuracy."""
        return range(1)

    def own_values(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """This rank's part of the whole network's parameters, in the order of `parameters`."""
        return values

    def whole_values(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """The whole network's parameters, gathered from the ranks' parts on rank 0. All ranks call it."""
        return values

    def own_batch(self, batch: Batch) -> Batch:
        """This rank's samples, with the labels of all samples whose logits it computes."""
        return batch

    def start(self, model: Model) -> None:  # noqa: B027  most strategies leave the parameters where they are
        """Called once before the first step, when all ranks hold the same parameters. A strategy may move the
        parameters into its own memory here."""

    def begin(self, step: int) -> None:
        """A new step starts; the gradients of the last step are no longer valid."""
        self.step = step

    @abstractmethod
    def gradient_ready(self, index: int) -> None:
        """The gradient of parameter `index` is final in its view. Called during the backward pass, so it must return
        quickly."""

    @abstractmethod
    def finish(self, update: Callable[[], None]) -> None:
        """The backward pass has ended: complete the exchange, store its times in `exchanges`, and call `update` when
        the gradients are complete."""

    def report(self) -> None:
        """After the timed step: record each bucket's exchange, and how long its gradients waited in the queue."""
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
