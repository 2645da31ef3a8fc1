"""A strategy's own arithmetic takes its time beside replayed compute, in `main` and in `serve`, and the same true time
at any dilation and shrink, as in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.core.predicted import Predicted
from scaleproof.core.record_schema import Record
from scaleproof.launch.plan_outcome import PlanOutcome
from scaleproof.launch.supervisor import run_plan
from scaleproof.record.store import Store
from scaleproof.simulate.predict import Predictor
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.workloads.case_network import network_of
from tests.integration.launches import launches
from tests.integration.netns import need_netns
from tests.short_form import train_case

BYTE_S = 2e-7
"""Slow enough to be seen beside everything else."""
TIMES = 1000.0
FIELDS: dict[str, Any] = {
    "transport": "tcp",
    "collective": "ring",
    "workload": "dnn_digits",
    "data": "digits",
    "ranks": 2,
    "minibatch": 16,
    "steps": 4,
    "warmup": 1,
    "compute": {"name": "replay", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.5},
}


@dataclass(frozen=True)
class Slow:
    """A simulator that knows one cost."""

    byte: float = BYTE_S

    def byte_s(self, case: AnyCase) -> float:
        return self.byte

    def inputs(self, case: AnyCase, programs: str = "") -> str:
        raise NotImplementedError

    def predict(self, launch: PlannedLaunch) -> Predicted:
        raise NotImplementedError


def run(results: Path, case: TrainCase, simulator: Slow | None) -> PlanOutcome:
    return run_plan(launches([case]), results, size="ci", deadline_s=60.0, simulator=simulator)


def launched(results: Path, simulator: Slow | None = None, **fields: Any) -> tuple[Record, pd.DataFrame]:
    outcome = run(results, train_case(**{**FIELDS, **fields}), simulator or Slow())
    store = Store(results)
    record, _ = store.load(outcome.launches[0])
    assert record.status == "ok", record.failure
    return record, store.samples(record).to_pandas()


def shortest(samples: pd.DataFrame, event: str) -> float:
    rows = samples[(samples.event == event) & ~samples.warmup]
    return float((rows.end_ns - rows.start_ns).min()) / 1e9


def charged_s() -> float:
    """Of one pass over the parameters."""
    return 4 * network_of(train_case(**FIELDS, strategy="local_sgd")).parameters * BYTE_S


def test_arithmetic_of_main_and_of_serve_takes_its_time(tmp_path: Path) -> None:
    record, samples = launched(tmp_path, strategy="local_sgd")
    assert record.environment["replay"]["byte_s"] == BYTE_S
    assert shortest(samples, "step") >= charged_s()
    _, samples = launched(tmp_path, strategy={"name": "gossip", "form": "push"})
    assert shortest(samples, "call") >= charged_s()


def test_a_launch_with_another_cost_of_a_byte_is_made_again(tmp_path: Path) -> None:
    case = train_case(**FIELDS, strategy="local_sgd")
    first, again, other = (run(tmp_path, case, simulator) for simulator in (Slow(), Slow(), Slow(BYTE_S / 2)))
    assert (first.completed, again.skipped, other.completed) == (1, 1, 1)


@pytest.mark.parametrize("slower", [{}, {"dilation": 4}, {"shrink": 4}, {"dilation": 2, "shrink": 2}])
def test_it_takes_the_same_true_time_at_any_dilation_and_shrink(tmp_path: Path, slower: dict[str, Any]) -> None:
    need_netns()
    fabric = {"name": "netns", "link_mbit": 10_000}
    _, samples = launched(tmp_path, strategy="local_sgd", fabric=fabric, **slower)
    assert charged_s() * 0.99 <= shortest(samples, "step") <= charged_s() * 1.5


def test_virtual_time_takes_the_cost_that_replay_is_given(tmp_path: Path) -> None:
    case = train_case(**FIELDS, strategy="local_sgd", fabric={"name": "simulated", "gamma_times": TIMES})
    predictor = Predictor(tmp_path)
    samples = predictor.predict(PlannedLaunch(case, 0, 1, 0)).samples.to_pandas()
    taken = 4 * network_of(case).parameters * predictor.byte_s(case) * TIMES
    in_collective = 0.5  # of the array, by a ring of two
    assert shortest(samples, "step") == pytest.approx((1 + in_collective) * taken, rel=0.05)
