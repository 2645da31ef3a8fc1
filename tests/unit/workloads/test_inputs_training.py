"""The checks of training data: valid data pass, each defect is detected, and data that must not be timed are
refused."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pytest

from scaleproof.core.record_schema import InputCheck
from scaleproof.spec.case import TrainCase
from scaleproof.workloads import data
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.data import Batch
from scaleproof.workloads.datasets import digits as digits_file
from scaleproof.workloads.datasets.digits import Digits, load_digits
from scaleproof.workloads.datasets.reversal import Reversal
from scaleproof.workloads.datasets.topics import Topics
from scaleproof.workloads.inputs import tables
from scaleproof.workloads.inputs.findings import BadInput, Finding, Findings, settle
from scaleproof.workloads.inputs.tables import shared_rows
from scaleproof.workloads.inputs.training import checked_data, training_inputs
from tests.short_form import train_case

SEED = 20


DIGITS = train_case(steps=3, workload="dnn_digits", data="digits")
SYNTHETIC = train_case(steps=3, workload="cd_dnn", width=0.1)
TOKENS = train_case(steps=3, workload="seq2seq")
REVERSAL = train_case(steps=3, workload="seq2seq", data="reversal")
TOPICS = train_case(steps=3, workload="sentence_embedding", data="topics")
TEXT = train_case(steps=3, workload="small_gpt", data="markov_text")


def digits() -> Digits:
    return Digits(network_of(DIGITS), DIGITS.minibatch, SEED, 0, 1)


def found_in(rows: Digits) -> list[Finding]:
    return training_inputs(rows)


def outcomes(findings: list[Finding]) -> dict[str, str]:
    return {
        f"{finding.check} {finding.name}": finding.outcome
        for finding in findings
        if finding.outcome not in ("pass", "not applicable")
    }


@pytest.mark.parametrize(
    "case",
    [DIGITS, SYNTHETIC, TOKENS, REVERSAL, TOPICS, TEXT],
    ids=["digits", "synthetic", "tokens", "reversal", "topics", "text"],
)
def test_every_check_is_made_and_sound_data_pass(case: TrainCase) -> None:
    record: list[dict[str, Any]] = []
    checked_data(case, network_of(case), SEED, 0, record)
    checks = [InputCheck(**finding) for finding in record]  # the record's own form
    assert {finding.check for finding in checks} == {f"D{number}" for number in range(1, 13)}
    assert outcomes([Finding(**finding) for finding in record]) == {}
    assert all(finding.detail for finding in checks if finding.outcome == "not applicable")


def test_synthetic_data_say_so_in_their_name_and_recipe() -> None:
    record: list[dict[str, Any]] = []
    checked_data(SYNTHETIC, network_of(SYNTHETIC), SEED, 0, record)
    assert all(finding["dataset"].startswith("synthetic") for finding in record)
    recipe = next(finding["value"] for finding in record if finding["check"] == "D1")
    assert "synthetic" in recipe and str(SEED) in recipe and "standard_normal" in recipe


def test_only_rank_0_checks_the_data() -> None:
    record: list[dict[str, Any]] = []
    checked_data(SYNTHETIC.model_copy(update={"ranks": 2}), network_of(SYNTHETIC), SEED, 1, record)
    assert record == []


def test_another_file_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits_file, "read_digits", lambda: b"<html>404</html>")
    with pytest.raises(BadInput, match="D1 sha256 of digits: [0-9a-f]{64}, must be 09f66e6d.*scikit-learn 1.9"):
        load_digits()
    record: list[dict[str, Any]] = []
    with pytest.raises(BadInput, match="D1 sha256 of digits"):
        checked_data(DIGITS, network_of(DIGITS), SEED, 0, record)
    assert [(finding["check"], finding["outcome"]) for finding in record] == [("D1", "fail")]


def test_the_pinned_file_has_the_published_counts() -> None:
    _, labels = load_digits()
    assert tuple(np.bincount(labels)) == digits_file.PER_CLASS
    assert gzip.decompress(digits_file.read_digits()).count(b"\n") == 1797


def test_no_image_of_digits_stands_in_training_and_test() -> None:
    images, _ = load_digits()
    assert len(np.unique(images, axis=0)) == len(images)
    for seed in range(5):
        rows = Digits(network_of(DIGITS), 64, seed, 0, 1)
        assert shared_rows(rows.train.inputs, rows.test.inputs) == 0


def test_a_shared_row_fails_with_its_number() -> None:
    rows = digits()
    rows.test.inputs[3] = rows.train.inputs[5]
    with pytest.raises(BadInput, match="D7 rows shared by train and test of digits: 1, must be 0"):
        settle([], found_in(rows))


def test_missing_rows_fail() -> None:
    rows = digits()
    rows.rows = Batch(rows.rows.inputs[:-7], rows.rows.labels[:-7])
    with pytest.raises(BadInput, match="D2 rows of digits: 1790, must be 1797"):
        settle([], found_in(rows))


def test_a_label_out_of_range_fails() -> None:
    rows = digits()
    rows.rows.labels[0] = 10
    with pytest.raises(BadInput, match="D3 labels of digits: 0 to 10, must be 0 to 9"):
        settle([], found_in(rows))


def test_rows_trained_in_the_order_of_their_labels_warn() -> None:
    rows = digits()
    rows.epoch_labels = lambda: np.sort(rows.train.labels)  # type: ignore[method-assign]
    assert outcomes(found_in(rows)) == {"D10 order of training": "warn"}


def test_constant_pixels_and_repeated_images_warn() -> None:
    rows = digits()
    rows.rows.inputs[:, 20:30] = -1
    rows.rows.inputs[100:200] = rows.rows.inputs[0]
    assert set(outcomes(found_in(rows))) == {"D3 constant inputs", "D7 repeated rows"}


def test_labels_that_leak_into_the_null_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "shuffled", lambda batch, seed: batch)
    assert outcomes(found_in(digits())) == {"D11 accuracy on the null": "warn"}


def test_synthetic_data_of_another_distribution_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of(SYNTHETIC)
    rows = data.open_data(SYNTHETIC, network, SEED, 0)
    rows.batch(0).inputs[:] = np.abs(rows.batch(0).inputs)
    rows.batch(0).labels[:] //= 4
    rows.batch(1).labels[:] //= 4
    assert set(outcomes(training_inputs(rows))) == {
        "D12 synthetic inputs against the normal distribution",
        "D12 synthetic labels against the uniform distribution",
    }


def test_a_repeated_synthetic_sample_warns() -> None:
    network = network_of(SYNTHETIC)
    rows = data.open_data(SYNTHETIC, network, SEED, 0)
    rows.batch(1).inputs[:] = rows.batch(0).inputs
    assert "D7 repeated rows" in outcomes(training_inputs(rows))


def test_findings_are_kept_when_one_fails() -> None:
    findings, record = Findings("rows"), list[dict[str, Any]]()
    findings.at_most("D3", "isolated", 0.2, 0.05)
    findings.judge("D2", "rows", 3, "4", False, otherwise="fail")
    with pytest.raises(BadInput, match="^D2 rows of rows: 3, must be 4$"):
        settle(record, findings.findings)
    assert [finding["outcome"] for finding in record] == ["warn", "fail"]
    assert BadInput.code == "bad_input"


def test_a_reversal_that_is_none_is_refused() -> None:
    network = network_of(REVERSAL)
    rows = Reversal(network, REVERSAL.minibatch, SEED, 0, 1)
    rows.rows.labels[7] = rows.rows.labels[7][::-1].copy()
    rows.rows.labels[7, 0] = (rows.rows.labels[7, 0] + 1) % network.classes
    by_check = outcomes(training_inputs(rows))
    assert by_check["D12 labels are the sequence backwards"] == "fail"


def test_sentences_that_do_not_tell_their_topic_warn() -> None:
    network = network_of(TOPICS)
    rows = Topics(network, TOPICS.minibatch, SEED, 0, 1)
    rows.rows.inputs[:] = np.random.default_rng(0).integers(256, size=rows.rows.inputs.shape)
    assert outcomes(training_inputs(rows)) == {"D12 words of the sentence's own topic": "warn"}
