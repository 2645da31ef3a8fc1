"""D1 to D12 for what networks train on: scikit-learn's digits and synthetic tensors."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from harness.spec.case import TrainCase
from harness.workloads.data import DIGITS_FILE, DIGITS_SHA256, POOL, Batch, Data, Digits, open_data, read_digits
from harness.workloads.inputs.findings import Finding, Findings, settle
from harness.workloads.inputs.statistics import FALSE_ALARM, ks_distance, ks_limit, last_level_cache, normal_cdf
from harness.workloads.networks import DIGITS_TEST, DIGITS_TRAINING, Network

DIGITS_PER_CLASS = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
"""Published counts of the classes 0 to 9 of the test set: UCI repository, page of data set 80."""
PROVENANCE = (
    "Optical Recognition of Handwritten Digits, test set (UCI data set 80), as scikit-learn 1.9 holds it; E. Alpaydin and C. Kaynak, Bogazici University; "
    "donated July 1998, date of writing not stated; licence not stated in the file (scikit-learn's package: BSD-3-Clause); "
    "13 people wrote on preprinted forms, NIST's programs reduced 32x32 bitmaps to 8x8 counts"
)
UNUSED, SOURCE, ORDER_SPREAD = 0.05, 0.5, 5.0
KEY = 16
"""Leading values of a synthetic sample that tell it from another one."""
MOST_VALUES = 4096
NO_GRAPH = "a table has no arcs"


def checked_data(case: TrainCase, network: Network, seed: int, rank: int, record: list[dict[str, Any]]) -> Data:
    """The case's data for one rank. Rank 0 checks them first, into its `record`; BadInput when nothing should be timed on them."""
    if rank != 0:
        return open_data(case, network, seed, rank)
    if case.data == "digits":
        settle(record, [digits_file()])
    data = open_data(case, network, seed, rank)
    settle(record, training_inputs(case, network, data, seed))
    return data


def training_inputs(case: TrainCase, network: Network, data: Data, seed: int) -> list[Finding]:
    """All checks of a case's data as rank 0 holds them; a few ms."""
    if isinstance(data, Digits):
        return _in_order(_digits(data, seed))
    return _in_order(_synthetic(case, network, [data.batch(number) for number in range(POOL)], seed))


def _in_order(found: Findings) -> list[Finding]:
    return sorted(found.found, key=lambda finding: int(finding.check[1:]))


def _no_graph(found: Findings) -> None:
    found.absent("D4", "dangling nodes", NO_GRAPH)
    found.absent("D5", "largest components", NO_GRAPH)


def _bytes(found: Findings, nbytes: int) -> None:
    cache = last_level_cache()
    found.absent("D2", "bytes over last-level cache", "no claim rests on reading these data: what is timed is the network", nbytes / cache if cache else None)


def digits_file() -> Finding:
    """D1 of digits; failed when the file is not the one that is pinned."""
    found, sha256 = Findings("digits"), hashlib.sha256(read_digits()).hexdigest()
    found.judge("D1", "sha256", sha256, DIGITS_SHA256, sha256 == DIGITS_SHA256, f"{DIGITS_FILE}: {PROVENANCE}", otherwise="fail")
    return found.found[0]


def _digits(data: Digits, seed: int) -> Findings:
    found = Findings("digits")
    labels, train, test = data.rows.labels, data.train, data.test
    if not _labels(found, labels, len(DIGITS_PER_CLASS)):
        return found
    _table(found, data.rows.inputs.reshape(len(labels), -1), labels)
    found.judge("D2", "rows to train and to test", f"{len(train.labels)} and {len(test.labels)}", f"{DIGITS_TRAINING} and {DIGITS_TEST}",
                (len(train.labels), len(test.labels)) == (DIGITS_TRAINING, DIGITS_TEST), otherwise="fail")  # fmt: skip
    shared = shared_rows(train.inputs, test.inputs)
    found.judge("D7", "rows shared by train and test", shared, "0", shared == 0, "images of the test set that also stand in the training set", otherwise="fail")
    found.absent("D7", "leakage by time", "the rows carry no time")
    found.absent("D8", "largest writer", "13 people wrote the digits, the file does not say who wrote which: writers are in training and test set alike")
    _order(found, "order of the file", labels)
    _order(found, "order of training", data.epoch_labels())
    real, null = centroid_accuracy(train, test), centroid_accuracy(_shuffled(train, seed), test)
    chance = float(np.bincount(test.labels).max() / len(test.labels))
    limit = chance + ORDER_SPREAD * math.sqrt(chance * (1 - chance) / len(test.labels))
    detail = f"accuracy of the nearest class mean with labels shuffled; with the true ones {real:.3g}"
    found.at_most("D11", "accuracy on the null", null, limit, detail)
    counts = np.bincount(labels, minlength=len(DIGITS_PER_CLASS))
    apart = float(np.abs(np.cumsum(counts - np.array(DIGITS_PER_CLASS))).max() / len(labels))
    found.at_most("D12", "labels against the published counts", apart, 0.0, "real data, nothing is generated; KS distance of the labels")
    return found


