"""The suite teng2018: which rows decide, and its metrics on records made by hand."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.suite import Suite
from scaleproof.spec.tuned import read_tuned
from tests.unit.claims.claims_samples import record, samples, value

SUITE = "teng2018"
S = 1000
"""Milliseconds."""
CASE: dict[str, Any] = {
    "program": "train",
    "suite": "teng2018",
    "experiment": "correlation",
    "arm": "learned",
    "ranks": 5,
    "transport": "tcp",
    "strategy": "cut_off",
    "workload": "dnn_digits",
    "minibatch": 32,
    "steps": 2,
    "step_delay": "contention:1,2,0.02,0.1,4,1,0.9,0.1,0.08",
}


def launch(rows: list[tuple[Any, ...]], **fields: Any) -> Launch:
    made: Record = record({**CASE, **fields})
    return Launch(made, samples(*rows))


def test_two_rows_may_decide(suite: Suite) -> None:
    rows = load_published(suite.folder)
    assert [name for name, row in rows.items() if row.gate] == ["teng2018.claim.tput", "teng2018.claim.conv"]
    kinds = Counter(claim.form.kind for claim in load_claims(suite) if claim.row)
    assert kinds == {"claim": 2, "context": 4}


def serving(gradients: list[int], seconds: float, event: str = "used_gradients") -> list[tuple[Any, ...]]:
    """Timed steps of the server, after one of warm-up of a second that nothing counts."""
    rows: list[tuple[Any, ...]] = [(0, "step", 0, 0, S, 0, math.nan, True), (0, event, 0, S, S, 0, 4, True)]
    for number, count in enumerate(gradients, 1):
        start = S * (1 + (number - 1) * seconds)
        rows += [(0, "step", number, start, start + S * seconds), (0, event, number, start, start, 0, count)]
    return rows


def test_gradients_per_second_are_those_that_steps_use_on_the_servers_clock(metrics: dict[str, Metric]) -> None:
    workers = [(1, "step", 1, S, 9 * S), (0, "dropped_gradient", 1, S, S, 0, 3)]
    made = launch([*serving([3, 4], 2.0), *workers])
    assert value(metrics["used_gradients_per_s"], made) == pytest.approx(7 / 4)
    assert value(metrics["used_gradients_per_s"], launch(workers)) is None


@pytest.mark.parametrize("event", ["cut_off", "imputed"])
def test_shares_are_of_all_workers(metrics: dict[str, Metric], event: str) -> None:
    made = launch(serving([1, 3], 1.0, event))
    assert value(metrics[f"{event}_share"], made) == pytest.approx(0.5)


@pytest.mark.parametrize(("learned", "share"), [(1.2, 1.0), (1.1, 0.5), (1.0, 0.0), (0.9, -0.5)])
def test_what_is_recovered_lies_between_all_and_the_oracle(
    metrics: dict[str, Metric], learned: float, share: float
) -> None:
    rates = {"sync": 1.0, "learned": learned, "oracle": 1.2}
    block = [launch(serving([4], 1 / rate), arm=arm) for arm, rate in rates.items()]
    recovered = metrics["recovered_share"].block
    assert recovered is not None
    found: Any = recovered(block, None)
    assert (found.value, found.low, found.high) == pytest.approx((share, share, share))
    noisy: Any = recovered(block, 0.01)
    assert noisy.low < share < noisy.high
    assert recovered([block[0], block[1], launch(serving([4], 1.0), arm="oracle")], None) is None


def test_the_lead_over_a_static_cut_off_has_a_slope_over_the_correlation(metrics: dict[str, Metric]) -> None:
    block = []
    for correlation, lead in ((0, 1.0), (0.5, 1.1), (1, 1.2)):
        law = {"step_delay": f"contention:1,2,0.02,0.1,4,{correlation},0.9,0.1,0.08"}
        block += [
            launch(serving([4], 1.0), arm="static_96", **law),
            launch(serving([4], 1 / lead), arm="learned", **law),
        ]
    slope = metrics["gain_over_correlation"].block
    assert slope is not None
    assert slope(block, None) == pytest.approx(0.2)
    assert slope(block[:2], None) is None


def test_time_to_loss_ends_at_the_first_evaluation_that_is_low_enough(metrics: dict[str, Metric]) -> None:
    rows: list[tuple[Any, ...]] = [(rank, "start", 0, 100, 100) for rank in range(5)]
    rows += [(0, "test_loss", number, when, when, 0, loss) for number, (when, loss) in enumerate(EVALUATIONS)]
    assert value(metrics["time_to_loss"], launch(rows)) == pytest.approx(2.0)
    assert value(metrics["loss_reached_per_s"], launch(rows)) == pytest.approx(0.5)
    assert value(metrics["time_to_loss"], launch(rows[:-2])) is None
    for name in ("time_to_loss", "loss_reached_per_s"):
        words = metrics[name].instead
        assert words is not None and words(launch(rows).record, launch(rows).samples) is None
        missed = launch(rows[:-2])
        assert words(missed.record, missed.samples) == "not reached, best 1.14 of 1.13"
        assert words(missed.record, missed.samples.iloc[:0]) is None, "it was not evaluated"


EVALUATIONS = ((1100, 1.14), (2100, 1.13), (3100, 0.9))
"""Milliseconds and loss; the target is 1.13."""


def test_the_loss_to_reach_is_what_waiting_for_all_came_to_in_tuning(suite: Suite, metrics: dict[str, Metric]) -> None:
    tuned = read_tuned(suite.folder)
    assert tuned is not None
    (cell,) = tuned.experiments["target"]["small"].cells
    values = [value for point in cell.points if point.set == cell.chosen for value in point.values]
    target = round(statistics.median(value for value in values if isinstance(value, float)), 2)
    assert cell.arm == "sync"
    reached = [
        value(metrics["time_to_loss"], launch([(0, "start", 0, 0, 0), (0, "test_loss", 1, S, S, 0, loss)]))
        for loss in (target, target + 0.001)
    ]
    assert reached == [1.0, None]
