"""A replica's model as flat arrays, for strategies whose arithmetic is their own: parameters and their gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, cast

import numpy as np

from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.emulated import shrunk
from scaleproof.workloads.data import Batch, initial_parameters
from scaleproof.workloads.model_contract import Model, PiecewiseModel
from scaleproof.workloads.networks import Network


class Learner(Protocol):
    """One replica. `parameters` and `gradient` are float32 (n,), in the network's order; writing into `parameters`
    changes the model."""

    parameters: np.ndarray
    gradient: np.ndarray
    share: float
    """Of the parameters that `update` steps."""

    def own(self, piece: slice) -> None:
        """From now on `update` steps this piece only: a server's share."""

    def update(self) -> None:
        """SGD with the case's momentum: one step of `parameters` along `gradient`."""

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """As Model.accuracy."""

    def loss(self, batch: Batch) -> float:
        """Mean loss; batch normalisations use the mean and variance of `batch`."""


class ModelLearner:
    """A learner of a framework's model."""

    share = 1.0

    def __init__(self, model: Model, sizes: list[int]) -> None:
        """`sizes`: elements of each parameter."""
        self.model = model
        self.parameters = np.zeros(sum(sizes), np.float32)
        self.gradient = np.zeros(sum(sizes), np.float32)
        ends = np.cumsum(sizes).tolist()
        pieces = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        shapes = [value.shape for value in model.values()]
        memory = [self.parameters[piece].reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
        self.in_place = model.use_memory(memory)
        model.bind([self.gradient[piece] for piece in pieces], 1.0, _nobody)

    def compute(self, batch: Batch, between: Callable[[], None] = lambda: None) -> float:
        """Loss of a batch; its gradient goes into `gradient`. `between` is called between the two passes."""
        loss = self.model.forward(batch)
        between()
        self.model.backward()
        return loss

    def own(self, piece: slice) -> None:
        """See Learner."""
        self.share = share_of(piece, self.parameters)
        cast(PiecewiseModel, self.model).step_pieces([self.parameters[piece]], [self.gradient[piece]])

    def update(self) -> None:
        """See Learner."""
        self.model.update()

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """See Learner."""
        return self.model.accuracy(batch, reference)

    def loss(self, batch: Batch) -> float:
        """See Learner."""
        return self.model.forward(batch)


class NoLearner:
    """A learner that learns nothing, of `shrink` times fewer parameters: what is simulated without its mathematics."""

    share = 1.0

    def __init__(self, network: Network, shrink: float) -> None:
        elements = sum(sizes_of(network, shrink))
        self.parameters, self.gradient = np.zeros(elements, np.float32), np.zeros(elements, np.float32)

    def own(self, piece: slice) -> None:
        """See Learner."""
        self.share = share_of(piece, self.parameters)

    def update(self) -> None:
        """See Learner."""

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """See Learner."""
        return math.nan

    def loss(self, batch: Batch) -> float:
        """See Learner."""
        return math.nan


def share_of(piece: slice, parameters: np.ndarray) -> float:
    """How much of the parameters a piece is."""
    return (piece.stop - piece.start) / len(parameters)


def sizes_of(network: Network, shrink: float = 1.0) -> list[int]:
    """Elements of each parameter."""
    return [shrunk(math.prod(shape), shrink) for _, shape in network.parameter_shapes]


def model_learner(case: TrainCase, network: Network, seed: int) -> ModelLearner:
    """A learner of the case's framework that starts from the seed's parameters."""
    model: Model = registry.load("framework", case.framework)(
        network,
        initial_parameters(network, seed),
        learning_rate=case.learning_rate,
        momentum=case.momentum,
        threads=case.threads_per_rank,
    )
    return ModelLearner(model, sizes_of(network))


def _nobody(index: int) -> None:
    """No one waits for a single gradient."""
