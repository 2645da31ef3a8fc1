"""Strategies that are programs of each rank: the same code in processes and in virtual time, on real gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.claims.metrics import PER_LAUNCH
from scaleproof.core.record_schema import Record
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.simulate.answered_calls import AnsweredCall
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plan import PlannedLaunch
from tests.integration.launches import launches
from tests.short_form import train_case

STEPS, WARMUP = 6, 1
FIRST_SEED = 1000
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
    {"name": "server", "update": "synchronous", "backup": 1},
    {"name": "gossip"},
    {"name": "gossip", "form": "push", "draws": "all"},
    {"name": "gossip", "form": "push_pull", "averaged": "before_step", "tau": 2},
    {"name": "elastic_averaging"},
    {"name": "elastic_averaging", "momentum": "nesterov", "exchange": "parameters", "order": "moved_first"},
    {"name": "elastic_averaging", "exchange": "parameters", "update": "synchronous", "order": "textbook"},
    {"name": "downpour", "tau": 2},
    {"name": "averaged_gradients", "momentum": "nesterov"},
    {"name": "gossip", "averaged": "before_step", "published": "at_exchange", "momentum": "nesterov", "rounds": 2},
    {"name": "gossip", "form": "push", "draws": "all", "weight": 2.0, "sent": "with_momentum"},
    {"name": "gossip", "reads": "one_sided"},
    {"name": "elastic_averaging", "dedicated_servers": 0, "exchange": "parameters", "order": "after_gradient"},
    {"name": "elastic_averaging", "exchange": "locked", "order": "after_gradient", "momentum": "nesterov"},
    {"name": "push_sum"},
    {"name": "triggered_gossip", "theta": 0.05},
    {"name": "local_sgd", "tau": 2},
    {"name": "averaged_gradients"},
    {"name": "elastic_averaging", "exchange": "parameters", "update": "synchronous"},
    {"name": "probabilistic_barrier", "sample": 1},
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


def predicted(
    folder: Path, strategy: dict[str, Any], seed: int = FIRST_SEED, **fields: Any
) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """Checks and samples in virtual time; `seed`: of the first real launch, unless stated."""
    case = train_case(**{**DIGITS, **VIRTUAL, "strategy": strategy, **fields})
    prediction = Predictor(folder).predict(PlannedLaunch(case, 0, seed, 0))
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
    assert checks and all(check["passed"] for check in checks)
    assert samples[samples.event == "test_loss"].sort_values("step").value.tolist()[-1] < 3.0
    again = predicted(tmp_path, strategy, ranks=3)[1]
    pd.testing.assert_frame_equal(samples, again)


LOCKSTEP: list[dict[str, Any]] = [
    {"name": "averaged_gradients"},
    {"name": "slow_momentum"},
    {"name": "local_sgd"},
    {"name": "local_sgd", "tau": 2},
    {"name": "job_server", "epoch_steps": 3},
    {"name": "job_server", "gradients": "through_server"},
    {"name": "job_server", "handshakes": "each_tensor"},
]
SERVED: list[dict[str, Any]] = [
    {"name": "server"},
    {"name": "server", "bound": 1},
    {"name": "server", "update": "synchronous"},
    {"name": "elastic_averaging"},
    {"name": "elastic_averaging", "momentum": "nesterov", "exchange": "parameters", "order": "moved_first"},
    {"name": "downpour", "tau": 2},
    {"name": "probabilistic_barrier", "sample": 0},
    {"name": "cut_off", "predictor": "all"},
]
"""What one worker does depends on no times."""
IN_ORDER: list[dict[str, Any]] = [
    *SERVED[:-2],
    {"name": "server", "update": "synchronous", "backup": 1},
    {"name": "probabilistic_barrier", "sample": 1},
    {"name": "cut_off", "predictor": "static", "share": 0.5},
]
"""What many workers do depends on the order in which their messages arrive at the server, and on nothing else."""
CALLED: list[dict[str, Any]] = [
    {"name": "gossip"},
    {"name": "gossip", "form": "push", "draws": "all"},
    {"name": "gossip", "form": "push_pull", "averaged": "before_step", "tau": 2},
    {"name": "push_sum"},
    {"name": "triggered_gossip", "theta": 0.05},
]
"""What a rank gets and gives depends on where the programs of its peers are when they serve its calls."""
EXACT = ("loss", "test_loss", "test_accuracy", "staleness", "dropped_gradient", "received", "weight")
NORMS = ("consensus_distance", "change")
"""Sums whose order depends on the threads of the linear algebra library: the same to rounding."""


def assert_same_bits(one: pd.DataFrame, other: pd.DataFrame) -> None:
    for event in EXACT:
        assert values(one, event) == values(other, event), event
    for event in NORMS:
        np.testing.assert_allclose(np.array(values(one, event)), np.array(values(other, event)), rtol=1e-6)


def words(strategy: dict[str, Any]) -> str:
    return str(list(strategy.values()))


@pytest.fixture(scope="module")
def alone_and_in_lockstep(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Record, pd.DataFrame]]:
    """Launches on 4 ranks in lockstep, and of a server with one worker."""
    folder = tmp_path_factory.mktemp("bits")
    return [*launched(folder, *LOCKSTEP, ranks=4), *launched(folder, *SERVED, ranks=2)]


@pytest.mark.parametrize("number", range(len(LOCKSTEP) + len(SERVED)), ids=map(words, [*LOCKSTEP, *SERVED]))
def test_virtual_time_gives_the_bits_of_processes(
    alone_and_in_lockstep: list[tuple[Record, pd.DataFrame]], tmp_path: Path, number: int
) -> None:
    _, in_processes = alone_and_in_lockstep[number]
    among = number - (len(LOCKSTEP) if number >= len(LOCKSTEP) else 0)
    strategy, ranks = (SERVED[among], 2) if number >= len(LOCKSTEP) else (LOCKSTEP[among], 4)
    _, in_virtual_time = predicted(tmp_path, strategy, FIRST_SEED + among, ranks=ranks)
    assert len(values(in_processes, "loss")) >= STEPS
    assert_same_bits(in_processes, in_virtual_time)


@pytest.fixture(scope="module")
def on_four_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Record, pd.DataFrame]]:
    """Launches of a server with three workers."""
    return launched(tmp_path_factory.mktemp("order"), *IN_ORDER, ranks=4)


@pytest.mark.parametrize("number", range(len(IN_ORDER)), ids=map(words, IN_ORDER))
def test_an_order_of_arrivals_that_is_played_back_gives_the_same_bits(
    on_four_ranks: list[tuple[Record, pd.DataFrame]], tmp_path: Path, number: int
) -> None:
    _, in_processes = on_four_ranks[number]
    order = in_processes[(in_processes.event == "wait") & (in_processes["rank"] == 0)].sort_values("start_ns").value
    case = train_case(**{**DIGITS, **VIRTUAL, "strategy": IN_ORDER[number], "ranks": 4})
    prediction = Predictor(tmp_path).predict(
        PlannedLaunch(case, 0, FIRST_SEED + number, 0), {0: order.astype(int).tolist()}
    )
    in_virtual_time = prediction.samples.to_pandas()
    assert len(values(in_processes, "loss")) >= 3 * STEPS
    assert_same_bits(in_processes, in_virtual_time)


@pytest.fixture(scope="module")
def traced_on_four_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Record, pd.DataFrame]]:
    """Launches that record where ranks answered calls."""
    return launched(tmp_path_factory.mktemp("calls"), *CALLED, ranks=4, tracing="full")


@pytest.mark.parametrize("number", range(len(CALLED)), ids=map(words, CALLED))
def test_calls_that_are_played_back_give_the_same_bits(
    traced_on_four_ranks: list[tuple[Record, pd.DataFrame]], tmp_path: Path, number: int
) -> None:
    record, in_processes = traced_on_four_ranks[number]
    assert record.status == "ok", record.failure
    rows = in_processes[in_processes.event == "answered"].sort_values("start_ns")
    answered = {
        int(rank): [
            AnsweredCall(int(source), int(resumes))
            for source, resumes in zip(of_rank.value, of_rank.nbytes, strict=True)
        ]
        for rank, of_rank in rows.groupby("rank")
    }
    case = train_case(**{**DIGITS, **VIRTUAL, "strategy": CALLED[number], "ranks": 4})
    launch = PlannedLaunch(case, 0, FIRST_SEED + number, 0)
    in_virtual_time = Predictor(tmp_path).predict(launch, answered=answered).samples.to_pandas()
    assert len(rows) and len(values(in_processes, "loss")) >= 4 * STEPS
    weights = [value for _, _, value in values(in_processes, "weight")]
    assert not weights or sum(weights) == 4, "what a rank has pushed is received before the end"
    assert_same_bits(in_processes, in_virtual_time)


def test_a_law_delays_the_same_steps_on_both_clocks(tmp_path: Path) -> None:
    delays: dict[str, Any] = {"step_delay": "exponential:0.02@0.5+fixed:0.005", "message_delay": "gamma:2,0.001"}
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
    stacked: dict[str, Any] = {"fabric": {"name": "simulated", "link_mbit": 10_000}}
    alone = predicted(tmp_path, strategy, ranks=4)[1]
    together = predicted(tmp_path, strategy, ranks=4, **stacked)[1]
    for event in ("loss", "test_loss"):
        each, other = values(alone, event), values(together, event)
        assert [row[:2] for row in each] == [row[:2] for row in other]
        np.testing.assert_allclose([row[2] for row in each], [row[2] for row in other], rtol=2e-6)


DIVERGING: list[dict[str, Any]] = [
    {"name": "server"},
    {"name": "gossip"},
    {"name": "elastic_averaging"},
    {"name": "local_sgd"},
    {"name": "cut_off", "predictor": "per_worker"},
    {"name": "triggered_gossip", "theta": 0.05},
    {"name": "job_server", "epoch_steps": 3},
]
NAMES = [str(each["name"]) for each in DIVERGING]
TOO_LARGE: dict[str, Any] = {"learning_rate": 1e30, "ranks": 3}


def assert_diverged(record: Record, samples: pd.DataFrame) -> None:
    """It is a result with a step, and no failure."""
    assert record.status == "ok", record.failure
    assert PER_LAUNCH["diverged"](record, samples) == 1.0
    step = PER_LAUNCH["diverged_step"](record, samples)
    assert step is not None and 0 <= step < STEPS + WARMUP
    assert PER_LAUNCH["test_loss"](record, samples) is None


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Record, pd.DataFrame]]:
    """Launches in processes that diverge."""
    return launched(tmp_path_factory.mktemp("diverging"), *DIVERGING, **TOO_LARGE)


@pytest.mark.parametrize("number", range(len(DIVERGING)), ids=NAMES)
def test_divergence_in_processes_is_a_result_with_its_step(
    lost: list[tuple[Record, pd.DataFrame]], number: int
) -> None:
    assert_diverged(*lost[number])


def test_divergence_in_virtual_time_is_a_result_with_its_step(tmp_path: Path) -> None:
    cases = [
        train_case(**{**DIGITS, **VIRTUAL, **TOO_LARGE, "strategy": each, "arm": f"a{n}"})
        for n, each in enumerate(DIVERGING)
    ]
    run_plan(launches(cases), tmp_path, size="ci", deadline_s=120.0, simulator=Predictor(tmp_path))
    store = Store(tmp_path)
    records = list(store.records())
    assert len(records) == len(cases)
    for record in records:
        assert_diverged(record, store.samples(record).to_pandas())


def test_the_samples_of_an_evaluation_are_those_of_the_replicas_when_they_were_kept(tmp_path: Path) -> None:
    """One rank of three is slow: at its third step the others have taken more, which are in no evaluated model."""
    slow: dict[str, Any] = {"step_delay": "fixed:0.5@0.34"}
    _, samples = predicted(tmp_path, {"name": "gossip"}, ranks=3, **slow)
    counted = samples[samples.event == "evaluated_samples"].sort_values("end_ns").value.tolist()
    assert counted == [3 * 48, 6 * 48, 7 * 48]
