"""Data of a workload: synthetic tensors of the true shape, or rows that can be learned. A global minibatch depends only
on (seed, step)."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.workloads.datasets import (
    DIGITS,
    OWN_SHARE,
    REVERSAL,
    REVERSED_LENGTH,
    REVERSED_TOKENS,
    SENTENCE_WORDS,
    TOPIC_COUNT,
    TOPICS,
    WORDS,
)
from scaleproof.workloads.inputs.findings import BadInput
from scaleproof.workloads.networks import Network
from scaleproof.workloads.sequence_layers import Embedding, Recurrent

POOL = 2
"""Number of synthetic global minibatches, which are made before timing; step s uses number s modulo POOL."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs float32 (n, *input_shape), images as (maps, side, side), or tokens int64; labels int64 (n,
    *label_shape)."""

    inputs: np.ndarray
    labels: np.ndarray


DIGITS_FILE = "digits.csv.gz"
DIGITS_SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
"""Digest of the file in scikit-learn 1.9."""


class Data(Protocol):
    """Data that a rank trains on. `test` is empty if there is no test set."""

    test: Batch

    def batch(self, step: int) -> Batch:
        """This rank's slice of the global minibatch of a step."""


def rank_slice(minibatch: int, rank: int, world_size: int) -> slice:
    """Samples of the global minibatch that belong to a rank: consecutive, equal shares."""
    share = minibatch // world_size
    return slice(rank * share, (rank + 1) * share)


def empty_batch(network: Network, samples: int) -> Batch:
    """Uninitialised memory for samples of a network."""
    inputs = np.empty((samples, *network.input_shape), np.float32 if network.vocabulary is None else np.int64)
    return Batch(inputs, np.empty((samples, *network.label_shape), np.int64))


class Synthetic:
    """Standard normal inputs or uniform tokens, with uniform labels. Every sample has its own random generator, so that
    all world sizes get the same minibatches."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        mine = range(minibatch)[rank_slice(minibatch, rank, world_size)]
        self._pool = [self._make(network, seed, number, mine) for number in range(POOL)]
        self.test = empty_batch(network, 0)

    @staticmethod
    def _make(network: Network, seed: int, number: int, samples: range) -> Batch:
        batch = empty_batch(network, len(samples))
        for row, sample in enumerate(samples):
            generator = np.random.default_rng([seed, number, sample])
            if network.vocabulary is None:
                generator.standard_normal(out=batch.inputs[row], dtype=np.float32)
            else:
                batch.inputs[row] = generator.integers(network.vocabulary, size=network.input_shape)
            batch.labels[row] = generator.integers(network.classes, size=network.label_shape or None)
        return batch

    def batch(self, step: int) -> Batch:
        """The slice, made in advance."""
        return self._pool[step % POOL]


class Table:
    """A fixed set of rows, split and shuffled by the seed. An epoch is a permutation of the training rows without the
    last, incomplete minibatch."""

    def __init__(self, rows: Batch, tests: int, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        order = np.random.default_rng([seed, 0]).permutation(len(rows.labels))
        self.rows = rows
        self.test = Batch(rows.inputs[order[:tests]], rows.labels[order[:tests]])
        self.train = Batch(rows.inputs[order[tests:]], rows.labels[order[tests:]])
        self._seed, self._minibatch, self._mine = seed, minibatch, rank_slice(minibatch, rank, world_size)
        self._steps_per_epoch = len(self.train.labels) // minibatch
        self._epoch, self._permutation = -1, order

    def batch(self, step: int) -> Batch:
        """This rank's rows of the step's minibatch."""
        epoch, position = divmod(step, self._steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._permutation = epoch, self._order(epoch)
        rows = self._permutation[position * self._minibatch : (position + 1) * self._minibatch][self._mine]
        return Batch(self.train.inputs[rows], self.train.labels[rows])

    def epoch_labels(self) -> np.ndarray:
        """Labels of all ranks in the order of the first epoch."""
        rows = self._order(0)[: self._steps_per_epoch * self._minibatch]
        labels: np.ndarray = self.train.labels[rows]
        return labels

    def _order(self, epoch: int) -> np.ndarray:
        return np.random.default_rng([self._seed, 1, epoch]).permutation(len(self.train.labels))


class Digits(Table):
    """1797 images of 8x8 pixels, 10 classes."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        images, labels = load_digits()
        super().__init__(
            Batch(images.reshape(-1, *network.input_shape), labels),
            DIGITS.test,
            minibatch,
            seed,
            rank,
            world_size,
        )


