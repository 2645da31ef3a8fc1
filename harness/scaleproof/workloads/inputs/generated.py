"""D1 to D12 for the generated data that can be learned: sequences to be reversed and sentences about topics. Both are
made from the launch's seed."""

from __future__ import annotations

import numpy as np

from scaleproof.workloads.data import Batch, Reversal, Topics
from scaleproof.workloads.datasets import DATA_SETS, OWN_SHARE, REVERSED_LENGTH, REVERSED_TOKENS, TOPIC_COUNT, WORDS
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings

UNUSED, ALIKE = 0.05, 0.01


def reversal(data: Reversal, seed: int) -> Findings:
    """Sequences of tokens and the same backwards."""
    found = Findings("synthetic reversal")
    recipe = (
        f"numpy.random.default_rng([{seed}, 5]).choice of {REVERSED_TOKENS}^{REVERSED_LENGTH} sequences without "
        "replacement, their digits as tokens"
    )
    if not _table(found, "reversal", data, seed, recipe):
        return found
    found.absent("D8", "largest class", "every position has a label of its own")
    right = _reversed_share(data.rows)
    found.judge(
        "D12", "labels are the sequence backwards", right, "1", right == 1.0, "share of labels", otherwise="fail"
    )
    null = _reversed_share(tables.shuffled(data.rows, seed))
    limit = tables.above_chance(1 / REVERSED_TOKENS, data.rows.labels.size)
    found.at_most(
        "D11",
        "labels that are right on the null",
        null,
        limit,
        "share that is the sequence backwards after the rows' labels were shuffled",
    )
    tables.uniform(found, "tokens", data.rows.labels.reshape(-1), REVERSED_TOKENS)
    return found


def topics(data: Topics, seed: int) -> Findings:
    """Sentences whose words tell their topic."""
    found = Findings("synthetic topics")
    recipe = (
        f"numpy.random.default_rng([{seed}, 6]); {TOPIC_COUNT} topics with {WORDS // TOPIC_COUNT} words of "
        f"their own; a word comes from them with probability {OWN_SHARE}"
    )
    if not _table(found, "topics", data, seed, recipe):
        return found
    labels = data.rows.labels
    found.at_most("D8", "largest class", float(np.bincount(labels).max() / len(labels)), tables.SOURCE, "share of rows")
    train, test = _counted(data.train), _counted(data.test)
    real, null = tables.centroid_accuracy(train, test), tables.centroid_accuracy(tables.shuffled(train, seed), test)
    limit = tables.above_chance(float(np.bincount(test.labels).max() / len(test.labels)), len(test.labels))
    detail = f"accuracy of the nearest class mean of word counts with labels shuffled; with the true ones {real:.3g}"
    found.at_most("D11", "accuracy on the null", null, limit, detail)
    own = float((data.rows.inputs // (WORDS // TOPIC_COUNT) == labels[:, None]).mean())
    expected = OWN_SHARE + (1 - OWN_SHARE) / TOPIC_COUNT
    spread = tables.above_chance(expected, data.rows.inputs.size) - expected
    found.between(
        "D12",
        "words of the sentence's own topic",
        own,
        expected - spread,
        expected + spread,
        "share of words; bound: 5 standard errors",
    )
    tables.uniform(found, "labels", labels, TOPIC_COUNT)
    return found


def _table(found: Findings, name: str, data: Reversal | Topics, seed: int, recipe: str) -> bool:
    """What holds for both; False when values are out of range, which the other checks could not count."""
    declared, rows = DATA_SETS[name], data.rows
    found.add(
        "D1",
        "provenance",
        recipe,
        "generator, parameters and seed recorded",
        "pass",
        "made in every launch; nobody collected them",
    )
    tables.size(found, rows.inputs.nbytes)
    tables.split(found, data, declared.training, declared.test)
    vocabulary = declared.vocabulary or 0
    if not (
        tables.in_range(found, "labels", rows.labels, declared.classes)
        and tables.in_range(found, "tokens", rows.inputs, vocabulary)
    ):
        return False
    found.at_most(
        "D3",
        "unused tokens",
        1 - len(np.unique(rows.inputs)) / vocabulary,
        UNUSED,
        "share of the vocabulary that no row has",
    )
    tables.no_graph(found)
    found.absent("D6", "density", "dense by construction")
    found.at_most(
        "D7",
        "repeated rows",
        tables.repeated([rows.inputs]) / len(rows.inputs),
        ALIKE,
        "share of rows that stand there more than once",
    )
    found.absent("D9", "heavy tail", "uniform by construction")
    tables.order(found, "order of the rows", rows.labels)
    tables.order(found, "order of training", data.epoch_labels())
    return True


def _reversed_share(rows: Batch) -> float:
    return float((rows.labels == rows.inputs[:, :REVERSED_LENGTH][:, ::-1]).mean())


def _counted(batch: Batch) -> Batch:
    """How often each word stands in each sentence."""
    counts = np.zeros((len(batch.inputs), WORDS), np.float32)
    np.add.at(counts, (np.arange(len(counts))[:, None], batch.inputs), 1)
    return Batch(counts, batch.labels)
