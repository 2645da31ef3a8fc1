"""Strategies that are programs of each rank: the same code in processes and in virtual time, on real gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plan import PlannedLaunch
from tests.integration.launches import launches
from tests.short_form import train_case

STEPS, WARMUP = 6, 1
DIGITS: dict[str, Any] = {
    "transport": "tcp",
    "workload": "dnn_digits",
    "data": "digits",
    "minibatch": 48,
    "steps": STEPS,
    "warmup": WARMUP,
    "learning_rate": 0.05,
    "evaluate_every": 3,
}
VIRTUAL: dict[str, Any] = {
    "fabric": {"name": "simulated", "link_mbit": 10_000, "mathematics": "alone"},
    "compute": {"name": "real", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.5},
}
STRATEGIES: list[dict[str, Any]] = [
    {"name": "server"},
    {"name": "server", "bound": 1, "dedicated_servers": 1},
    {"name": "server", "update": "together", "backup": 1},
    {"name": "gossip"},
    {"name": "gossip", "form": "push", "draws": "all"},
    {"name": "gossip", "form": "push_pull", "averaged": "before_step", "tau": 2},
    {"name": "elastic_averaging"},
    {"name": "elastic_averaging", "momentum": "nesterov", "exchange": "parameters", "order": "moved_first"},
    {"name": "downpour", "tau": 2},
    {"name": "push_sum"},
    {"name": "triggered_gossip", "theta": 0.05},
    {"name": "local_sgd", "tau": 2},
    {"name": "probabilistic_barrier", "sample": 1},
    {"name": "cut_off", "predictor": "static", "share": 0.5},
    {"name": "cut_off", "predictor": "per_worker"},
    {"name": "cut_off", "predictor": "oracle"},
    {"name": "job_server", "epoch_steps": 3},
    {"name": "job_server", "gradients": "through_server"},
    {"name": "job_server", "handshakes": "each_tensor"},
]


def launched(folder: Path, *strategies: dict[str, Any], **fields: Any) -> list[tuple[Record, pd.DataFrame]]:
    """Real launches, in the order of the strategies."""
    cases = [train_case(**{**DIGITS, "strategy": each, "arm": f"a{n}", **fields}) for n, each in enumerate(strategies)]
    run_plan(launches(cases), folder, size="ci", deadline_s=120.0)
    store = Store(folder)
    found = {record.case_id: record for record in store.records()}
    return [(found[case.case_id], store.samples(found[case.case_id]).to_pandas()) for case in cases]


def predicted(folder: Path, strategy: dict[str, Any], **fields: Any) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """Checks and samples in virtual time, with the seed of the first real launch."""
    case = train_case(**{**DIGITS, **VIRTUAL, "strategy": strategy, **fields})
    prediction = Predictor(folder).predict(PlannedLaunch(case, 0, 1000, 0))
    return prediction.checks, prediction.samples.to_pandas()


def values(samples: pd.DataFrame, event: str) -> list[tuple[int, int, float]]:
    """Rank, step and value of an event's rows, in order."""
    rows = samples[samples.event == event].sort_values(["rank", "step"])
    return list(zip(rows["rank"], rows.step, rows.value, strict=True))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Record, pd.DataFrame]]:
    """A launch of every strategy on 3 ranks."""
    return launched(tmp_path_factory.mktemp("replicas"), *STRATEGIES, ranks=3)


@pytest.mark.parametrize("number", range(len(STRATEGIES)), ids=[str(list(each.values())) for each in STRATEGIES])
def test_a_strategy_trains_in_processes(real: list[tuple[Record, pd.DataFrame]], number: int) -> None:
    record, samples = real[number]
    assert record.status == "ok", record.failure
    assert isinstance(record.case, TrainCase)
    workers = record.case.workers
    assert len(samples[samples.event == "loss"]) == workers * (STEPS + WARMUP)
    losses = samples[samples.event == "test_loss"].sort_values("step").value.tolist()
    assert losses[-1] < 2.2, losses
    assert len(losses) == 3


@pytest.mark.parametrize("strategy", STRATEGIES, ids=[str(list(each.values())) for each in STRATEGIES])
def test_a_strategy_trains_in_virtual_time(tmp_path: Path, strategy: dict[str, Any]) -> None:
    checks, samples = predicted(tmp_path, strategy, ranks=3)
    assert [check["passed"] for check in checks] == [True]
    assert samples[samples.event == "test_loss"].sort_values("step").value.tolist()[-1] < 3.0
    again = predicted(tmp_path, strategy, ranks=3)[1]
    pd.testing.assert_frame_equal(samples, again)


@pytest.mark.parametrize(
    ("strategy", "ranks"),
    [({"name": "local_sgd"}, 4), ({"name": "server"}, 2), ({"name": "job_server", "epoch_steps": 3}, 4)],
)
def test_virtual_time_gives_the_bits_of_processes(tmp_path: Path, strategy: dict[str, Any], ranks: int) -> None:
    ((_, in_processes),) = launched(tmp_path, strategy, ranks=ranks)
    _, in_virtual_time = predicted(tmp_path, strategy, ranks=ranks)
    for event in ("loss", "test_loss", "test_accuracy"):
        assert values(in_processes, event) == values(in_virtual_time, event)


def test_an_order_of_arrivals_that_is_played_back_gives_the_same_bits(tmp_path: Path) -> None:
    ((_, in_processes),) = launched(tmp_path, {"name": "server"}, ranks=4)
    order = in_processes[(in_processes.event == "wait") & (in_processes["rank"] == 0)].sort_values("start_ns").value
    case = train_case(**{**DIGITS, **VIRTUAL, "strategy": {"name": "server"}, "ranks": 4})
    prediction = Predictor(tmp_path).predict(PlannedLaunch(case, 0, 1000, 0), {0: order.astype(int).tolist()})
    for event in ("loss", "test_loss", "staleness"):
        assert np.array_equal(values(in_processes, event), values(prediction.samples.to_pandas(), event))


def test_a_law_delays_the_same_steps_on_both_clocks(tmp_path: Path) -> None:
    delays = {"step_delay": "exponential:0.02@0.5+fixed:0.005", "message_delay": "gamma:2,0.001"}
    ((record, real),) = launched(tmp_path, {"name": "gossip"}, ranks=2, **delays)
    assert record.status == "ok"
    virtual = predicted(tmp_path, {"name": "gossip"}, ranks=2, **delays)[1]
    for rank in range(2):
        took = [
            (rows.end_ns - rows.start_ns)[(rows.event == "delay") & (rows["rank"] == rank)].to_numpy() / 1e9
            for rows in (real, virtual)
        ]
        assert len(took[0]) == len(took[1]) > STEPS
        assert np.all(took[0] >= took[1] - 1e-6), "a sleep lasts at least as long as it should"


@pytest.mark.parametrize("strategy", STRATEGIES, ids=[str(list(each.values())) for each in STRATEGIES])
def test_stacked_replicas_learn_as_those_alone(tmp_path: Path, strategy: dict[str, Any]) -> None:
    stacked = {"fabric": {"name": "simulated", "link_mbit": 10_000}}
    alone = predicted(tmp_path, strategy, ranks=4)[1]
    together = predicted(tmp_path, strategy, ranks=4, **stacked)[1]
    for event in ("loss", "test_loss"):
        each, other = values(alone, event), values(together, event)
        assert [row[:2] for row in each] == [row[:2] for row in other]
        np.testing.assert_allclose([row[2] for row in each], [row[2] for row in other], rtol=2e-6)
