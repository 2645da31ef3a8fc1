"""Data sets: each is one file, fits its networks, passes its checks, and each defect of a generated one is detected."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from scaleproof.paths import PACKAGE
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.case_network import network_of, workloads_for
from scaleproof.workloads.data import Table, open_data, open_every_rank
from scaleproof.workloads.dataset import Dataset
from scaleproof.workloads.datasets import gaussian_mixture, linear_teacher, noisy_teacher
from scaleproof.workloads.inputs.training import checked_data, training_inputs
from tests.short_form import train_case

SEED = 20
NAMES = registry.names("dataset")
LEARNED = [name for name in NAMES if registry.get("dataset", name).target is not None]
GENERATED = ["gaussian_mixture", "noisy_teacher"]


def described(name: str) -> Dataset:
    dataset = registry.get("dataset", name)
    assert isinstance(dataset, Dataset)
    return dataset


def case_of(name: str, **fields: Any) -> TrainCase:
    rows = described(name).rows
    return train_case(workload=workloads_for(rows)[0] if rows else "dnn_digits", data=name, steps=3, **fields)


def opened(name: str) -> Any:
    return open_data(case_of(name), network_of(case_of(name)), SEED, 0)


def warned(data: Any) -> set[str]:
    findings = training_inputs(data)
    return {f"{found.check} {found.name}" for found in findings if found.outcome in ("warn", "fail")}


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_is_one_file_that_no_other_names(name: str) -> None:
    module = registry.module_of("dataset", name)
    assert module == f"scaleproof.workloads.datasets.{name}"
    naming = [
        path.name
        for path in (PACKAGE / "workloads").rglob("*.py")
        if f'"{name}"' in path.read_text() and path.stem != name
    ]
    assert naming == []


@pytest.mark.parametrize("name", LEARNED)
def test_sound_data_pass_every_check(name: str) -> None:
    record: list[dict[str, Any]] = []
    checked_data(case_of(name), network_of(case_of(name)), SEED, 0, record)
    assert {finding["check"] for finding in record} == {f"D{number}" for number in range(1, 13)}
    assert {finding["outcome"] for finding in record} == {"pass", "not applicable"}


@pytest.mark.parametrize("name", LEARNED)
def test_a_target_lies_between_chance_and_the_best_classifier(name: str) -> None:
    dataset = described(name)
    assert dataset.rows is not None and dataset.target is not None
    best = 1 - dataset.bayes.value if dataset.bayes else 1.0
    chance = 1 / dataset.rows.classes if dataset.rows.classes > 1 else 0.0  # of a regression: the mean explains nothing
    assert 2 * chance < dataset.target < best


@pytest.mark.parametrize("name", NAMES)
def test_ranks_of_one_process_get_what_ranks_of_their_own_get(name: str) -> None:
    case = case_of(name, ranks=4, transport="shm", collective="ring", strategy="sync")
    network = network_of(case)
    together = open_every_rank(case, network, SEED)
    for step in (0, 3, 5000):
        for rank, data in enumerate(together):
            alone = open_data(case, network, SEED, rank).batch(step)
            assert np.array_equal(data.batch(step).inputs, alone.inputs)
            assert np.array_equal(data.batch(step).labels, alone.labels)
    tables = [data for data in together if isinstance(data, Table)]
    assert all(np.shares_memory(table.train.inputs, tables[0].train.inputs) for table in tables)


@pytest.mark.parametrize("name", GENERATED)
def test_networks_of_8x8_images_take_generated_images(name: str) -> None:
    rows = described(name).rows
    assert rows is not None
    assert set(workloads_for(rows)) >= {"dnn_digits", "vgg_digits", "bn_digits"}


def test_a_misspelt_data_set_gives_the_nearest_name() -> None:
    with pytest.raises(ValidationError, match="unknown dataset 'noisy_teachers'; did you mean 'noisy_teacher'"):
        case_of("digits").changed({"workload.data": "noisy_teachers"})


def test_the_identity_of_a_case_is_that_of_its_text() -> None:
    case = train_case(workload="dnn_digits", data="digits")
    assert case.canonical() == (
        '{"arm":"a","experiment":"e","minibatch":64,"program":"train","ranks":1,"steps":1,"strategy":"local_only",'
        '"suite":"s","workload":{"data":"digits","name":"dnn_digits"}}'
    )
    assert train_case(workload="dnn_digits", data="synthetic").case_id == train_case(workload="dnn_digits").case_id


def test_the_error_of_the_best_classifier_of_a_mixture_is_the_declared_one() -> None:
    errors = gaussian_mixture.bayes_errors(2**16, SEED)
    bayes = gaussian_mixture.BAYES
    assert abs(errors.mean() - bayes.value) < 5 * errors.std() / len(errors) ** 0.5
    assert bayes.low < bayes.value < bayes.high


def test_noise_takes_a_share_of_the_teachers_labels() -> None:
    rows = opened("noisy_teacher").rows
    right = noisy_teacher.teacher().labels(rows.inputs.reshape(-1, 64)) == rows.labels
    assert right.mean() == pytest.approx(1 - noisy_teacher.BAYES.value, abs=0.01)
    assert noisy_teacher.BAYES.value == pytest.approx(0.09)


@pytest.mark.parametrize("name", GENERATED)
def test_labels_that_depend_on_nothing_warn(name: str) -> None:
    data = opened(name)
    labels = np.random.default_rng(0).permutation(data.rows.labels)
    data.rows = dataclasses.replace(data.rows, labels=labels)
    data.test = dataclasses.replace(data.test, labels=np.random.default_rng(0).permutation(data.test.labels))
    assert "D12 accuracy of the best classifier" in warned(data)


@pytest.mark.parametrize("name", GENERATED)
def test_inputs_of_another_distribution_warn(name: str) -> None:
    data = opened(name)
    data.rows.inputs[:] *= 1.2
    assert any("against the normal distribution" in line for line in warned(data))


@pytest.mark.parametrize("name", GENERATED)
def test_a_row_in_training_and_test_is_refused(name: str) -> None:
    data = opened(name)
    data.test.inputs[3] = data.train.inputs[5]
    assert "D7 rows shared by train and test" in warned(data)


def test_a_label_out_of_range_is_refused() -> None:
    data = opened("gaussian_mixture")
    data.rows.labels[0] = 10
    assert "D3 labels" in warned(data)


def test_the_function_that_makes_a_regressions_labels_explains_all_but_the_noise() -> None:
    rows = opened("linear_teacher").rows
    left = rows.labels - rows.inputs @ linear_teacher.weights() - linear_teacher.CONSTANT
    bayes = linear_teacher.PLUGIN.bayes
    assert bayes is not None and left.var() / rows.labels.var() == pytest.approx(bayes.value, rel=0.05)


def test_defects_of_a_regression_warn() -> None:
    data = opened("linear_teacher")
    data.rows.labels[:] = np.sort(data.rows.labels)
    assert warned(data) >= {"D10 order of the rows, correlation of neighbours", "D12 noise of the labels"}
    data = opened("linear_teacher")
    data.rows.inputs[:] *= 1.5
    assert "D12 inputs against the normal distribution" in warned(data)
    data = opened("linear_teacher")
    data.test.inputs[3] = data.train.inputs[5]
    assert "D7 rows shared by train and test" in warned(data)
