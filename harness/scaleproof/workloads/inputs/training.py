"""Checks D1 to D12 of training data: scikit-learn's digits and synthetic tensors. generated.py checks generated data
that can be learned."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from scaleproof.spec.case import TrainCase
from scaleproof.workloads.data import (
    DIGITS_FILE,
    DIGITS_SHA256,
    POOL,
    Batch,
    Data,
    Digits,
    Reversal,
    Topics,
    open_data,
    read_digits,
)
from scaleproof.workloads.datasets import DIGITS
from scaleproof.workloads.inputs import generated, tables
from scaleproof.workloads.inputs.findings import Finding, Findings, settle
from scaleproof.workloads.inputs.statistics import ks_distance, ks_limit, normal_cdf
from scaleproof.workloads.networks import Network

DIGITS_PER_CLASS = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
"""Published counts of the classes 0 to 9 of the test set: UCI repository, page of data set 80."""
PROVENANCE = (
    "Optical Recognition of Handwritten Digits, test set (UCI data set 80), as scikit-learn 1.9 holds it; E. "
    "Alpaydin and C. Kaynak, Bogazici University; "
    "donated July 1998, date of writing not stated; licence not stated in the file (scikit-learn's package: "
    "BSD-3-Clause); "
    "13 people wrote on preprinted forms, NIST's programs reduced 32x32 bitmaps to 8x8 counts"
)
UNUSED = 0.05
MOST_VALUES = 4096


def checked_data(case: TrainCase, network: Network, seed: int, rank: int, record: list[dict[str, Any]]) -> Data:
    """The case's data for one rank. Rank 0 checks them first and adds the findings to its `record`. Raises BadInput
    when nothing should be timed on them."""
    if rank != 0:
        return open_data(case, network, seed, rank)
    if case.workload_options.data == "digits":
        settle(record, [digits_file()])
    data = open_data(case, network, seed, rank)
    settle(record, training_inputs(case, network, data, seed))
    return data


def training_inputs(case: TrainCase, network: Network, data: Data, seed: int) -> list[Finding]:
    """All checks of a case's data as rank 0 holds them; a few ms."""
    if isinstance(data, Digits):
        return _in_order(_digits(data, seed))
    if isinstance(data, Reversal | Topics):
        return _in_order(generated.reversal(data, seed) if isinstance(data, Reversal) else generated.topics(data, seed))
    return _in_order(_synthetic(case, network, [data.batch(number) for number in range(POOL)], seed))


def _in_order(findings: Findings) -> list[Finding]:
    return sorted(findings.findings, key=lambda finding: int(finding.check[1:]))


def digits_file() -> Finding:
    """D1 of digits; fails when the file is not the pinned one."""
    findings, sha256 = Findings("digits"), hashlib.sha256(read_digits()).hexdigest()
    findings.judge(
        "D1", "sha256", sha256, DIGITS_SHA256, sha256 == DIGITS_SHA256, f"{DIGITS_FILE}: {PROVENANCE}", otherwise="fail"
    )
    return findings.findings[0]


def _digits(data: Digits, seed: int) -> Findings:
    findings = Findings("digits")
    labels, train, test = data.rows.labels, data.train, data.test
    if not tables.in_range(findings, "labels", labels, len(DIGITS_PER_CLASS)):
        return findings
    _table(findings, data.rows.inputs.reshape(len(labels), -1), labels)
    tables.split(findings, data, DIGITS.training, DIGITS.test)
    findings.absent("D7", "leakage by time", "the rows carry no time")
    findings.absent(
        "D8",
        "largest writer",
        "13 people wrote the digits, the file does not say who wrote which: writers are in training and test set alike",
    )
    tables.order(findings, "order of the file", labels)
    tables.order(findings, "order of training", data.epoch_labels())
    real, null = tables.centroid_accuracy(train, test), tables.centroid_accuracy(tables.shuffled(train, seed), test)
    chance = float(np.bincount(test.labels).max() / len(test.labels))
    limit = tables.above_chance(chance, len(test.labels))
    detail = f"accuracy of the nearest class mean with labels shuffled; with the true ones {real:.3g}"
    findings.at_most("D11", "accuracy on the null", null, limit, detail)
    counts = np.bincount(labels, minlength=len(DIGITS_PER_CLASS))
    apart = float(np.abs(np.cumsum(counts - np.array(DIGITS_PER_CLASS))).max() / len(labels))
    findings.at_most(
        "D12",
        "labels against the published counts",
        apart,
        0.0,
        "real data, nothing is generated; KS distance of the labels",
    )
    return findings


