"""Sequences of tokens and the same backwards."""

from __future__ import annotations

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import BayesError, Dataset, Rows
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network

# Tokens of a sequence to be written backwards, and their number of values; one value more starts the answer.
LENGTH, TOKENS = 5, 8
ROWS = Rows(inputs=2 * LENGTH, vocabulary=TOKENS + 1, classes=TOKENS, label_shape=(LENGTH,), training=7680, test=512)


class Reversal(Table):
    """Different sequences of tokens, whose labels are the reversed sequences. An input is the sequence, a start token,
    and the answer without its last token."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        count = ROWS.training + ROWS.test
        numbers = np.random.default_rng([seed, 5]).choice(TOKENS**LENGTH, count, replace=False)
        sequences = np.stack([numbers // TOKENS**digit % TOKENS for digit in range(LENGTH)], 1)
        answers = np.ascontiguousarray(sequences[:, ::-1])
        inputs = np.concatenate([sequences, np.full((count, 1), TOKENS), answers[:, :-1]], 1)
        super().__init__(Batch(inputs, answers), ROWS.test, minibatch, seed, rank, world_size)

    def findings(self) -> Findings:
        """See Source."""
        findings = Findings("synthetic reversal")
        tables.generated(
            findings,
            f"numpy.random.default_rng([{self.seed}, 5]).choice of {TOKENS}^{LENGTH} sequences without "
            "replacement, their digits as tokens",
        )
        if not tables.tokens(findings, self, ROWS):
            return findings
        findings.absent("D8", "largest class", "every position has a label of its own")
        right = _reversed_share(self.rows)
        findings.judge(
            "D12", "labels are the sequence backwards", right, "1", right == 1.0, "share of labels", otherwise="fail"
        )
        findings.at_most(
            "D11",
            "labels that are right on the null",
            _reversed_share(tables.shuffled(self.rows, self.seed)),
            tables.above_chance(1 / TOKENS, self.rows.labels.size),
            "share that is the sequence backwards after the rows' labels were shuffled",
        )
        tables.uniform(findings, "tokens", self.rows.labels.reshape(-1), TOKENS)
        return findings


def _reversed_share(rows: Batch) -> float:
    return float((rows.labels == rows.inputs[:, :LENGTH][:, ::-1]).mean())


PLUGIN = Dataset(
    name="reversal",
    summary="sequences and the same backwards",
    implementation=Reversal,
    rows=ROWS,
    target=0.95,
    bayes=BayesError(value=0.0, low=0.0, high=0.0, how="exact: the sequence says its labels"),
)
