"""Checks that every table of rows and labels goes through, wherever it comes from."""

from __future__ import annotations

import math

import numpy as np

from scaleproof.workloads.data import Batch, Table
from scaleproof.workloads.inputs.findings import Findings
from scaleproof.workloads.inputs.statistics import FALSE_ALARM, ks_limit, last_level_cache

SOURCE, ORDER_SPREAD = 0.5, 5.0
KEY = 16
"""Leading values of a sample that tell it from another one."""
CHANCE = f"KS distance; chance alone stays below but for {FALSE_ALARM:g}"
NO_GRAPH = "a table has no arcs"


def no_graph(found: Findings) -> None:
    """D4 and D5 are about graphs."""
    found.absent("D4", "dangling nodes", NO_GRAPH)
    found.absent("D5", "largest components", NO_GRAPH)


def size(found: Findings, nbytes: int) -> None:
    """D2: bytes, shown."""
    cache = last_level_cache()
    found.absent(
        "D2",
        "bytes over last-level cache",
        "no claim rests on reading these data: what is timed is the network",
        nbytes / cache if cache else None,
    )


def in_range(found: Findings, name: str, values: np.ndarray, count: int) -> bool:
    """D3: whether they are 0 to count - 1; the other checks count them and could not."""
    lowest, highest = int(values.min()), int(values.max())
    found.judge(
        "D3", name, f"{lowest} to {highest}", f"0 to {count - 1}", lowest >= 0 and highest < count, otherwise="fail"
    )
    return found.found[-1].outcome == "pass"


def split(found: Findings, data: Table, training: int, test: int) -> None:
    """D2: rows to train and to test; D7: none in both."""
    have = (len(data.train.labels), len(data.test.labels))
    found.judge(
        "D2",
        "rows to train and to test",
        f"{have[0]} and {have[1]}",
        f"{training} and {test}",
        have == (training, test),
        otherwise="fail",
    )
    shared = shared_rows(data.train.inputs, data.test.inputs)
    found.judge(
        "D7",
        "rows shared by train and test",
        shared,
        "0",
        shared == 0,
        "rows of the test set that also stand in the training set",
        otherwise="fail",
    )


def order(found: Findings, name: str, labels: np.ndarray) -> None:
    """D10: sorted labels repeat themselves; shuffled ones do so as often as chance says. Of several labels a row, the
    first."""
    labels = labels.reshape(len(labels), -1)[:, 0]
    limit = above_chance(float((np.bincount(labels) ** 2).sum() / len(labels) ** 2), len(labels))
    detail = "share of rows with the label of the row before; bound: chance plus 5 standard errors"
    found.at_most("D10", name, float((labels[1:] == labels[:-1]).mean()), limit, detail)


def uniform(found: Findings, name: str, values: np.ndarray, count: int) -> None:
    """D12: values 0 to count - 1 against the uniform distribution."""
    shares = np.cumsum(np.bincount(values, minlength=count)) / len(values)
    apart = float(np.abs(shares - np.arange(1, count + 1) / count).max())
    found.at_most("D12", f"{name} against the uniform distribution", apart, ks_limit(len(values)), CHANCE)


def shared_rows(first: np.ndarray, second: np.ndarray) -> int:
    """Rows of the second array that the first has too, bit by bit."""
    return int(np.isin(as_rows(second), as_rows(first)).sum())


def as_rows(array: np.ndarray) -> np.ndarray:
    """Each row as one value that compares by its bytes."""
    flat = np.ascontiguousarray(array.reshape(len(array), -1))
    return flat.view(np.dtype((np.void, flat.shape[1] * flat.itemsize))).reshape(-1)


def repeated(arrays: list[np.ndarray]) -> int:
    """Rows that stand there more than once; whole rows are compared only where their first values agree."""
    keys = np.concatenate([as_rows(array.reshape(len(array), -1)[:, :KEY]) for array in arrays])
    if len(np.unique(keys)) == len(keys):
        return 0
    rows = np.concatenate([as_rows(array) for array in arrays])
    return len(rows) - len(np.unique(rows))


def centroid_accuracy(train: Batch, test: Batch) -> float:
    """Share of test rows whose nearest class mean is their own: a classifier that costs a ms."""
    classes = np.unique(train.labels)
    flat, rows = train.inputs.reshape(len(train.labels), -1), test.inputs.reshape(len(test.labels), -1)
    means = np.stack([flat[train.labels == label].mean(axis=0) for label in classes])
    distance = (means**2).sum(axis=1) - 2 * rows @ means.T
    return float((classes[distance.argmin(axis=1)] == test.labels).mean())


def shuffled(batch: Batch, seed: int) -> Batch:
    """The rows with labels of other rows."""
    return Batch(batch.inputs, np.random.default_rng([seed, 4]).permutation(batch.labels))


def above_chance(share: float, count: int) -> float:
    """Chance plus 5 standard errors of a share over so many rows."""
    return share + ORDER_SPREAD * math.sqrt(share * (1 - share) / count)
