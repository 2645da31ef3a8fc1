"""Checks D1 to D12 of generated data that can be learned: sequences to reverse, and sentences about topics. Both are
made from the launch's seed."""

from __future__ import annotations

import numpy as np

from scaleproof.workloads.data import Batch, Reversal, Topics
from scaleproof.workloads.datasets import DATA_SETS, OWN_SHARE, REVERSED_LENGTH, REVERSED_TOKENS, TOPIC_COUNT, WORDS
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import Findings

UNUSED, ALIKE = 0.05, 0.01


def reversal(data: Reversal, seed: int) -> Findings:
    """Checks sequences of tokens whose labels are the reversed sequences."""
    findings = Findings("synthetic reversal")
    recipe = (
        f"numpy.random.default_rng([{seed}, 5]).choice of {REVERSED_TOKENS}^{REVERSED_LENGTH} sequences without "
        "replacement, their digits as tokens"
    )
    if not _table(findings, "reversal", data, seed, recipe):
        return findings
    findings.absent("D8", "largest class", "every position has a label of its own")
    right = _reversed_share(data.rows)
    findings.judge(
        "D12", "labels are the sequence backwards", right, "1", right == 1.0, "share of labels", otherwise="fail"
    )
    null = _reversed_share(tables.shuffled(data.rows, seed))
    limit = tables.above_chance(1 / REVERSED_TOKENS, data.rows.labels.size)
    findings.at_most(
        "D11",
        "labels that are right on the null",
        null,
        limit,
        "share that is the sequence backwards after the rows' labels were shuffled",
    )
    tables.uniform(findings, "tokens", data.rows.labels.reshape(-1), REVERSED_TOKENS)
    return findings


def topics(data: Topics, seed: int) -> Findings:
    """Checks sentences whose words depend on their topic."""
    findings = Findings("synthetic topics")
    recipe = (
        f"numpy.random.default_rng([{seed}, 6]); {TOPIC_COUNT} topics with {WORDS // TOPIC_COUNT} words of "
        f"their own; a word comes from them with probability {OWN_SHARE}"
    )
    if not _table(findings, "topics", data, seed, recipe):
        return findings
    labels = data.rows.labels
    findings.at_most(
        "D8", "largest class", float(np.bincount(labels).max() / len(labels)), tables.SOURCE, "share of rows"
    )
    train, test = _counted(data.train), _counted(data.test)
    real, null = tables.centroid_accuracy(train, test), tables.centroid_accuracy(tables.shuffled(train, seed), test)
    limit = tables.above_chance(float(np.bincount(test.labels).max() / len(test.labels)), len(test.labels))
    detail = f"accuracy of the nearest class mean of word counts with labels shuffled; with the true ones {real:.3g}"
    findings.at_most("D11", "accuracy on the null", null, limit, detail)
    own = float((data.rows.inputs // (WORDS // TOPIC_COUNT) == labels[:, None]).mean())
    expected = OWN_SHARE + (1 - OWN_SHARE) / TOPIC_COUNT
    spread = tables.above_chance(expected, data.rows.inputs.size) - expected
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


def _table(findings: Findings, name: str, data: Reversal | Topics, seed: int, recipe: str) -> bool:
    """Checks that apply to both data sets. False when values are out of range, since other checks cannot count them."""
    declared, rows = DATA_SETS[name], data.rows
    findings.add(
        "D1",
        "provenance",
        recipe,
        "generator, parameters and seed recorded",
        "pass",
        "made in every launch; nobody collected them",
    )
    tables.size(findings, rows.inputs.nbytes)
    tables.split(findings, data, declared.training, declared.test)
    vocabulary = declared.vocabulary or 0
    if not (
        tables.in_range(findings, "labels", rows.labels, declared.classes)
        and tables.in_range(findings, "tokens", rows.inputs, vocabulary)
    ):
        return False
    findings.at_most(
        "D3",
        "unused tokens",
        1 - len(np.unique(rows.inputs)) / vocabulary,
        UNUSED,
        "share of the vocabulary that no row has",
    )
    tables.no_graph(findings)
    findings.absent("D6", "density", "dense by construction")
    findings.at_most(
        "D7",
        "repeated rows",
        tables.repeated([rows.inputs]) / len(rows.inputs),
        ALIKE,
        "share of rows that stand there more than once",
    )
    findings.absent("D9", "heavy tail", "uniform by construction")
    tables.order(findings, "order of the rows", rows.labels)
    tables.order(findings, "order of training", data.epoch_labels())
    return True


def _reversed_share(rows: Batch) -> float:
    return float((rows.labels == rows.inputs[:, :REVERSED_LENGTH][:, ::-1]).mean())


def _counted(batch: Batch) -> Batch:
    """How often each word occurs in each sentence."""
    counts = np.zeros((len(batch.inputs), WORDS), np.float32)
    np.add.at(counts, (np.arange(len(counts))[:, None], batch.inputs), 1)
    return Batch(counts, batch.labels)
