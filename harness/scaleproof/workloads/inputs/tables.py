"""Checks that apply to every table of rows and labels."""

from __future__ import annotations

import math

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.dataset import Rows
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.inputs.statistics import FALSE_ALARM, ks_distance, ks_limit, last_level_cache, normal_cdf

SOURCE, ORDER_SPREAD = 0.5, 5.0
MOST_VALUES = 4096
"""Values of many that are compared with a distribution."""
UNUSED, ALIKE = 0.05, 0.01
"""Shares of inputs that never change, and of rows that stand there more than once, that need no warning."""
KEY = 16
"""Number of leading values by which samples are compared first."""
CHANCE = f"KS distance; exceeded by chance with probability {FALSE_ALARM:g}"
NO_GRAPH = "a table has no arcs"


def no_graph(findings: Findings) -> None:
    """D4 and D5 apply to graphs only."""
    findings.absent("D4", "dangling nodes", NO_GRAPH)
    findings.absent("D5", "largest components", NO_GRAPH)


def generated(findings: Findings, recipe: str) -> None:
    """D1 of data that a launch makes."""
    findings.add(
        "D1",
        "provenance",
        recipe,
        "generator, parameters and seed recorded",
        "pass",
        "made in every launch; nobody collected them",
    )


def tokens(findings: Findings, data: Table, declared: Rows) -> bool:
    """Checks of generated rows of tokens. False when values are out of range, since other checks cannot count them."""
    rows, vocabulary = data.rows, declared.vocabulary or 0
    size(findings, rows.inputs.nbytes)
    split(findings, data, declared.training, declared.test)
    if not (
        in_range(findings, "labels", rows.labels, declared.classes)
        and in_range(findings, "tokens", rows.inputs, vocabulary)
    ):
        return False
    findings.at_most(
        "D3",
        "unused tokens",
        1 - len(np.unique(rows.inputs)) / vocabulary,
        UNUSED,
        "share of the vocabulary that no row has",
    )
    findings.absent("D9", "heavy tail", "uniform by construction")
    _rows(findings, data)
    return True


def numbers(findings: Findings, data: Table, declared: Rows) -> bool:
    """Checks of generated rows of numbers, each with one label. False when labels are out of range."""
    rows = data.rows
    size(findings, rows.inputs.nbytes)
    split(findings, data, declared.training, declared.test)
    if not in_range(findings, "labels", rows.labels, declared.classes):
        return False
    constant = float((rows.inputs.min(axis=0) == rows.inputs.max(axis=0)).mean())
    findings.at_most("D3", "constant inputs", constant, UNUSED, "share of inputs that never change")
    findings.absent("D9", "heavy tail", "normal by construction")
    _rows(findings, data)
    largest_class(findings, rows.labels)
    null_of_centroids(findings, data.train, data.test, data.seed)
    return True


def _rows(findings: Findings, data: Table) -> None:
    """Checks of generated rows of any kind."""
    no_graph(findings)
    findings.absent("D6", "density", "dense by construction")
    alike(findings, data.rows)
    order(findings, "order of the rows", data.rows.labels)
    order(findings, "order of training", data.epoch_labels())


