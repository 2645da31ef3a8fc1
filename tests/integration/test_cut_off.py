"""Cut-off by every predictor, in processes and in virtual time, under contention of hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.claims.metrics_train import throughput
from scaleproof.core.record_schema import Record
from tests.integration.test_replicas import STEPS, WARMUP, launched, predicted, values

CONTENTION = "contention:0.02,3,0.2,0.3,2,1,0.5,0.1,0.05"
PREDICTORS = ("all", "static", "elfving", "per_worker", "learned", "oracle")
STRATEGIES: list[dict[str, Any]] = [
    {"name": "cut_off", "predictor": name, **({"share": 0.5} if name == "static" else {})} for name in PREDICTORS
]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Record, pd.DataFrame]]:
    """A launch of every predictor on a server and 4 workers."""
    return launched(tmp_path_factory.mktemp("cut_off"), *STRATEGIES, ranks=5, step_delay=CONTENTION)


@pytest.mark.parametrize("number", range(len(PREDICTORS)), ids=PREDICTORS)
def test_a_predictor_trains_in_processes(real: list[tuple[Record, pd.DataFrame]], number: int) -> None:
    record, samples = real[number]
    assert record.status == "ok", record.failure
    counts = of_server(samples, "cut_off")
    assert len(counts) == STEPS and all(2 <= count <= 4 for count in counts)
    assert of_server(samples, "used_gradients") == [4] * WARMUP + counts
    assert samples[samples.event == "test_loss"].sort_values("step").value.tolist()[-1] < 2.2


@pytest.mark.parametrize("strategy", STRATEGIES, ids=PREDICTORS)
def test_a_predictor_trains_in_virtual_time(tmp_path: Path, strategy: dict[str, Any]) -> None:
    checks, samples = predicted(tmp_path, strategy, ranks=5, step_delay=CONTENTION)
    assert [check["passed"] for check in checks] == [True]
    pd.testing.assert_frame_equal(samples, predicted(tmp_path, strategy, ranks=5, step_delay=CONTENTION)[1])


def test_every_gradient_is_used_or_dropped_and_late_ones_are_imputed(tmp_path: Path) -> None:
    samples = predicted(tmp_path, STRATEGIES[1], ranks=5, step_delay=CONTENTION, steps=20)[1]
    used, dropped = of_server(samples, "used_gradients"), of_server(samples, "dropped_gradient")
    assert used == [4] * WARMUP + [2] * 20 and dropped
    computed = len(samples[samples.event == "loss"])
    assert sum(used) + len(dropped) <= computed <= sum(used) + len(dropped) + 4


def test_without_a_cut_off_all_predictors_that_wait_for_all_train_alike(tmp_path: Path) -> None:
    equal = [predicted(tmp_path, each, ranks=5, step_delay="fixed:1")[1] for each in (STRATEGIES[0], *STRATEGIES[2:])]
    assert all(of_server(samples, "cut_off") == [4] * STEPS for samples in equal)
    assert all(values(samples, "test_loss") == values(equal[0], "test_loss") for samples in equal)


def test_a_step_lasts_as_long_as_the_last_gradient_that_it_waits_for(tmp_path: Path) -> None:
    """The server is in no hurry of its own: with a share of half, a step has the second smallest of four delays."""
    law = "contention:1,2,0.2,0.3,2,0,0,0,0.2"
    samples = predicted(tmp_path, STRATEGIES[1], ranks=5, step_delay=law, steps=1, warmup=0)[1]
    (step,) = samples[(samples.event == "step") & (samples["rank"] == 0)].itertuples()
    delays = samples[(samples.event == "delay") & (samples.step == 0)]
    lasted = np.sort((delays.end_ns - samples[samples.event == "forward"].start_ns.min()) / 1e9)
    assert (step.end_ns - step.start_ns) / 1e9 == pytest.approx(lasted[1], rel=0.01)


def test_a_servers_steps_are_no_samples(real: list[tuple[Record, pd.DataFrame]]) -> None:
    record, samples = real[0]
    steps = samples[(samples.event == "step") & ~samples.warmup]
    wall = (steps.end_ns.max() - steps.start_ns.min()) / 1e9
    assert throughput(record, samples) == pytest.approx(4 * STEPS * 12 / wall, rel=1e-6)


def of_server(samples: pd.DataFrame, event: str) -> list[int]:
    return [int(value) for rank, _, value in values(samples, event) if rank == 0]
