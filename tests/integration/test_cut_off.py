"""Cut-off by every predictor, in processes and in virtual time, under contention of hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleproof.claims.metrics_train import throughput
from scaleproof.core.record_schema import Record
from scaleproof.spec.delay_law import delays_of
from tests.integration.test_replicas import STEPS, WARMUP, launched, predicted, values

CONTENTION = "contention:0.02,3,0.2,0.3,2,1,0.5,0.1,0.05"
PREDICTORS = ("all", "static", "elfving", "per_worker", "learned", "oracle")
STRATEGIES: list[dict[str, Any]] = [
    {"name": "cut_off", "predictor": name, **({"share": 0.5} if name == "static" else {})} for name in PREDICTORS
]

TRANSPORTS: list[dict[str, Any]] = [{"transport": "shm"}, {"transport": "mpi", "launcher": "mpirun"}]


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


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda fields: fields["transport"])
def test_steps_are_cut_off_over_shared_memory_and_over_mpi(
    tmp_path: Path, transport: dict[str, Any], ranks: int
) -> None:
    law = "contention:0.2,3,0.2,0.3,2,1,0.5,0.1,0.2"  # delays that a busy machine does not hide
    ((record, samples),) = launched(tmp_path, STRATEGIES[1], ranks=ranks, step_delay=law, **transport)
    assert record.status == "ok", record.failure
    workers = ranks - 1
    assert of_server(samples, "used_gradients") == [workers] * WARMUP + [-(-workers // 2)] * STEPS
    stopped = samples[(samples.event == "delay") & (samples.nbytes > 0)]
    assert len(stopped) > 0 or workers == 1, "a worker stops when the next parameters come"
    tested = [value for _, _, value in values(samples, "test_loss")]
    assert len(tested) == 3 and tested[-1] < tested[0]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=PREDICTORS)
def test_a_predictor_trains_in_virtual_time(tmp_path: Path, strategy: dict[str, Any]) -> None:
    checks, samples = predicted(tmp_path, strategy, ranks=5, step_delay=CONTENTION)
    assert [check["passed"] for check in checks] == [True]
    pd.testing.assert_frame_equal(samples, predicted(tmp_path, strategy, ranks=5, step_delay=CONTENTION)[1])


def test_every_gradient_is_used_or_dropped_and_late_ones_are_imputed(tmp_path: Path) -> None:
    samples = predicted(tmp_path, STRATEGIES[1], ranks=5, step_delay=CONTENTION, steps=20)[1]
    used, dropped = of_server(samples, "used_gradients"), samples[samples.event == "dropped_gradient"]
    assert used == [4] * WARMUP + [2] * 20
    assert 30 <= len(dropped) <= 40, "two of four in 20 steps, but for those under way at the end"
    assert set(dropped.value) <= {0, 1, 2, 3} and of_server(samples, "imputed") == [0] * (WARMUP + 20)
    elfving = predicted(tmp_path, STRATEGIES[2], ranks=5, step_delay=CONTENTION, steps=20)[1]
    left = [4 - count for count in of_server(elfving, "cut_off")]
    assert of_server(elfving, "imputed") == [0] * WARMUP + left and sum(left) > 0


def test_without_a_cut_off_all_predictors_that_wait_for_all_train_alike(tmp_path: Path) -> None:
    equal = [predicted(tmp_path, each, ranks=5, step_delay="fixed:1")[1] for each in (STRATEGIES[0], *STRATEGIES[2:])]
    assert all(of_server(samples, "cut_off") == [4] * STEPS for samples in equal)
    assert all(values(samples, "test_loss") == values(equal[0], "test_loss") for samples in equal)


def test_steps_last_as_long_as_the_last_gradient_that_they_wait_for(tmp_path: Path) -> None:
    """With a share of half a step has the second smallest of four delays, and all begin the next one with it."""
    law = "contention:1,2,0.2,0.3,2,0,0,0,0.2"
    samples = predicted(tmp_path, STRATEGIES[1], ranks=5, step_delay=law, steps=4, warmup=0)[1]
    steps = samples[(samples.event == "step") & (samples["rank"] == 0)].sort_values("step")
    drawn = [sorted(delays_of(law).drawn(rank, 5, 1000, step) for rank in range(1, 5)) for step in range(4)]
    lasted = ((steps.end_ns - steps.start_ns) / 1e9).tolist()
    assert lasted == pytest.approx([delays[1] for delays in drawn], rel=0.01)


def test_a_delay_lasts_as_long_as_the_law_says_or_until_the_next_parameters_come(
    real: list[tuple[Record, pd.DataFrame]],
) -> None:
    law, ended_early = delays_of(CONTENTION), 0
    for record, samples in real:
        for row in samples[samples.event == "delay"].itertuples():
            drawn = law.drawn(int(row.rank), 5, record.seed, int(row.step))
            lasted = (row.end_ns - row.start_ns) / 1e9
            assert lasted >= drawn - 1e-6 or row.nbytes > 0
            ended_early += lasted < drawn - 1e-6
    assert ended_early > 0


def test_a_servers_steps_are_no_samples(real: list[tuple[Record, pd.DataFrame]]) -> None:
    record, samples = real[0]
    steps = samples[(samples.event == "step") & ~samples.warmup]
    wall = (steps.end_ns.max() - steps.start_ns.min()) / 1e9
    assert throughput(record, samples) == pytest.approx(4 * STEPS * 12 / wall, rel=0.1), (
        "ranks do not end at the same moment; a server's samples would be a quarter more"
    )


def of_server(samples: pd.DataFrame, event: str) -> list[int]:
    return [int(value) for rank, _, value in values(samples, event) if rank == 0]
