"""Training on real ranks: events, accuracy, what is kept, what goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import read_events
from scaleproof.programs import train
from scaleproof.rank.unsupervised_ranks import run_ranks
from tests.integration._training import case_of, launch

TWO = {"ranks": 2, "transport": "shm", "collective": "ring", "strategy": "sync_overlap"}


def learning(workload: str, **fields: Any) -> Any:
    return case_of(workload=workload, steps=300, learning_rate=0.1, evaluate_every=100, **(TWO | fields))


@pytest.mark.parametrize("workload", ["vgg_digits", "dnn_digits"])
def test_two_torch_workers_reach_95_percent_on_digits(workload: str, tmp_path: Path) -> None:
    outcome = launch(tmp_path, learning(workload))
    assert outcome.failed_checks == []
    assert outcome.count("test_accuracy") == 3
    assert outcome.count("test_accuracy", rank=1) == 0
    assert outcome.values("test_accuracy")[-1] >= 0.95


@pytest.mark.parametrize("workload", ["vgg_digits", "dnn_digits"])
def test_two_tensorflow_workers_reach_95_percent_on_digits(workload: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    outcome = launch(tmp_path, learning(workload, framework="tensorflow", strategy="sync"), timeout_s=120)
    assert outcome.failed_checks == []
    assert outcome.values("test_accuracy")[-1] >= 0.95


@pytest.mark.parametrize("strategy", ["sync", "sync_overlap"])
def test_every_part_of_every_step_is_recorded_on_every_rank(strategy: str, tmp_path: Path) -> None:
    outcome = launch(tmp_path, case_of(**(TWO | {"strategy": strategy}), steps=5, warmup=2))
    for rank, rows in enumerate(outcome.events):
        for event in ("input", "forward", "backward", "wait", "update", "step", "loss"):
            assert outcome.count(event, rank) == 7, event
        communication = rows[rows["event"] == b"communication"]
        assert set(communication["step"]) == set(range(7))
        assert communication["nbytes"].sum() >= 7 * 4 * 42_634
        assert (rows["warmup"] == (rows["step"] < 2)).all()
        assert (outcome.count("start", rank), outcome.count("end", rank)) == (1, 1)


def test_parts_of_a_step_lie_inside_it(tmp_path: Path) -> None:
    rows = launch(tmp_path, case_of(**TWO, steps=5)).events[0]
    for step in rows[rows["event"] == b"step"]:
        parts = rows[
            (rows["step"] == step["step"])
            & np.isin(rows["event"], [b"input", b"forward", b"backward", b"wait", b"communication", b"update"])
        ]
        assert parts["start_ns"].min() >= step["start_ns"]
        assert parts["end_ns"].max() <= step["end_ns"]


def test_the_recorded_loss_is_that_of_the_global_minibatch_on_every_rank(tmp_path: Path) -> None:
    outcome = launch(tmp_path, case_of(ranks=2, steps=3))
    assert np.array_equal(outcome.values("loss", 0), outcome.values("loss", 1))
    single = launch(tmp_path / "one", case_of(steps=3))
    assert outcome.values("loss")[0] == pytest.approx(single.values("loss")[0], abs=1e-6)


def test_reduced_networks_of_the_paper_train_with_finite_loss(tmp_path: Path) -> None:
    for workload, fields in {
        "vgg_a": {"workload.image_side": 32},
        "overfeat_fast": {"workload.image_side": 71},
        "cd_dnn": {},
    }.items():
        outcome = launch(
            tmp_path / workload,
            case_of(
                **TWO,
                **fields,
                workload=workload,
                width=0.05,
                data="synthetic",
                minibatch=4,
                steps=3,
                learning_rate=0.01,
            ),
        )
        assert outcome.failed_checks == []
        assert np.isfinite(outcome.values("loss")).all()


def test_large_networks_leave_no_parameters_behind(tmp_path: Path) -> None:
    assert launch(tmp_path / "small", case_of(steps=1)).parameters.size == 42_634
    fields = {"workload": "cd_dnn", "workload.width": 0.1, "workload.data": "synthetic", "minibatch": 2, "steps": 1}
    assert launch(tmp_path / "large", case_of(**fields)).parameters.size == 0


def test_a_loss_that_is_not_finite_ends_the_rank_with_diverged() -> None:
    def body(context: RankContext) -> None:
        with pytest.raises(train.Diverged, match="try a smaller learning_rate") as caught:
            train.run(context)
        assert caught.value.code == "diverged"
        assert len(read_events(context.recorder.path))

    assert run_ranks(
        case_of(workload="cd_dnn", width=0.01, data="synthetic", minibatch=2, learning_rate=1e10), body
    ) == [""]


def test_a_launch_imports_no_compiler_of_torch() -> None:
    """It would cost every rank a second of start-up."""

    def body(context: RankContext) -> None:
        train.run(context)
        assert "torch._dynamo" not in sys.modules or "torch._dynamo" in before

    before = set(sys.modules)
    assert run_ranks(case_of(steps=1), body) == [""]


def test_the_same_seed_gives_the_same_bits(tmp_path: Path) -> None:
    first, again = (launch(tmp_path / name, case_of(**TWO, steps=10)) for name in ("first", "again"))
    assert np.array_equal(first.parameters, again.parameters)
    assert np.array_equal(first.values("loss"), again.values("loss"))