def _table(findings: Findings, images: np.ndarray, labels: np.ndarray) -> None:
    """Checks that need only the file."""
    findings.judge(
        "D2", "rows", len(labels), f"{sum(DIGITS_PER_CLASS)}", len(labels) == sum(DIGITS_PER_CLASS), otherwise="fail"
    )
    tables.size(findings, images.nbytes)
    findings.at_most(
        "D3",
        "constant inputs",
        float((images.min(axis=0) == images.max(axis=0)).mean()),
        UNUSED,
        "share of pixels that never change",
    )
    tables.no_graph(findings)
    findings.absent(
        "D6",
        "density",
        "dense images; the value is the share of pixels that are not blank",
        float((images > -1).mean()),
    )
    findings.at_most(
        "D7",
        "repeated rows",
        1 - len(np.unique(tables.as_rows(images))) / len(images),
        0.01,
        "share of images that stand there more than once",
    )
    findings.at_most(
        "D8", "largest class", float(np.bincount(labels).max() / len(labels)), tables.SOURCE, "share of rows"
    )
    findings.absent("D9", "heavy tail", "10 classes of equal size are no tail")


def _synthetic(case: TrainCase, network: Network, pool: list[Batch], seed: int) -> Findings:
    name = f"synthetic {case.workload}"
    findings, labels = Findings(name), np.concatenate([batch.labels for batch in pool])
    drawn = "standard_normal float32" if network.vocabulary is None else f"integers below {network.vocabulary},"
    recipe = (
        f"synthetic: numpy.random.default_rng([{seed}, minibatch, sample]); inputs {drawn} "
        f"{network.input_shape}, labels integers below"
    )
    findings.add(
        "D1",
        "provenance",
        f"{recipe} {network.classes}",
        "generator, parameters and seed recorded",
        "pass",
        "made in every launch; nobody collected them",
    )
    expected = POOL * (case.batch)
    findings.judge("D2", "rows of rank 0", len(labels), f"{expected}", len(labels) == expected, otherwise="fail")
    tables.size(findings, sum(batch.inputs.nbytes for batch in pool))
    if not tables.in_range(findings, "labels", labels, network.classes):
        return findings
    findings.absent(
        "D3",
        "unused labels",
        "labels of synthetic data say nothing, and the last layer is dense",
        1 - len(np.unique(labels)) / network.classes,
    )
    tables.no_graph(findings)
    findings.absent("D6", "density", "dense by construction")
    same = tables.repeated([batch.inputs for batch in pool])
    findings.judge("D7", "repeated rows", same, "0", same == 0, "samples of rank 0 that are alike")
    findings.absent("D7", "rows shared by train and test", "there is no test set")
    findings.absent("D8", "largest source", "one generator")
    findings.absent("D9", "heavy tail", "normal inputs and uniform labels by construction")
    tables.order(findings, "order of training", labels)
    findings.absent(
        "D11",
        "null",
        "labels are independent of the inputs: these data are a null themselves, and nothing is concluded from "
        "their losses",
    )
    _marginals(findings, network, pool, labels.reshape(-1))
    return findings


def _marginals(findings: Findings, network: Network, pool: list[Batch], labels: np.ndarray) -> None:
    if network.vocabulary is None:
        values = np.concatenate(
            [batch.inputs.reshape(-1)[:: max(1, batch.inputs.size * len(pool) // MOST_VALUES)] for batch in pool]
        )[:MOST_VALUES]
        values = np.sort(values.astype(float))
        distance, limit = ks_distance(values, normal_cdf(values)), ks_limit(len(values))
        findings.at_most("D12", "synthetic inputs against the normal distribution", distance, limit, tables.CHANCE)
    else:
        tables.uniform(
            findings,
            "synthetic inputs",
            np.concatenate([batch.inputs.reshape(-1) for batch in pool]),
            network.vocabulary,
        )
    tables.uniform(findings, "synthetic labels", labels, network.classes)
