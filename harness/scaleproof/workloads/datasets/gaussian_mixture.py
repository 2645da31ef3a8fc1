"""A mixture of Gaussians with several clusters per class, whose exact posterior gives the Bayes error."""

from __future__ import annotations

from functools import cache

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import BayesError, Dataset, Rows
from scaleproof.workloads.datasets import half_resolution
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network

ROWS = Rows(inputs=half_resolution.PIXELS, classes=10, training=32768, test=4096)
# Clusters of each class, the standard deviation of their centres (the rows' own is 1), and the seed of the centres.
CLUSTERS, SPREAD, SEED = 8, 1.0, 2
# Rows on which the Bayes error below was computed, and their seed.
BAYES_ROWS, BAYES_SEED = 2**20, 3
BAYES = BayesError(
    value=0.1515,
    low=0.1511,
    high=0.1519,
    how="mean of 1 - the largest exact posterior over 1,048,576 rows (seed 3), with its 95 % interval",
)


@cache
def centres() -> np.ndarray:
    """Of all clusters, float64 (clusters, pixels); cluster c is of class c modulo 10. The same in every launch."""
    shape = (CLUSTERS * ROWS.classes, half_resolution.COARSE_PIXELS)
    return half_resolution.enlarged(np.random.default_rng(SEED).standard_normal(shape) * SPREAD)


def draw(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images float32 (n, pixels) and their clusters."""
    clusters = generator.integers(len(centres()), size=count)
    images = generator.standard_normal((count, ROWS.inputs), np.float32)
    images += centres()[clusters].astype(np.float32)
    return images, clusters


def posterior(images: np.ndarray) -> np.ndarray:
    """Probability of every class for given images, (n, classes)."""
    coarse, means = half_resolution.reduced(images), half_resolution.reduced(centres())
    exponent = coarse @ means.T - (means**2).sum(axis=1) / 2
    likelihood = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    of_classes = likelihood.reshape(len(images), CLUSTERS, ROWS.classes).sum(axis=1)
    shares: np.ndarray = of_classes / of_classes.sum(axis=1, keepdims=True)
    return shares


def bayes_errors(rows: int, seed: int) -> np.ndarray:
    """The best classifier's probability to be wrong on each of so many rows; their mean is the Bayes error."""
    generator, chunk = np.random.default_rng(seed), 2**14
    return np.concatenate(
        [1 - posterior(draw(generator, min(chunk, rows - start))[0]).max(axis=1) for start in range(0, rows, chunk)]
    )


class GaussianMixture(Table):
    """Standard normal noise around the centre of a random cluster; the label is the cluster's class."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        images, self.clusters = draw(np.random.default_rng([seed, 8]), ROWS.training + ROWS.test)
        rows = Batch(images.reshape(-1, *network.input_shape), self.clusters % ROWS.classes)
        super().__init__(rows, ROWS.test, minibatch, seed, rank, world_size)

    def findings(self) -> Findings:
        """See Source."""
        findings = Findings("synthetic gaussian_mixture")
        tables.generated(
            findings,
            f"numpy.random.default_rng([{self.seed}, 8]); standard normal noise around {CLUSTERS} fixed centres for "
            f"each class (seed {SEED}), whose pixels at half the resolution have standard deviation {SPREAD}",
        )
        if not tables.numbers(findings, self, ROWS):
            return findings
        images = self.rows.inputs.reshape(-1, ROWS.inputs)
        tables.normal(findings, "distances from the centres", images - centres()[self.clusters])
        test = self.test.inputs.reshape(-1, ROWS.inputs)
        right = float((posterior(test).argmax(axis=1) == self.test.labels).mean())
        tables.best_accuracy(findings, right, BAYES.value, len(test))
        tables.uniform(findings, "labels", self.rows.labels, ROWS.classes)
        return findings


PLUGIN = Dataset(
    name="gaussian_mixture",
    summary="8x8 random images, 10 classes of 8 Gaussian clusters each",
    implementation=GaussianMixture,
    rows=ROWS,
    target=0.6,
    bayes=BAYES,
)
