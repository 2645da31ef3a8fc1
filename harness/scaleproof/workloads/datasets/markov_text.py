"""Text of a made-up language: which token comes next depends on the one before it."""

from __future__ import annotations

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import BayesError, Dataset, Rows
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network

# Tokens of a sample, and of the language.
LENGTH, TOKENS = 16, 32
# Shares with which each of a token's likely successors follows it; else any token does.
SHARES = (0.4, 0.25, 0.15, 0.1)
LIKELIEST = SHARES[0] + (1 - sum(SHARES)) / TOKENS
ROWS = Rows(inputs=LENGTH, vocabulary=TOKENS, classes=TOKENS, label_shape=(LENGTH,), training=7680, test=512)


def successors() -> np.ndarray:
    """The likely successors of each token, (4, 32): those that follow it on a circle. So every token is equally
    frequent."""
    circle = np.random.default_rng([0, 7]).permutation(TOKENS)
    found = np.empty((len(SHARES), TOKENS), np.int64)
    for number in range(len(SHARES)):
        found[number, circle] = np.roll(circle, -1 - number)
    return found


class MarkovText(Table):
    """Sequences of a Markov chain of first order. Labels are the tokens that come next."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        generator, count = np.random.default_rng([seed, 7]), ROWS.training + ROWS.test
        text, follows = np.empty((count, LENGTH + 1), np.int64), successors()
        text[:, 0] = generator.integers(TOKENS, size=count)
        for place in range(LENGTH):
            which = np.searchsorted(np.cumsum(SHARES), generator.random(count), side="right")
            likely = follows[np.minimum(which, len(SHARES) - 1), text[:, place]]
            text[:, place + 1] = np.where(which < len(SHARES), likely, generator.integers(TOKENS, size=count))
        rows = Batch(np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:]))
        super().__init__(rows, ROWS.test, minibatch, seed, rank, world_size)

    def findings(self) -> Findings:
        """See Source."""
        findings = Findings("synthetic text")
        tables.generated(
            findings,
            f"numpy.random.default_rng([{self.seed}, 7]); {len(SHARES)} likely successors of each of {TOKENS} tokens, "
            f"with probabilities {', '.join(map(str, SHARES))}",
        )
        if not tables.tokens(findings, self, ROWS):
            return findings
        findings.absent("D8", "largest class", "every position has a label of its own")
        tables.best_accuracy(findings, _likeliest_share(self.rows), 1 - LIKELIEST, self.rows.labels.size)
        findings.at_most(
            "D11",
            "labels that are right on the null",
            _likeliest_share(tables.shuffled(self.rows, self.seed)),
            tables.above_chance(1 / TOKENS, self.rows.labels.size),
            "share that is the likeliest successor after the rows' labels were shuffled",
        )
        tables.uniform(findings, "first labels", self.rows.labels[:, 0], TOKENS)
        return findings


def _likeliest_share(rows: Batch) -> float:
    """Share of labels that are the likeliest successor of their inputs."""
    return float((rows.labels == successors()[0][rows.inputs]).mean())


PLUGIN = Dataset(
    name="markov_text",
    summary="made-up text, to be continued by a token",
    implementation=MarkovText,
    rows=ROWS,
    target=0.36,
    bayes=BayesError(
        value=1 - LIKELIEST,
        low=1 - LIKELIEST,
        high=1 - LIKELIEST,
        how="exact: the likeliest successor follows with a probability of 0.4 + 0.1 / 32",
    ),
)
