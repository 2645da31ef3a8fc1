"""What a rank trains on: batches, tables of rows that the seed splits and shuffles, and initial parameters. A global
minibatch depends only on (seed, step). The data sets themselves are in datasets/."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network
from scaleproof.workloads.sequence_layers import Embedding, Recurrent
from scaleproof.workloads.transformer_layers import TRANSFORMER

REFERENCE_ROWS = 512
"""Training rows whose mean and variance batch normalisations use in tests."""
KEPT_EPOCHS = 8
"""Orders of epochs that ranks of one process keep: ranks that go at their own pace are in different epochs."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs float32 (n, *input_shape), images as (maps, side, side), or tokens int64; labels int64 (n, *label_shape),
    or float32 of a regression."""

    inputs: np.ndarray
    labels: np.ndarray


class Data(Protocol):
    """Data that a rank trains on. `test` is empty if there is no test set; `reference` has the training rows for batch
    normalisations in tests."""

    test: Batch
    reference: Batch

    def batch(self, step: int) -> Batch:
        """This rank's slice of the global minibatch of a step."""


class Source(Data, Protocol):
    """Data as a data set's implementation makes them for one rank."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None: ...

    def of_rank(self, rank: int, world_size: int) -> Source:
        """The same data for another rank in this process."""

    def findings(self) -> Findings:
        """Checks D1 to D12 of all rows (docs/inputs.md); takes some ms."""


def rank_slice(minibatch: int, rank: int, world_size: int) -> slice:
    """Samples of the global minibatch that belong to a rank: consecutive, equal shares."""
    share = minibatch // world_size
    return slice(rank * share, (rank + 1) * share)


class Table(ABC):
    """A fixed set of rows, split and shuffled by the seed. An epoch is a permutation of the training rows without the
    last, incomplete minibatch."""

    def __init__(self, rows: Batch, tests: int, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        order = np.random.default_rng([seed, 0]).permutation(len(rows.labels))
        self.rows, self.seed = rows, seed
        self.test = Batch(rows.inputs[order[:tests]], rows.labels[order[:tests]])
        self.train = Batch(rows.inputs[order[tests:]], rows.labels[order[tests:]])
        self.reference = Batch(self.train.inputs[:REFERENCE_ROWS], self.train.labels[:REFERENCE_ROWS])
        self._minibatch, self._mine = minibatch, rank_slice(minibatch, rank, world_size)
        self._steps_per_epoch = len(self.train.labels) // minibatch
        self._orders = lru_cache(KEPT_EPOCHS)(self._order)

    def batch(self, step: int) -> Batch:
        """This rank's rows of the step's minibatch."""
        epoch, position = divmod(step, self._steps_per_epoch)
        rows = self._orders(epoch)[position * self._minibatch : (position + 1) * self._minibatch][self._mine]
        return Batch(self.train.inputs[rows], self.train.labels[rows])

    def of_rank(self, rank: int, world_size: int) -> Table:
        """See Source; the rows are shared."""
        other = copy.copy(self)
        other._mine = rank_slice(self._minibatch, rank, world_size)
        return other

    def epoch_labels(self) -> np.ndarray:
        """Labels of all ranks in the order of the first epoch."""
        rows = self._order(0)[: self._steps_per_epoch * self._minibatch]
        labels: np.ndarray = self.train.labels[rows]
        return labels

    @abstractmethod
    def findings(self) -> Findings:
        """See Source."""

    def _order(self, epoch: int) -> np.ndarray:
        return np.random.default_rng([self.seed, 1, epoch]).permutation(len(self.train.labels))


def open_data(case: TrainCase, network: Network, seed: int, rank: int) -> Source:
    """The case's data for one rank, counted among those that train, or for a group of ranks with one share."""
    source: Source = registry.load("dataset", case.dataset)(network, case.minibatch, seed, rank, case.shares)
    return source


def open_every_rank(case: TrainCase, network: Network, seed: int) -> list[Source]:
    """The case's data for every share of a minibatch, in one process: one copy of the rows."""
    first = open_data(case, network, seed, 0)
    return [first, *(first.of_rank(rank, case.shares) for rank in range(1, case.shares))]


def initial_parameters(network: Network, seed: int) -> list[np.ndarray]:
    """Canonical float32 values in parameter order. Weights are normal with variance 2/fan-in before ReLU (He et al.
    2015), and 1/fan-in before tanh, in embeddings, recurrent layers and transformers. Biases and offsets are 0; scales
    and biases of forget gates are 1."""
    values = []
    for number, layer in enumerate(network.trainable):
        linear = (Recurrent, Embedding, *TRANSFORMER)
        gain = 1 if network.activation == "tanh" or isinstance(layer.spec, linear) else 2
        generator = np.random.default_rng([seed, 2, number])
        for variable in layer.variables:
            if variable.initial == "normal":
                value = generator.standard_normal(variable.shape, dtype=np.float32)
                value *= np.float32((gain / variable.fan_in) ** 0.5)
            else:
                value = np.full(variable.shape, variable.initial == "ones", np.float32)
            values.append(value)
    return values
