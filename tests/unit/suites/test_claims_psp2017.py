"""The suite psp2017: rows as published, the bounds on lags as functions, metrics on launches made by hand."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.made_up import Event, events
from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import load_models
from scaleproof.record.store import Store
from scaleproof.spec.case import TrainCase
from scaleproof.spec.suite import Suite
from tests.short_form import train_case
from tests.unit.claims.claims_samples import arithmetic, value
from tests.unit.claims.made_up_launches import judged, with_value

ROOT = Path(__file__).resolve().parents[3]
SUITE = "psp2017"
BOUNDS = load_models(ROOT / "suites" / "psp2017" / "models" / "__init__.py").bounds
SHARES = st.floats(0.01, 0.99)
STALENESS, STEPS = 4, 10_000
WORKERS = 4


def test_published_rows_are_those_of_their_sources(suite: Suite) -> None:
    rows = load_published(suite.folder)
    gated = {name.removeprefix("psp2017."): row.value for name, row in rows.items() if row.gate}
    assert gated == {
        "sim.bsp.step": 30,
        "sim.asp.step": 100,
        "order": 1,
        "beta0": 1,
        "beta4": 1,
        "small": 1,
        "real.order": 1,
    }
    assert Counter(row.provenance for row in rows.values()) == {"paper": 12, "memory_medium": 1}


def test_rows_that_the_law_of_step_times_was_chosen_for_are_consistency(suite: Suite) -> None:
    kinds = {claim.form.id.removeprefix("psp2017."): claim.form.kind for claim in load_claims(suite) if claim.row}
    assert {name for name, kind in kinds.items() if kind == "consistency"} == {"sim.bsp.step", "sim.asp.step"}
    assert {name for name, kind in kinds.items() if kind == "claim"} == {"order", "beta4", "small", "real.order"}
    assert {name for name, kind in kinds.items() if kind == "check"} == {"beta0"}


def test_without_launches_only_arithmetic_is_judged(suite: Suite, tmp_path: Path) -> None:
    results = {result.id: result for result in judge_suite(suite, "smoke", Store(tmp_path))}
    decided = {name for name, each in results.items() if each.verdict in ("reproduced", "not reproduced")}
    assert decided == {name for name in results if name.startswith("psp2017.own.bounds.")}


@given(SHARES, st.integers(1, 100), st.integers(0, 8), st.integers(9, 400))
def test_the_distribution_of_lags_sums_to_1_with_p3(within: float, sample: int, staleness: int, steps: int) -> None:
    lags = np.random.default_rng(sample).dirichlet(np.ones(staleness + 1)) * within
    distribution = BOUNDS.lag_distribution(lags, sample, staleness, steps)
    assert distribution.sum() == pytest.approx(1.0, abs=1e-9) and len(distribution) == steps + 1
    assert distribution[staleness + 1 :].sum() == pytest.approx(
        BOUNDS.beyond(within, sample, staleness, steps), abs=1e-9
    )


@given(SHARES, st.integers(1, 100), st.integers(0, 8))
def test_the_mean_of_the_distribution_is_within_p1(within: float, sample: int, staleness: int) -> None:
    lags = np.random.default_rng(sample).dirichlet(np.ones(staleness + 1)) * within
    distribution = BOUNDS.lag_distribution(lags, sample, staleness, 2000)
    mean = float(distribution @ np.arange(len(distribution)))
    assert mean <= BOUNDS.mean_bound(within, sample, staleness, 2000) * (1 + 1e-9)


def test_the_mean_square_of_the_distribution_is_within_p2_for_equally_likely_lags() -> None:
    for within in (0.1, 0.5, 0.9, 0.99):
        for sample in (1, 2, 10, 64):
            lags = [within / (STALENESS + 1)] * (STALENESS + 1)
            distribution = BOUNDS.lag_distribution(lags, sample, STALENESS, STEPS)
            square = float(distribution @ np.arange(len(distribution)) ** 2)
            assert square < BOUNDS.square_bound(within, sample, STALENESS, STEPS)


def test_bounds_by_hand() -> None:
    """F(r) = 0.5 and one peer: a = 0.5, S = 0.5 / (0.25 + 0.5) = 2/3 for a long sequence."""
    assert BOUNDS.scale(0.5, 1, 4, STEPS) == pytest.approx(2 / 3)
    assert BOUNDS.mean_bound(0.5, 1, 4, STEPS) == pytest.approx(2 / 3 * (10 + 0.5 * 6 / 0.25))
    assert BOUNDS.square_bound(0.5, 1, 4, STEPS) == pytest.approx(2 / 3 * (30 + 0.5 * 20 / 0.125))
    assert BOUNDS.beyond(0.5, 1, 4, STEPS) == pytest.approx(2 / 3)
    assert BOUNDS.scale(0.5, 0, 4, 10) == pytest.approx(1 / 6.5), "the limit without a sample"
    assert BOUNDS.mean_bound(0.5, 0, 4, 10) == math.inf


@given(st.floats(0.5, 0.95))
def test_a_larger_sample_makes_far_lags_rarer(within: float) -> None:
    shares = [BOUNDS.beyond(within, sample, STALENESS, STEPS) for sample in range(1, 60)]
    assert all(after <= before + 1e-12 for before, after in zip(shares, shares[1:], strict=False))


def test_a_scale_that_does_not_normalise_is_seen(metrics: dict[str, Metric], monkeypatch: pytest.MonkeyPatch) -> None:
    metric = metrics["lag_distribution_off"]
    x: dict[str, Any] = {"within": 0.9, "staleness": 4, "steps": 100, "sample": 1, "largest": 9}
    assert arithmetic(metric, **x) < 1e-9
    assert metric.model is not None
    scale = metric.model.__globals__["scale"]
    monkeypatch.setitem(metric.model.__globals__, "scale", lambda *of: 1.01 * scale(*of))
    assert arithmetic(metric, **x) == pytest.approx(0.01, rel=1e-6)


def case(strategy: dict[str, Any], **fields: Any) -> TrainCase:
    short = {"transport": "tcp", "workload": "linear_regression", "ranks": WORKERS + 1, "minibatch": WORKERS}
    return train_case(**{**short, "warmup": 0, "seconds": 10.0, "strategy": strategy, **fields})


def launch(strategy: dict[str, Any], *made: Event, **fields: Any) -> Launch:
    of, launched = case(strategy, **fields), events(Event("start"), *made)
    return Launch(launched.record(of), launched.samples(of.ranks))


def finishes(*moments: tuple[int, float, float]) -> list[Event]:
    """Rank, second, and steps that it has then finished."""
    return [Event("finished", at, at, ranks=(rank,), value=value) for rank, at, value in moments]


def test_progress_counts_what_is_finished_in_time(metrics: dict[str, Metric]) -> None:
    late = finishes((1, 2.0, 1), (1, 4.0, 2), (2, 9.9, 1), (3, 3.0, 1), (3, 10.0, 2), (4, 10.1, 1))
    of = launch({"name": "server"}, *late)
    found = {name: value(metrics[f"progress_{name}"], of) for name in ("mean", "min", "max", "updates")}
    assert found == {"mean": 1.25, "min": 0.0, "max": 2.0, "updates": 5.0}
    assert value(metrics["progress_std"], of) == pytest.approx(np.std([2, 1, 2, 0]))
    assert value(metrics["progress_spread"], of) == pytest.approx(np.percentile([2, 1, 2, 0], 95) - 0.15)
    assert value(metrics["progress_mean"], launch({"name": "server"}, *late, seconds=None)) is None


def test_questions_are_counted_in_time_and_by_poll(metrics: dict[str, Metric]) -> None:
    sampled = {"name": "probabilistic_barrier", "sample": 2}
    polls = [
        Event("control", 1.0, 1.2, ranks=(1,), value=6.0),
        Event("barrier_s", 1.2, 1.2, ranks=(1,), value=0.2),
        Event("control", 10.5, 10.5, ranks=(2,), value=2.0),
        Event("barrier_s", 10.5, 10.5, ranks=(2,), value=0.0),
    ]
    of = launch(sampled, *finishes((1, 1.0, 1)), *polls)
    assert value(metrics["sample_messages"], of) == 6.0
    assert value(metrics["sample_per_poll"], of) == 2.0


def test_lags_are_those_behind_a_worker_that_begins_a_step(metrics: dict[str, Metric]) -> None:
    made = finishes((1, 1.0, 1), (2, 1.0, 1), (1, 2.0, 2), (3, 2.0, 1))
    begun = [Event("step", at, at + 1, ranks=(rank,)) for rank, at in ((1, 0.0), (1, 1.0), (1, 2.0))]
    of = launch({"name": "server"}, *made, *begun)
    assert value(metrics["lag_mean"], of) == pytest.approx((0 + 1 + 1 + 1 + 1 + 2) / 6)


def block(*launches: Launch) -> list[Launch]:
    return list(launches)


def test_measured_lags_are_held_against_the_bound_of_those_without_a_barrier(metrics: dict[str, Metric]) -> None:
    over = metrics["mean_lag_over_bound"].block
    assert over is not None
    begins = Event("step", 4.0, 5.0, ranks=(1,))
    free = launch({"name": "server"}, *finishes((1, 4.0, 3), (2, 4.0, 3), (3, 4.0, 3), (4, 4.0, 1)), begins)
    sampled = {"name": "probabilistic_barrier", "sample": 2, "staleness": 1}
    held = launch(sampled, *finishes((1, 4.0, 3), (2, 4.0, 3), (3, 4.0, 3), (4, 4.0, 2)), begins)
    bound = BOUNDS.mean_bound(2 / 3, 2, 1, 3)
    assert over(block(free, held), None) == pytest.approx((1 / 3) / bound)
    assert over(block(held), None) is None and over(block(free), None) is None


def test_each_statement_of_the_order_counts_a_quarter(metrics: dict[str, Metric]) -> None:
    kept = metrics["barrier_orders_kept"].block
    assert kept is not None

    def arms(**steps: list[float]) -> list[Launch]:
        strategies: dict[str, dict[str, Any]] = {
            "bsp": {"name": "server", "bound": 0},
            "ssp": {"name": "server", "bound": 4},
            "asp": {"name": "server"},
            "pbsp": {"name": "probabilistic_barrier", "sample": 2},
            "pssp": {"name": "probabilistic_barrier", "sample": 2, "staleness": 4},
        }
        usual: dict[str, list[float]] = {
            "bsp": [3] * 4,
            "pbsp": [5, 5, 6, 6],
            "ssp": [6] * 4,
            "pssp": [7] * 4,
            "asp": [4, 8, 10, 14],
        }
        return [
            launch(strategies[name], *finishes(*((rank, 1.0, value) for rank, value in enumerate(each, 1))))
            for name, each in {**usual, **steps}.items()
        ]

    assert kept(arms(), None) == 1.0
    assert kept(arms(pssp=[5] * 4), None) == 0.75
    assert kept(arms(pbsp=[9, 9, 10, 10]), None) == 0.75, "not behind asynchronous workers"
    assert kept(arms(pbsp=[1, 3, 7, 11]), None) == 0.75, "as far apart as asynchronous workers"
    assert kept(arms()[:-1], None) is None


def test_falls_of_accuracy_add_up_in_the_order_of_steps(metrics: dict[str, Metric]) -> None:
    courses = [0.2, 0.6, 0.5, 0.7, 0.4]
    made = [
        Event("test_accuracy", 1.0, 1.0, ranks=(0,), step=step, value=accuracy)
        for step, accuracy in reversed(list(enumerate(courses)))
    ]
    of = launch({"name": "server"}, *made, evaluate_every=1)
    assert value(metrics["accuracy_falls"], of) == pytest.approx(0.4)
    assert value(metrics["mean_accuracy"], of) == pytest.approx(0.48)


@pytest.mark.parametrize(("kept", "verdict"), [(1.0, "reproduced"), (0.75, "not reproduced")])
def test_one_statement_that_fails_refutes_the_order(kept: float, verdict: str) -> None:
    assert judged("psp2017.order", with_value("psp2017.order", kept)).verdict == verdict