def _table(found: Findings, images: np.ndarray, labels: np.ndarray) -> None:
    """What the file alone says."""
    found.judge("D2", "rows", len(labels), f"{sum(DIGITS_PER_CLASS)}", len(labels) == sum(DIGITS_PER_CLASS), otherwise="fail")
    _bytes(found, images.nbytes)
    found.at_most("D3", "constant inputs", float((images.min(axis=0) == images.max(axis=0)).mean()), UNUSED, "share of pixels that never change")
    _no_graph(found)
    found.absent("D6", "density", "dense images; the value is the share of pixels that are not blank", float((images > -1).mean()))
    found.at_most("D7", "repeated rows", 1 - len(np.unique(_rows(images))) / len(images), 0.01, "share of images that stand there more than once")
    found.at_most("D8", "largest class", float(np.bincount(labels).max() / len(labels)), SOURCE, "share of rows")
    found.absent("D9", "heavy tail", "10 classes of equal size are no tail")


def _labels(found: Findings, labels: np.ndarray, classes: int) -> bool:
    """Whether they are in range; the other checks count them and could not."""
    lowest, highest = int(labels.min()), int(labels.max())
    found.judge("D3", "labels", f"{lowest} to {highest}", f"0 to {classes - 1}", lowest >= 0 and highest < classes, otherwise="fail")
    return found.found[-1].outcome == "pass"


def _order(found: Findings, name: str, labels: np.ndarray) -> None:
    """Sorted labels repeat themselves; shuffled ones do so as often as chance says."""
    share = float((np.bincount(labels) ** 2).sum() / len(labels) ** 2)
    limit = share + ORDER_SPREAD * math.sqrt(share * (1 - share) / len(labels))
    found.at_most(
        "D10", name, float((labels[1:] == labels[:-1]).mean()), limit, "share of rows with the label of the row before; bound: chance plus 5 standard errors"
    )


def _synthetic(case: TrainCase, network: Network, pool: list[Batch], seed: int) -> Findings:
    name = f"synthetic {case.workload}"
    found, labels = Findings(name), np.concatenate([batch.labels for batch in pool])
    recipe = f"synthetic: numpy.random.default_rng([{seed}, minibatch, sample]); inputs standard_normal float32 {network.input_shape}, labels integers below"
    found.add(
        "D1", "provenance", f"{recipe} {network.classes}", "generator, parameters and seed recorded", "pass", "made in every launch; nobody collected them"
    )
    expected = POOL * (case.minibatch // case.ranks)
    found.judge("D2", "rows of rank 0", len(labels), f"{expected}", len(labels) == expected, otherwise="fail")
    _bytes(found, sum(batch.inputs.nbytes for batch in pool))
    if not _labels(found, labels, network.classes):
        return found
    found.absent("D3", "unused labels", "labels of synthetic data say nothing, and the last layer is dense", 1 - len(np.unique(labels)) / network.classes)
    _no_graph(found)
    found.absent("D6", "density", "dense by construction")
    same = _repeated([batch.inputs for batch in pool])
    found.judge("D7", "repeated rows", same, "0", same == 0, "samples of rank 0 that are alike")
    found.absent("D7", "rows shared by train and test", "there is no test set")
    found.absent("D8", "largest source", "one generator")
    found.absent("D9", "heavy tail", "normal inputs and uniform labels by construction")
    _order(found, "order of training", labels)
    found.absent("D11", "null", "labels are independent of the inputs: these data are a null themselves, and nothing is concluded from their losses")
    _marginals(found, pool, labels, network.classes)
    return found


def _marginals(found: Findings, pool: list[Batch], labels: np.ndarray, classes: int) -> None:
    values = np.concatenate([batch.inputs.reshape(-1)[:: max(1, batch.inputs.size * len(pool) // MOST_VALUES)] for batch in pool])[:MOST_VALUES]
    values = np.sort(values.astype(float))
    chance = f"KS distance; chance alone stays below but for {FALSE_ALARM:g}"
    found.at_most("D12", "synthetic inputs against the normal distribution", ks_distance(values, normal_cdf(values)), ks_limit(len(values)), chance)
    counts = np.bincount(labels, minlength=classes)
    apart = float(np.abs(np.cumsum(counts) / len(labels) - np.arange(1, classes + 1) / classes).max())
    found.at_most("D12", "synthetic labels against the uniform distribution", apart, ks_limit(len(labels)), chance)


def shared_rows(first: np.ndarray, second: np.ndarray) -> int:
    """Rows of the second array that the first has too, bit by bit."""
    return int(np.isin(_rows(second), _rows(first)).sum())


def _rows(array: np.ndarray) -> np.ndarray:
    """Each row as one value that compares by its bytes."""
    flat = np.ascontiguousarray(array.reshape(len(array), -1))
    return flat.view(np.dtype((np.void, flat.shape[1] * flat.itemsize))).reshape(-1)


def _repeated(arrays: list[np.ndarray]) -> int:
    """Rows that stand there more than once; whole rows are compared only where their first values agree."""
    keys = np.concatenate([_rows(array.reshape(len(array), -1)[:, :KEY]) for array in arrays])
    if len(np.unique(keys)) == len(keys):
        return 0
    rows = np.concatenate([_rows(array) for array in arrays])
    return len(rows) - len(np.unique(rows))


def centroid_accuracy(train: Batch, test: Batch) -> float:
    """Share of test rows whose nearest class mean is their own: a classifier that costs a ms."""
    classes = np.unique(train.labels)
    flat, rows = train.inputs.reshape(len(train.labels), -1), test.inputs.reshape(len(test.labels), -1)
    means = np.stack([flat[train.labels == label].mean(axis=0) for label in classes])
    distance = (means**2).sum(axis=1) - 2 * rows @ means.T
    return float((classes[distance.argmin(axis=1)] == test.labels).mean())


def _shuffled(batch: Batch, seed: int) -> Batch:
    return Batch(batch.inputs, np.random.default_rng([seed, 4]).permutation(batch.labels))
