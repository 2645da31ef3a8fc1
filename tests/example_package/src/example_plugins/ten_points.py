"""A data set: ten points, one for each class, and rows around them."""

from __future__ import annotations

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import Dataset, Rows
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network

ROWS = Rows(inputs=64, classes=10, training=512, test=128)


class TenPoints(Table):
    """Normal noise around a corner of the cube."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        generator = np.random.default_rng(seed)
        labels = generator.integers(ROWS.classes, size=ROWS.training + ROWS.test)
        inputs = generator.standard_normal((len(labels), ROWS.inputs), np.float32) + 2 * np.eye(10, 64)[labels]
        rows = Batch(inputs.astype(np.float32).reshape(-1, *network.input_shape), labels)
        super().__init__(rows, ROWS.test, minibatch, seed, rank, world_size)

    def findings(self) -> Findings:
        """The checks that can fail."""
        findings = Findings("synthetic ten_points")
        tables.generated(findings, f"numpy.random.default_rng({self.seed}), a corner of the cube for each class")
        tables.split(findings, self, ROWS.training, ROWS.test)
        tables.in_range(findings, "labels", self.rows.labels, ROWS.classes)
        return findings


PLUGIN = Dataset(name="ten_points", summary="rows around ten points", implementation=TenPoints, rows=ROWS, target=0.9)
