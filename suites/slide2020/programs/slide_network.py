"""SLIDE: sparse input, one hidden layer, and a softmax over the output neurons that hash tables retrieve."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from suite_programs import kernels
from suite_programs.extreme_data import FEATURES, Samples
from suite_programs.hashing import Family
from suite_programs.memory import Allocate
from suite_programs.tables import Tables, run_all

HIDDEN = 128
SPREAD = 0.01
"""Standard deviation of initial weights of the output layer, as in the authors' code."""
INPUT_SPREAD = float(2 / np.sqrt(HIDDEN))
"""The same of the input layer, 0.177. The authors' code has 0.01 here too: the option `spread` sets it."""


@dataclass(frozen=True)
class Batch:
    """Sparse rows of one step."""

    starts: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    labels: np.ndarray


def batch_of(samples: Samples, rows: np.ndarray) -> Batch:
    """These samples, in this order."""
    lengths = samples.starts[rows + 1] - samples.starts[rows]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    source = np.repeat(samples.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
    return Batch(starts, samples.indices[source], samples.values[rows], samples.labels[rows])


@dataclass
class Weights:
    """Initial weights: (features, units), (units), (labels, units), (labels)."""

    first: np.ndarray
    first_bias: np.ndarray
    output: np.ndarray
    output_bias: np.ndarray


def initial(labels: int, seed: int, features: int = FEATURES, spread: float = INPUT_SPREAD) -> Weights:
    """Normal weights of both layers; biases are 0. SLIDE and the baselines start from the same ones."""
    generator = np.random.default_rng([seed, 5])
    first = generator.standard_normal((features, HIDDEN), np.float32) * np.float32(spread)
    output = generator.standard_normal((labels, HIDDEN), np.float32) * np.float32(SPREAD)
    return Weights(first, np.zeros(HIDDEN, np.float32), output, np.zeros(labels, np.float32))


class Layer:
    """Weights and bias with what Adam keeps of them. The bias is a row of its own, of one column per neuron."""

    def __init__(self, weights: np.ndarray, bias: np.ndarray, allocate: Allocate) -> None:
        def held(of: np.ndarray) -> np.ndarray:
            made = allocate(of.shape, np.float32)
            made[:] = of
            return made

        zeros = np.zeros_like(weights)
        self.weights, self.gradient, self.mean, self.square = held(weights), held(zeros), held(zeros), held(zeros)
        self.bias, self.bias_gradient = bias.copy(), np.zeros_like(bias)
        self.bias_mean, self.bias_square = np.zeros_like(bias), np.zeros_like(bias)
        self.touched = np.zeros(len(weights), np.uint8)

    def update(self, part: int, threads: int, lazy: bool, rate: float, step: int) -> int:
        """Adam on this thread's rows. Returns how many rows had a step."""
        bounds = np.linspace(0, len(self.weights), threads + 1).astype(int)
        first, last = int(bounds[part]), int(bounds[part + 1])
        biases = (self.bias, self.bias_gradient, self.bias_mean, self.bias_square)
        if len(self.bias) == len(self.weights):  # of the output layer: each neuron's bias goes with its row
            kernels.adam(first, last, lazy, rate, step, *(each[:, None] for each in biases), self.touched)
        elif part == 0:
            kernels.adam(0, 1, False, rate, step, *(each[None] for each in biases), self.touched)
        arrays = (self.weights, self.gradient, self.mean, self.square)
        changed = int(kernels.adam(first, last, lazy, rate, step, *arrays, self.touched))
        self.touched[first:last] = 0
        return changed


@dataclass(frozen=True)
class Sampling:
    """How active neurons are chosen (kernels.SAMPLINGS): at most `most` of topk and vanilla, those in at least `least`
    buckets of threshold, and random ones up to `fill`. `shuffled`: tables hold other neurons than were hashed.
    `centred`: the mean of all neurons is taken from each before it is hashed; no softmax changes by that. `rehash`:
    samples after which a rebuild draws new hash functions, as in the authors' code; 0: never."""

    name: str
    most: int
    least: int
    fill: int
    shuffled: bool = False
    centred: bool = False
    rehash: int = 0

    @property
    def hashes(self) -> bool:
        """Whether tables are asked."""
        return self.name not in ("random", "all")


class SlideNetwork:
    """Trains with threads that share weights and gradients without locks. `families`: hash functions by the number of
    the draw."""

    def __init__(
        self,
        weights: Weights,
        families: Callable[[int], Family],
        tables: Tables,
        sampling: Sampling,
        threads: int,
        seed: int,
        allocate: Allocate,
        lazy: bool = True,
    ) -> None:
        self.input = Layer(weights.first, weights.first_bias, allocate)
        self.output = Layer(weights.output, weights.output_bias, allocate)
        self.tables, self.sampling, self.threads, self.lazy = tables, sampling, threads, lazy
        self._families, self._draw, self._samples, self.family = families, 0, 0, families(0)
        self.pool = ThreadPoolExecutor(max(threads - 1, 1))
        self.steps, self.active, self.changed_rows, self._seed = 0, 0, 0, seed
        labels = len(weights.output)
        generator = np.random.default_rng([seed, 6])
        self.alias = (generator.permutation(labels) if sampling.shuffled else np.arange(labels)).astype(np.int32)
        self._scratch = [
            (
                np.zeros(labels, np.int16),
                np.empty(labels + 2, np.int32),
                np.empty(labels + 2, np.float32),
                generator.integers(1, 2**62, 1).astype(np.uint64),
            )
            for _ in range(threads)
        ]

    def rebuild(self) -> None:
        """Hashes all neurons anew, with new functions where those have served for `rehash` samples."""
        draw = self._samples // self.sampling.rehash if self.sampling.rehash else 0
        if draw != self._draw:
            self._draw, self.family = draw, self._families(draw)
        if self.sampling.hashes:
            rows = self.output.weights
            rows = rows - rows.mean(0) if self.sampling.centred else rows
            self.tables.rebuild(self.family, rows, self.pool, self.threads, self._seed + self.steps)

    def hidden(self, batch: Batch) -> np.ndarray:
        """Activations of the hidden layer, (rows, units)."""
        made = np.empty((len(batch.values), HIDDEN), np.float32)
        arrays = (batch.starts, batch.indices, batch.values, self.input.weights, self.input.bias, made)
        self._on_parts(len(made), lambda part, first, last: kernels.hidden_layer(first, last, *arrays))
        return made

    def codes(self, hidden: np.ndarray) -> np.ndarray:
        """Buckets of each row, (rows, tables)."""
        if not self.sampling.hashes:
            return np.zeros((len(hidden), 1), np.int32)
        return np.ascontiguousarray(self.family.codes(hidden).T)

    def step(self, batch: Batch, rate: float) -> float:
        """One step of Adam. Returns the mean loss over the active neurons. Counts `active`, of all rows."""
        hidden = self.hidden(batch)
        codes, delta, totals = self.codes(hidden), np.empty_like(hidden), np.zeros((self.threads, 2))
        how = np.array(
            [kernels.SAMPLINGS[self.sampling.name], self.sampling.most, self.sampling.least, self.sampling.fill]
        )
        output, first_layer = self.output, self.input
        layer = (output.weights, output.bias, output.gradient, output.bias_gradient, output.touched)
        buckets = (self.tables.neurons, self.tables.counts)
        below = (first_layer.gradient, first_layer.bias_gradient, first_layer.touched)

        def back(part: int, first: int, last: int) -> None:
            own = self._scratch[part]
            kernels.output_of_rows(
                first, last, how, batch.labels, buckets, codes, self.alias, own, hidden, layer, delta, totals[part]
            )
            kernels.input_gradient(first, last, batch.starts, batch.indices, batch.values, hidden, delta, *below)

        self._on_parts(len(hidden), back)
        self.steps += 1
        self._samples += len(hidden)
        changed = [0] * self.threads

        def update(part: int) -> None:
            first_layer.update(part, self.threads, self.lazy, rate, self.steps)
            changed[part] = output.update(part, self.threads, self.lazy, rate, self.steps)

        run_all(self.pool, update, self.threads)
        self.active += int(totals[:, 1].sum())
        self.changed_rows += sum(changed)
        return float(totals[:, 0].sum() / len(hidden))

    def _on_parts(self, rows: int, work: Callable[[int, int, int], None]) -> None:
        bounds = np.linspace(0, rows, self.threads + 1).astype(int)
        run_all(self.pool, lambda part: work(part, int(bounds[part]), int(bounds[part + 1])), self.threads)

    def weights(self) -> Weights:
        """Those of now."""
        return Weights(self.input.weights, self.input.bias, self.output.weights, self.output.bias)

    def close(self) -> None:
        """Ends its threads."""
        self.pool.shutdown()
