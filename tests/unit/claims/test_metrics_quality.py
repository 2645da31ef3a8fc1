"""Time to quality of one launch on hand-made samples."""

from typing import Any

import pytest

from scaleproof.claims.metrics import METRICS
from scaleproof.claims.metrics_quality import time_to_quality
from scaleproof.core.record_schema import Clock
from tests.unit.claims.claims_samples import MS, TRAIN, record, samples

DIGITS = {**TRAIN, "data": "digits", "workload": "dnn_digits", "evaluate_every": 1}


def rows(*accuracies: float) -> Any:
    """Rank 1 touches the data at 100 ms in its warm-up, rank 0 at 120 ms; evaluations follow every 1000 ms."""
    touched: list[Any] = [
        (1, "input", 0, 100, 110, 0, float("nan"), True),
        (0, "input", 0, 120, 130),
        (0, "input", 1, 500, 510),
    ]
    return samples(
        *touched,
        *(
            (0, "test_accuracy", step, 1000 * (step + 1), 1000 * (step + 1), 0, value)
            for step, value in enumerate(accuracies)
        ),
    )


def test_it_runs_from_the_first_touch_of_the_data_to_the_first_evaluation_at_the_target() -> None:
    assert time_to_quality(record(DIGITS), rows(0.5, 0.95, 0.9, 0.99)) == pytest.approx(1.9)


def test_a_launch_that_stays_below_the_target_did_not_converge() -> None:
    assert time_to_quality(record(DIGITS), rows(0.5, 0.94)) is None


def test_without_evaluation_or_target_there_is_none() -> None:
    assert time_to_quality(record(DIGITS), rows()) is None
    assert time_to_quality(record({**DIGITS, "data": "synthetic"}), rows(0.99)) is None


def test_ranks_are_on_one_clock() -> None:
    clocks = [Clock(rank=1, offset_ns=-50 * MS, uncertainty_ns=1)]
    assert time_to_quality(record(DIGITS, clocks=clocks), rows(0.99)) == pytest.approx(0.95)


def test_times_rates_and_what_comes_from_them_are_timing() -> None:
    timing = {name for name, metric in METRICS.items() if metric.timing}
    assert {
        "step_s",
        "throughput",
        "busbw",
        "speedup",
        "parallel_efficiency",
        "rank_spread",
        "time_to_quality",
    } <= timing
    assert not timing & {
        "test_accuracy",
        "final_loss",
        "bytes_per_rank_ratio",
        "training_difference",
        "same_convergence",
    }
