"""Metrics of strategies whose ranks go at their own pace, on launches whose answers can be counted."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from scaleproof.claims.metrics import METRICS, PER_LAUNCH
from scaleproof.core.evidence_marks import TRAJECTORY
from tests.unit.claims.claims_samples import GOSSIP, OF_SERVERS, TRAIN, record, samples

Rows = list[tuple[Any, ...]]
STEPS: Rows = [
    (1, "step", 0, -100, 0, 0, math.nan, True),
    (2, "step", 0, -300, 0, 0, math.nan, True),
    *((1, "step", number + 1, 100 * number, 100 * (number + 1)) for number in range(4)),
    *((2, "step", number + 1, 50 + 300 * number, 350 + 300 * number) for number in range(2)),
]
"""Rank 1 takes four timed steps of 0.1 s while rank 2 takes two of 0.3 s; rank 0 serves."""


def value(name: str, *rows: tuple[Any, ...], case: dict[str, Any] = OF_SERVERS) -> float | None:
    return PER_LAUNCH[name](record(case), samples(*rows))


def test_throughput_counts_steps_that_were_taken_over_the_time_that_all_share() -> None:
    assert value("throughput", *STEPS) == pytest.approx(6 * 4 / 0.65), "six steps of 4 samples from 0 to 0.65 s"


def test_a_fast_rank_is_not_taken_for_all() -> None:
    alone = [row for row in STEPS if row[0] == 1]
    assert value("throughput", *alone) == pytest.approx(4 * 4 / 0.4)
    both = value("throughput", *STEPS)
    assert both is not None and both < 2 * 16 / 0.4, "rank 1 twice"


def test_a_server_that_has_steps_trains_nothing() -> None:
    served: Rows = [(0, "step", number, 100 * number, 100 * number + 100) for number in range(7)]
    assert value("throughput", *STEPS, *served) == value("throughput", *STEPS)
    assert value("step_s", *STEPS, *served) == value("step_s", *STEPS)


def test_staleness_is_the_median_over_timed_updates_and_its_tail() -> None:
    rows: Rows = [(0, "staleness", n, n, n, 0, float(n)) for n in range(20)]
    rows.append((0, "staleness", 99, 0, 0, 0, 1000.0, True))
    assert value("staleness", *rows) == 9.5
    assert value("staleness_p95", *rows) == 18.0
    assert value("staleness", *STEPS) is None


def test_control_messages_and_model_bytes_are_per_step_of_a_rank_that_trains() -> None:
    moved: Rows = [
        (1, "send", 1, 0, 1, 1000),
        (1, "call", 1, 0, 1, 500),
        (2, "put", 1, 0, 1, 300),
        (2, "get", 1, 0, 1, 200),
        (1, "control", 1, 0, 1, 8),
        (2, "control", 1, 0, 1, 8),
        (2, "control", 1, 0, 1, 8),
    ]
    assert value("model_bytes_per_step", *STEPS, *moved) == pytest.approx(2000 / 6)
    assert value("control_messages", *STEPS, *moved) == pytest.approx(3 / 6)
    assert value("control_bytes_per_step", *STEPS, *moved) == pytest.approx(24 / 6)
    assert value("model_messages", *STEPS, *moved) == pytest.approx(4 / 6)
    collective: Rows = [(1, "all_reduce", 1, 0, 1, 400)]
    assert value("model_messages", *STEPS, *moved, *collective) is None, "their number follows from the algorithm"
    in_lockstep: Rows = [(0, "step", 0, 0, 1), (1, "step", 0, 0, 1)]
    assert value("control_messages", *in_lockstep, case=TRAIN) is None


def test_a_dropped_gradient_is_a_share_of_all_that_were_computed() -> None:
    rows: Rows = [(0, "used_gradients", n, 0, 0, 0, 3.0) for n in range(3)]
    assert value("dropped_share", *rows, (0, "dropped_gradient", 0, 0, 0, 0, 2.0)) == pytest.approx(1 / 10)
    assert value("dropped_share", *STEPS) is None


def test_waits_at_barriers_are_a_share_of_the_steps() -> None:
    waits: Rows = [(1, "barrier_s", 1, 90, 90, 0, 0.05), (2, "barrier_s", 1, 300, 300, 0, 0.15)]
    assert value("barrier_share", *STEPS, *waits) == pytest.approx(0.2 / 1.0)


def test_the_last_evaluation_counts_by_its_time() -> None:
    """Rank 1 has ended, so the steps of the last evaluations are equal."""
    rows: Rows = [(0, "consensus_distance", 3, moment, moment, 0, far) for moment, far in ((100, 0.5), (300, 0.1))]
    rows += [(0, "test_accuracy", 3, moment, moment, 0, right) for moment, right in ((100, 0.2), (300, 0.8))]
    assert value("consensus_distance", *rows, case=GOSSIP) == 0.1
    assert value("test_accuracy", *rows, case=GOSSIP) == 0.8


def evaluated(*accuracies: float) -> pd.DataFrame:
    """Evaluations of an average each 0.2 s, with 8 samples more in each."""
    rows: Rows = [(rank, "step", n, 100 * n, 100 * (n + 1)) for rank in range(2) for n in range(8)]
    for number, right in enumerate(accuracies):
        moment = 200 * (number + 1)
        rows.append((0, "test_accuracy", number, moment, moment, 0, right))
        rows.append((0, "evaluated_samples", number, moment, moment, 0, 8.0 * (number + 1)))
    return samples(*rows)


def test_samples_to_the_target_are_those_in_the_first_model_that_reaches_it() -> None:
    assert PER_LAUNCH["samples_to_quality"](record(GOSSIP), evaluated(0.5, 0.95, 0.9, 0.99)) == 16
    assert PER_LAUNCH["time_to_quality"](record(GOSSIP), evaluated(0.5, 0.95, 0.9, 0.99)) == pytest.approx(0.4), (
        "in virtual time nobody touches data, and it starts with the first step"
    )


@pytest.mark.parametrize("name", ["samples_to_quality", "time_to_quality"])
def test_a_target_that_is_never_reached_is_said_with_the_best_value(name: str) -> None:
    made, frame, metric = record(GOSSIP), evaluated(0.5, 0.912, 0.9), METRICS[name]
    assert metric.launch is not None and metric.launch(made, frame) is None
    assert metric.instead is not None and metric.instead(made, frame) == "not reached, best 0.912 of 0.95"
    assert metric.instead(made, evaluated(0.96)) is None
    assert metric.instead(made, evaluated()) is None, "it was not evaluated"


def test_a_launch_in_virtual_time_with_real_gradients_has_its_mark() -> None:
    virtual = {**GOSSIP, "fabric": {"name": "simulated", "link_mbit": 100}}
    assert record(virtual, evidence="simulated").evidence_text == f"simulated, {TRAJECTORY}"
    assert record(GOSSIP).evidence_text == "measured"
    assert not record({**virtual, "strategy": "sync", "collective": "ring"}, evidence="simulated").trajectory
