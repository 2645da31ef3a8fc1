"""Sentences of random words about topics."""

from __future__ import annotations

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import Dataset, Rows
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.networks import Network

# Words of the language, topics of sentences, and words of a sentence.
WORDS, TOPIC_COUNT, SENTENCE_WORDS = 256, 8, 12
# Share of a sentence's words that are drawn from its topic's own words.
OWN_SHARE = 0.5
ROWS = Rows(inputs=SENTENCE_WORDS, vocabulary=WORDS, classes=TOPIC_COUNT, training=7680, test=512)


class Topics(Table):
    """Sentences of random words. Every topic has its own words; a share OWN_SHARE of a sentence's words is drawn from
    them, the others are drawn from all words."""

    def __init__(self, network: Network, minibatch: int, seed: int, rank: int, world_size: int) -> None:
        generator = np.random.default_rng([seed, 6])
        shape, own = (ROWS.training + ROWS.test, SENTENCE_WORDS), WORDS // TOPIC_COUNT
        labels = generator.integers(TOPIC_COUNT, size=shape[0])
        words = np.where(
            generator.random(shape) < OWN_SHARE,
            labels[:, None] * own + generator.integers(own, size=shape),
            generator.integers(WORDS, size=shape),
        )
        super().__init__(Batch(words, labels), ROWS.test, minibatch, seed, rank, world_size)

    def findings(self) -> Findings:
        """See Source."""
        findings = Findings("synthetic topics")
        tables.generated(
            findings,
            f"numpy.random.default_rng([{self.seed}, 6]); {TOPIC_COUNT} topics with {WORDS // TOPIC_COUNT} words of "
            f"their own; a word comes from them with probability {OWN_SHARE}",
        )
        if not tables.tokens(findings, self, ROWS):
            return findings
        labels = self.rows.labels
        tables.largest_class(findings, labels)
        tables.null_of_centroids(findings, _counted(self.train), _counted(self.test), self.seed, " of word counts")
        own = float((self.rows.inputs // (WORDS // TOPIC_COUNT) == labels[:, None]).mean())
        expected = OWN_SHARE + (1 - OWN_SHARE) / TOPIC_COUNT
        spread = tables.above_chance(expected, self.rows.inputs.size) - expected
        findings.between(
            "D12",
            "words of the sentence's own topic",
            own,
            expected - spread,
            expected + spread,
            "share of words; bound: 5 standard errors",
        )
        tables.uniform(findings, "labels", labels, TOPIC_COUNT)
        return findings


def _counted(batch: Batch) -> Batch:
    """How often each word occurs in each sentence."""
    counts = np.zeros((len(batch.inputs), WORDS), np.float32)
    np.add.at(counts, (np.arange(len(counts))[:, None], batch.inputs), 1)
    return Batch(counts, batch.labels)


PLUGIN = Dataset(
    name="topics",
    summary="sentences of 12 words, 8 topics",
    implementation=Topics,
    rows=ROWS,
    target=0.9,
)
