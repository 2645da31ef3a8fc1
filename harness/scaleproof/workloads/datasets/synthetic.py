"""Random tensors in the shape of any network: for timing, since nothing can be learned from them."""

from __future__ import annotations

import numpy as np

from scaleproof.workloads.data import Batch, rank_slice
from scaleproof.workloads.dataset import Dataset
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network

POOL = 2
"""Number of synthetic global minibatches, which are made before timing; step s uses number s modulo POOL."""


def empty_batch(network: Network, samples: int) -> Batch:
    """Uninitialised memory for samples of a network."""
    inputs = np.empty((samples, *network.input_shape), np.float32 if network.vocabulary is None else np.int64)
    return Batch(inputs, np.empty((samples, *network.label_shape), np.int64))


class Synthetic:
    """Standard normal inputs or uniform tokens, with uniform labels. Every sample has its own random generator, so that
    all world sizes get the same minibatches."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        mine = range(minibatch)[rank_slice(minibatch, rank, world_size)]
        self._network, self._minibatch, self._seed, self._expected = network, minibatch, seed, POOL * len(mine)
        self._pool = [self._make(network, seed, number, mine) for number in range(POOL)]
        self.test = self.reference = empty_batch(network, 0)

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

    def of_rank(self, rank: int, world_size: int) -> Synthetic:
        """See Source."""
        return Synthetic(self._network, self._minibatch, self._seed, rank, world_size)

    def findings(self) -> Findings:
        """See Source."""
        findings, network = Findings(f"synthetic {self._network.name}"), self._network
        labels = np.concatenate([batch.labels for batch in self._pool])
        drawn = "standard_normal float32" if network.vocabulary is None else f"integers below {network.vocabulary},"
        tables.generated(
            findings,
            f"synthetic: numpy.random.default_rng([{self._seed}, minibatch, sample]); inputs {drawn} "
            f"{network.input_shape}, labels integers below {network.classes}",
        )
        findings.judge(
            "D2", "rows of rank 0", len(labels), f"{self._expected}", len(labels) == self._expected, otherwise="fail"
        )
        tables.size(findings, sum(batch.inputs.nbytes for batch in self._pool))
        if not tables.in_range(findings, "labels", labels, network.classes):
            return findings
        self._structure(findings, labels)
        findings.absent(
            "D11",
            "null",
            "labels are independent of the inputs: these data are a null themselves, and nothing is concluded from "
            "their losses",
        )
        self._marginals(findings, labels.reshape(-1))
        return findings

    def _structure(self, findings: Findings, labels: np.ndarray) -> None:
        findings.absent(
            "D3",
            "unused labels",
            "labels of synthetic data say nothing, and the last layer is dense",
            1 - len(np.unique(labels)) / self._network.classes,
        )
        tables.no_graph(findings)
        findings.absent("D6", "density", "dense by construction")
        same = tables.repeated([batch.inputs for batch in self._pool])
        findings.judge("D7", "repeated rows", same, "0", same == 0, "samples of rank 0 that are alike")
        findings.absent("D7", "rows shared by train and test", "there is no test set")
        findings.absent("D8", "largest source", "one generator")
        findings.absent("D9", "heavy tail", "normal inputs and uniform labels by construction")
        tables.order(findings, "order of training", labels)

    def _marginals(self, findings: Findings, labels: np.ndarray) -> None:
        pool, network = self._pool, self._network
        if network.vocabulary is None:
            stride = max(1, sum(batch.inputs.size for batch in pool) // tables.MOST_VALUES)
            values = np.concatenate([batch.inputs.reshape(-1)[::stride] for batch in pool])
            tables.normal(findings, "synthetic inputs", values)
        else:
            values = np.concatenate([batch.inputs.reshape(-1) for batch in pool])
            tables.uniform(findings, "synthetic inputs", values, network.vocabulary)
        tables.uniform(findings, "synthetic labels", labels, network.classes)


PLUGIN = Dataset(
    name="synthetic",
    summary="random tensors in the shape of any network: for timing, nothing can be learned",
    implementation=Synthetic,
)
