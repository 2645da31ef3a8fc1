"""Random images with the labels of a fixed random network, some of them replaced by random ones."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import BayesError, Dataset, Rows
from scaleproof.workloads.datasets import half_resolution
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network

ROWS = Rows(inputs=half_resolution.PIXELS, classes=10, training=32768, test=4096)
# Share of labels that are drawn anew, uniformly among all classes.
NOISE = 0.1
BAYES = BayesError(
    value=NOISE * (1 - 1 / ROWS.classes),
    low=NOISE * (1 - 1 / ROWS.classes),
    high=NOISE * (1 - 1 / ROWS.classes),
    how="exact: a share of 0.1 of the labels is drawn anew among 10 classes",
)
# The teacher: directions that it reads, its hidden units, the gain before their tanh, its seed, and the images on which
# its outputs are brought to mean 0 and variance 1.
DIRECTIONS, HIDDEN, GAIN, SEED, SCALED_ON = 4, 64, 4.0, 1, 4096


class _Teacher(NamedTuple):
    """A network of one hidden layer on images at half the resolution."""

    hidden: np.ndarray
    bias: np.ndarray
    output: np.ndarray
    mean: np.ndarray
    spread: np.ndarray

    def outputs(self, images: np.ndarray) -> np.ndarray:
        """Before scaling, (n, classes)."""
        reached = np.tanh(GAIN * (half_resolution.reduced(images) @ self.hidden + self.bias))
        result: np.ndarray = reached @ self.output
        return result

    def labels(self, images: np.ndarray) -> np.ndarray:
        """The class with the largest output. In double precision, so that no machine decides otherwise."""
        result: np.ndarray = ((self.outputs(images) - self.mean) / self.spread).argmax(axis=1)
        return result


@cache
def teacher() -> _Teacher:
    """The same in every launch; only images and noise depend on the launch's seed."""
    generator = np.random.default_rng(SEED)
    square = generator.standard_normal((half_resolution.COARSE_PIXELS, half_resolution.COARSE_PIXELS))
    directions = np.linalg.qr(square)[0][:DIRECTIONS]
    mixed = generator.standard_normal((HIDDEN, DIRECTIONS)) / DIRECTIONS**0.5
    bias = generator.standard_normal(HIDDEN) * 0.5
    output = generator.standard_normal((ROWS.classes, HIDDEN)).T
    unscaled = _Teacher((mixed @ directions).T, bias, output, np.zeros(ROWS.classes), np.ones(ROWS.classes))
    sample = unscaled.outputs(generator.standard_normal((SCALED_ON, half_resolution.PIXELS)))
    return unscaled._replace(mean=sample.mean(axis=0), spread=sample.std(axis=0))


class NoisyTeacher(Table):
    """Standard normal pixels, labels of the teacher, NOISE of them drawn anew."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        generator, count = np.random.default_rng([seed, 7]), ROWS.training + ROWS.test
        images = generator.standard_normal((count, ROWS.inputs), np.float32)
        anew = generator.random(count) < NOISE
        labels = np.where(anew, generator.integers(ROWS.classes, size=count), teacher().labels(images))
        rows = Batch(images.reshape(-1, *network.input_shape), labels)
        super().__init__(rows, ROWS.test, minibatch, seed, rank, world_size)

    def findings(self) -> Findings:
        """See Source."""
        findings = Findings("synthetic noisy_teacher")
        tables.generated(
            findings,
            f"numpy.random.default_rng([{self.seed}, 7]); standard normal pixels, labels of a fixed network of "
            f"{DIRECTIONS} directions and {HIDDEN} hidden units (seed {SEED}), a share of {NOISE} of them drawn anew",
        )
        if not tables.numbers(findings, self, ROWS):
            return findings
        images = self.rows.inputs.reshape(-1, ROWS.inputs)
        tables.normal(findings, "pixels", images)
        right = float((teacher().labels(images) == self.rows.labels).mean())
        tables.best_accuracy(findings, right, BAYES.value, len(images))
        return findings


PLUGIN = Dataset(
    name="noisy_teacher",
    summary="8x8 random images, 10 classes of a fixed random network with label noise",
    implementation=NoisyTeacher,
    rows=ROWS,
    target=0.6,
    bayes=BAYES,
)
