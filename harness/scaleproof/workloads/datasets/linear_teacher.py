"""Random inputs with labels that are a fixed linear function of them and noise: linear regression whose best error is
known."""

from __future__ import annotations

from functools import cache

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import BayesError, Dataset, Rows
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network

ROWS = Rows(inputs=999, classes=1, training=8192, test=1024)
# The constant of the function, the standard deviation of the noise (that of the labels without it is 1), and the seed
# of the function.
CONSTANT, NOISE, SEED = 0.5, 0.3, 4
# Share of the labels' variance that is noise.
BEST = NOISE**2 / (1 + NOISE**2)


@cache
def weights() -> np.ndarray:
    """Of the function, float32 (inputs,), of norm 1: the same in every launch."""
    drawn = np.random.default_rng(SEED).standard_normal(ROWS.inputs)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


class LinearTeacher(Table):
    """Standard normal inputs; labels float32."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        generator, count = np.random.default_rng([seed, 9]), ROWS.training + ROWS.test
        inputs = generator.standard_normal((count, ROWS.inputs), np.float32)
        noise = generator.standard_normal(count, np.float32)
        labels = inputs @ weights() + np.float32(CONSTANT) + np.float32(NOISE) * noise
        super().__init__(
            Batch(inputs.reshape(-1, *network.input_shape), labels), ROWS.test, minibatch, seed, rank, world_size
        )

    def findings(self) -> Findings:
        """See Source."""
        findings, inputs = Findings("synthetic linear_teacher"), self.rows.inputs.reshape(-1, ROWS.inputs)
        tables.generated(
            findings,
            f"numpy.random.default_rng([{self.seed}, 9]); standard normal inputs, labels a linear function of norm 1 "
            f"(seed {SEED}) with constant {CONSTANT} and normal noise of standard deviation {NOISE}",
        )
        tables.size(findings, self.rows.inputs.nbytes)
        tables.split(findings, self, ROWS.training, ROWS.test)
        constant = float((inputs.min(axis=0) == inputs.max(axis=0)).mean())
        findings.at_most("D3", "constant inputs", constant, tables.UNUSED, "share of inputs that never change")
        tables.no_graph(findings)
        findings.absent("D6", "density", "dense by construction")
        tables.alike(findings, self.rows)
        findings.absent("D8", "largest class", "labels are numbers")
        findings.absent("D9", "heavy tail", "normal by construction")
        for name, labels in (("order of the rows", self.rows.labels), ("order of training", self.epoch_labels())):
            _small(findings, "D10", f"{name}, correlation of neighbours", labels[1:], labels[:-1])
        shuffled = tables.shuffled(self.train, self.seed)
        _small(findings, "D11", "correlation on the null", _guessed(shuffled, self.test), self.test.labels)
        tables.normal(findings, "inputs", inputs)
        self._noise(findings, inputs)
        return findings

    def _noise(self, findings: Findings, inputs: np.ndarray) -> None:
        """D12: the labels are the declared function with the declared noise."""
        apart = self.rows.labels - inputs @ weights() - np.float32(CONSTANT)
        spread = 5 * NOISE / (2 * len(apart)) ** 0.5
        found = float(np.sqrt((apart.astype(float) ** 2).mean()))
        detail = "root of the mean square of what the function leaves; bound: 5 standard errors"
        findings.between("D12", "noise of the labels", found, NOISE - spread, NOISE + spread, detail)


def _guessed(train: Batch, test: Batch) -> np.ndarray:
    """Labels of test rows by the correlation of each input with the training labels: a regression that takes a ms."""
    inputs, centred = train.inputs.reshape(len(train.labels), -1), train.labels - train.labels.mean()
    guessed: np.ndarray = test.inputs.reshape(len(test.labels), -1) @ (inputs.T @ centred)
    return guessed


def _small(findings: Findings, check: str, name: str, some: np.ndarray, others: np.ndarray) -> None:
    """A correlation that chance explains: within 5 standard errors of 0."""
    found = abs(float(np.corrcoef(some, others)[0, 1]))
    findings.at_most(check, name, found, tables.ORDER_SPREAD / len(some) ** 0.5, "bound: 5 standard errors")


PLUGIN = Dataset(
    name="linear_teacher",
    summary="999 random inputs, a number that is a fixed linear function of them with noise",
    implementation=LinearTeacher,
    rows=ROWS,
    target=0.8,
    bayes=BayesError(
        value=BEST, low=BEST, high=BEST, how="exact: share of the labels' variance that is noise, 0.09 of 1.09"
    ),
)