class Reversal(Table):
    """Different sequences of tokens, whose labels are the reversed sequences. An input is the sequence, a start token,
    and the answer without its last token."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        data = REVERSAL
        count = data.training + data.test
        numbers = np.random.default_rng([seed, 5]).choice(REVERSED_TOKENS**REVERSED_LENGTH, count, replace=False)
        sequences = np.stack(
            [numbers // REVERSED_TOKENS**digit % REVERSED_TOKENS for digit in range(REVERSED_LENGTH)], 1
        )
        answers = np.ascontiguousarray(sequences[:, ::-1])
        inputs = np.concatenate([sequences, np.full((count, 1), REVERSED_TOKENS), answers[:, :-1]], 1)
        super().__init__(Batch(inputs, answers), data.test, minibatch, seed, rank, world_size)


class Topics(Table):
    """Sentences of random words. Every topic has its own words; a share OWN_SHARE of a sentence's words is drawn from
    them, the others are drawn from all words."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        data, generator = TOPICS, np.random.default_rng([seed, 6])
        shape, own = (data.training + data.test, SENTENCE_WORDS), WORDS // TOPIC_COUNT
        labels = generator.integers(TOPIC_COUNT, size=shape[0])
        tokens = np.where(
            generator.random(shape) < OWN_SHARE,
            labels[:, None] * own + generator.integers(own, size=shape),
            generator.integers(WORDS, size=shape),
        )
        super().__init__(Batch(tokens, labels), data.test, minibatch, seed, rank, world_size)


def read_digits() -> bytes:
    """The file in scikit-learn, read without importing scikit-learn, which takes a second."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise SpecError("data 'digits' needs scikit-learn; type `make env`")
    return (Path(spec.origin).parent / "datasets" / "data" / DIGITS_FILE).read_bytes()


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Images float32 (1797, 64), scaled to [-1, 1], and labels. Raises BadInput, before parsing, when the file is not
    the pinned one."""
    content = read_digits()
    if (sha256 := hashlib.sha256(content).hexdigest()) != DIGITS_SHA256:
        raise BadInput(
            f"D1 sha256 of digits: {sha256}, must be {DIGITS_SHA256}; {DIGITS_FILE} is not the one of "
            "scikit-learn 1.9: install that version again"
        )
    with gzip.open(io.BytesIO(content)) as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return table[:, :-1] / 8 - 1, table[:, -1].astype(np.int64)


_KINDS: dict[str, type[Synthetic | Digits | Reversal | Topics]] = {
    "synthetic": Synthetic,
    "digits": Digits,
    "reversal": Reversal,
    "topics": Topics,
}


def open_data(case: TrainCase, network: Network, seed: int, rank: int) -> Data:
    """The case's data for one rank, counted among those that train."""
    return _KINDS[case.workload_options.data](network, case.minibatch, seed, rank, case.workers)


def initial_parameters(network: Network, seed: int) -> list[np.ndarray]:
    """Canonical float32 values in parameter order. Weights are normal with variance 2/fan-in before ReLU (He et al.
    2015), and 1/fan-in before tanh, in embeddings and in recurrent layers. Biases and offsets are 0; scales and biases
    of forget gates are 1."""
    values = []
    for number, layer in enumerate(network.trainable):
        gain = 1 if network.activation == "tanh" or isinstance(layer.spec, Recurrent | Embedding) else 2
        generator = np.random.default_rng([seed, 2, number])
        for variable in layer.variables:
            if variable.initial == "normal":
                value = generator.standard_normal(variable.shape, dtype=np.float32)
                value *= np.float32((gain / variable.fan_in) ** 0.5)
            else:
                value = np.full(variable.shape, variable.initial == "ones", np.float32)
            values.append(value)
    return values