def normal(findings: Findings, name: str, values: np.ndarray) -> None:
    """D12: compares some of many values with the standard normal distribution."""
    some = np.sort(values.reshape(-1)[:: max(1, values.size // MOST_VALUES)][:MOST_VALUES].astype(float))
    distance = ks_distance(some, normal_cdf(some))
    findings.at_most("D12", f"{name} against the normal distribution", distance, ks_limit(len(some)), CHANCE)


def best_accuracy(findings: Findings, right: float, bayes: float, count: int) -> None:
    """D12: the classifier that knows the generator is as good on these rows as the declared Bayes error says."""
    spread = above_chance(1 - bayes, count) - (1 - bayes)
    findings.between(
        "D12",
        "accuracy of the best classifier",
        right,
        1 - bayes - spread,
        1 - bayes + spread,
        "1 - the Bayes error; bound: 5 standard errors",
    )


def alike(findings: Findings, rows: Batch) -> None:
    """D7: rows that stand there more than once."""
    share = repeated([rows.inputs]) / len(rows.inputs)
    findings.at_most("D7", "repeated rows", share, ALIKE, "share of rows that stand there more than once")


def largest_class(findings: Findings, labels: np.ndarray) -> None:
    """D8: the share of rows with the most frequent label."""
    findings.at_most("D8", "largest class", float(np.bincount(labels).max() / len(labels)), SOURCE, "share of rows")


def null_of_centroids(findings: Findings, train: Batch, test: Batch, seed: int, of_what: str = "") -> None:
    """D11: with shuffled labels the nearest class mean must be no better than chance."""
    real, null = centroid_accuracy(train, test), centroid_accuracy(shuffled(train, seed), test)
    limit = above_chance(float(np.bincount(test.labels).max() / len(test.labels)), len(test.labels))
    detail = f"accuracy of the nearest class mean{of_what} with labels shuffled; with the true ones {real:.3g}"
    findings.at_most("D11", "accuracy on the null", null, limit, detail)


def size(findings: Findings, nbytes: int) -> None:
    """D2: bytes, for information."""
    cache = last_level_cache()
    findings.absent(
        "D2",
        "bytes over last-level cache",
        "no claim rests on reading these data: what is timed is the network",
        nbytes / cache if cache else None,
    )


def in_range(findings: Findings, name: str, values: np.ndarray, count: int) -> bool:
    """D3: whether values are 0 to count - 1; other checks cannot count them if not."""
    lowest, highest = int(values.min()), int(values.max())
    findings.judge(
        "D3", name, f"{lowest} to {highest}", f"0 to {count - 1}", lowest >= 0 and highest < count, otherwise="fail"
    )
    return findings.findings[-1].outcome == "pass"


def split(findings: Findings, data: Table, training: int, test: int) -> None:
    """D2: numbers of training and test rows; D7: no row is in both sets."""
    rows = (len(data.train.labels), len(data.test.labels))
    findings.judge(
        "D2",
        "rows to train and to test",
        f"{rows[0]} and {rows[1]}",
        f"{training} and {test}",
        rows == (training, test),
        otherwise="fail",
    )
    shared = shared_rows(data.train.inputs, data.test.inputs)
    findings.judge(
        "D7",
        "rows shared by train and test",
        shared,
        "0",
        shared == 0,
        "rows of the test set that also stand in the training set",
        otherwise="fail",
    )


def order(findings: Findings, name: str, labels: np.ndarray) -> None:
    """D10: whether equal labels follow each other more often than by chance, as in sorted rows. Uses the first label of
    a row."""
    labels = labels.reshape(len(labels), -1)[:, 0]
    limit = above_chance(float((np.bincount(labels) ** 2).sum() / len(labels) ** 2), len(labels))
    detail = "share of rows with the label of the row before; bound: chance plus 5 standard errors"
    findings.at_most("D10", name, float((labels[1:] == labels[:-1]).mean()), limit, detail)


def uniform(findings: Findings, name: str, values: np.ndarray, count: int) -> None:
    """D12: compares values 0 to count - 1 with the uniform distribution."""
    shares = np.cumsum(np.bincount(values, minlength=count)) / len(values)
    apart = float(np.abs(shares - np.arange(1, count + 1) / count).max())
    findings.at_most("D12", f"{name} against the uniform distribution", apart, ks_limit(len(values)), CHANCE)


def shared_rows(first: np.ndarray, second: np.ndarray) -> int:
    """Number of rows of the second array that are also in the first, compared bit by bit."""
    return int(np.isin(as_rows(second), as_rows(first)).sum())


def as_rows(array: np.ndarray) -> np.ndarray:
    """Each row as one value that compares by its bytes."""
    flat = np.ascontiguousarray(array.reshape(len(array), -1))
    return flat.view(np.dtype((np.void, flat.shape[1] * flat.itemsize))).reshape(-1)


def repeated(arrays: list[np.ndarray]) -> int:
    """Number of repeated rows. Whole rows are compared only if leading values agree."""
    keys = np.concatenate([as_rows(array.reshape(len(array), -1)[:, :KEY]) for array in arrays])
    if len(np.unique(keys)) == len(keys):
        return 0
    rows = np.concatenate([as_rows(array) for array in arrays])
    return len(rows) - len(np.unique(rows))


def centroid_accuracy(train: Batch, test: Batch) -> float:
    """Share of test rows whose nearest class mean is that of their own class: a classifier that takes a ms."""
    classes = np.unique(train.labels)
    flat, rows = train.inputs.reshape(len(train.labels), -1), test.inputs.reshape(len(test.labels), -1)
    means = np.stack([flat[train.labels == label].mean(axis=0) for label in classes])
    distance = (means**2).sum(axis=1) - 2 * rows @ means.T
    return float((classes[distance.argmin(axis=1)] == test.labels).mean())


def shuffled(batch: Batch, seed: int) -> Batch:
    """The rows with shuffled labels."""
    return Batch(batch.inputs, np.random.default_rng([seed, 4]).permutation(batch.labels))


def above_chance(share: float, count: int) -> float:
    """A share expected by chance, plus 5 standard errors over `count` rows."""
    return share + ORDER_SPREAD * math.sqrt(share * (1 - share) / count)
