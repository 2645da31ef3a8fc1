"""Barriers between steps in virtual time: no worker begins a step before those that it waits for are near enough, and
sampled barriers end in the central ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.simulate.predict import Predictor
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.strategies.server import Server
from tests.short_form import train_case

WORKERS, SECONDS = 12, 40.0
BASE: dict[str, Any] = {
    "transport": "tcp",
    "workload": "linear_regression",
    "ranks": WORKERS + 1,
    "minibatch": WORKERS,
    "steps": 100,
    "warmup": 0,
    "seconds": SECONDS,
    "fabric": {"name": "simulated", "messages": "free", "gamma_times": 0},
    "compute": {"name": "replay", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.5},
}
SAMPLED = "probabilistic_barrier"
UNEVEN, EVEN = "fixed:1+exponential:1", "fixed:1.9"


def ran(tmp_path: Any, strategy: dict[str, Any], **fields: Any) -> pd.DataFrame:
    case = train_case(**{**BASE, "step_delay": UNEVEN, **fields, "strategy": strategy})
    return Predictor(tmp_path).predict(PlannedLaunch(case, 0, 1000, 0)).samples.to_pandas()


def finished(samples: pd.DataFrame) -> np.ndarray:
    """Steps of each worker within the seconds."""
    rows = samples[(samples.event == "finished") & (samples.end_ns <= SECONDS * 1e9)]
    counts: np.ndarray = rows.groupby("rank").value.max().reindex(range(1, WORKERS + 1), fill_value=0).to_numpy()
    return counts


def furthest(samples: pd.DataFrame) -> float:
    """Most steps that a worker which begins a step is ahead of the slowest, while all go on."""
    rows = samples[samples.event.isin(["finished", "step"])].copy()
    rows["at"] = np.where(rows.event == "step", rows.start_ns, rows.end_ns)
    rows = rows[rows["at"] <= SECONDS * 1e9].sort_values(["at", "event"], kind="stable")
    steps, most = np.zeros(WORKERS), 0.0
    for rank, event, value in zip(rows["rank"], rows.event, rows.value, strict=True):
        if event == "finished":
            steps[rank - 1] = value
        else:
            most = max(most, steps[rank - 1] - steps.min())
    return most


@pytest.mark.parametrize("bound", [0, 1, 4])
@pytest.mark.parametrize("central", [True, False], ids=["server", "sample of all"])
def test_no_worker_begins_a_step_further_ahead_than_the_bound(tmp_path: Any, bound: int, central: bool) -> None:
    strategy = {"name": "server", "bound": bound} if central else {"name": SAMPLED, "staleness": bound}
    assert furthest(ran(tmp_path, strategy)) == bound


def bound_checks(tmp_path: Any, bound: int | None) -> list[dict[str, Any]]:
    case = train_case(**{**BASE, "step_delay": UNEVEN, "strategy": {"name": "server", "bound": bound}})
    assert case.replicas is not None and case.replicas.invariant(case) == ("apart" if bound is None else "bounded")
    checks = Predictor(tmp_path).predict(PlannedLaunch(case, 0, 1000, 0)).checks
    return [check for check in checks if check["name"] == "bound"]


def test_a_server_checks_the_bound_that_it_promises(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept,) = bound_checks(tmp_path, 2)
    assert kept["passed"] and kept["detail"] == "a worker was 3 steps ahead of the slowest at most; 3 are allowed"
    assert not bound_checks(tmp_path, None)
    monkeypatch.setattr(Server, "_may_go", lambda *_: True)
    (broken,) = bound_checks(tmp_path, 2)
    assert not broken["passed"]


def held_s(samples: pd.DataFrame) -> float:
    return float(samples[samples.event == "barrier_s"].value.sum())


def test_waiting_at_a_central_barrier_is_noted_by_the_server_and_falls_with_the_bound(tmp_path: Any) -> None:
    none, tight, loose = (ran(tmp_path, {"name": "server", "bound": bound}) for bound in (None, 0, 4))
    assert not (none.event == "barrier_s").any()
    assert set(tight[tight.event == "barrier_s"]["rank"]) == {0}
    assert held_s(tight) > 2 * held_s(loose) > 0
    even = ran(tmp_path, {"name": "server", "bound": 0}, step_delay=EVEN)
    assert held_s(even) < 0.01 * held_s(tight)


def test_without_a_barrier_workers_drift_apart(tmp_path: Any) -> None:
    assert furthest(ran(tmp_path, {"name": "server"})) > 4


def test_a_sample_of_none_is_no_barrier(tmp_path: Any) -> None:
    without, none = (ran(tmp_path, each) for each in ({"name": "server"}, {"name": SAMPLED, "sample": 0}))
    pd.testing.assert_frame_equal(without, none)


@pytest.mark.parametrize("bound", [0, 4])
def test_a_sample_of_all_others_is_the_central_barrier_but_for_polls(tmp_path: Any, bound: int) -> None:
    central = finished(ran(tmp_path, {"name": "server", "bound": bound}))
    polled = finished(ran(tmp_path, {"name": SAMPLED, "staleness": bound, "poll_s": 0.001}))
    assert np.abs(central - polled).max() <= 1 and abs(central.mean() - polled.mean()) < 0.2


def test_larger_samples_take_fewer_steps_and_keep_workers_nearer(tmp_path: Any) -> None:
    by_sample = [finished(ran(tmp_path, {"name": SAMPLED, "sample": size})) for size in (0, 2, WORKERS - 1)]
    means, spreads = [each.mean() for each in by_sample], [each.std() for each in by_sample]
    assert means == sorted(means, reverse=True) and spreads == sorted(spreads, reverse=True)


def test_asking_the_same_peers_again_waits_longer(tmp_path: Any) -> None:
    new, same = (
        finished(ran(tmp_path, {"name": SAMPLED, "sample": 2, "resample": each})).mean()
        for each in ("each_poll", "once")
    )
    assert same < new


@pytest.mark.parametrize(
    "strategy", [{"name": "server", "bound": 0}, {"name": SAMPLED, "sample": 2}, {"name": SAMPLED}]
)
def test_where_all_steps_last_equally_long_a_barrier_costs_two_polls_a_step_at_most(
    tmp_path: Any, strategy: dict[str, Any]
) -> None:
    steps = finished(ran(tmp_path, strategy, step_delay=EVEN))
    assert steps.max() <= SECONDS // 1.9 and steps.min() >= SECONDS // 2.1 - 1


def test_every_poll_asks_the_whole_sample(tmp_path: Any) -> None:
    samples = ran(tmp_path, {"name": SAMPLED, "sample": 3})
    asked, waited = (samples[samples.event == event].value.to_numpy() for event in ("control", "barrier_s"))
    assert len(asked) == len(waited) and asked.sum() == 3 * (1 + np.rint(waited / 0.1)).sum()


def test_a_timed_network_that_costs_almost_nothing_gives_the_steps_of_free_messages(tmp_path: Any) -> None:
    timed = {"fabric": {"name": "simulated", "alpha_times": 0, "beta_times": 1e-9, "gamma_times": 0}}
    strategy = {"name": SAMPLED, "sample": 3}
    free, costly = finished(ran(tmp_path, strategy)), finished(ran(tmp_path, strategy, **timed))
    assert np.abs(free - costly).max() <= 1 and abs(free.mean() - costly.mean()) < 0.5
