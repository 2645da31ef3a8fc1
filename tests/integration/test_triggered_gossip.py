"""Gossip that waits for the parameters to change: both ends of its threshold, its measures, and a threshold that
falls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scaleproof.simulate.predict import Predictor
from scaleproof.spec.plan import PlannedLaunch
from tests.short_form import train_case

STEPS = 8
FREE: dict[str, Any] = {
    "transport": "tcp",
    "workload": "dnn_digits",
    "data": "digits",
    "minibatch": 48,
    "ranks": 4,
    "steps": STEPS,
    "warmup": 0,
    "learning_rate": 0.05,
    "fabric": {"name": "simulated", "link_mbit": 1000, "gamma_times": 0},
    "compute": {"name": "real", "profile": "xeon_e5_2698v3_x2", "efficiency": 0.001},
}
"""Own arithmetic takes no time, so that strategies that exchange alike have the same times."""


def learned(folder: Path, **strategy: Any) -> pd.DataFrame:
    case = train_case(**{**FREE, "strategy": strategy})
    return Predictor(folder).predict(PlannedLaunch(case, 0, 1000, 0)).samples.to_pandas()


def losses(samples: pd.DataFrame) -> list[float]:
    return list(samples[samples.event.isin(["loss", "test_loss"])].sort_values(["event", "rank", "step"]).value)


def exchanges(samples: pd.DataFrame) -> int:
    return int((samples.event == "call").sum())


@pytest.mark.parametrize("form", ["pull", "push_pull"])
def test_a_threshold_of_0_is_an_exchange_in_every_step_bit_for_bit(tmp_path: Path, form: str) -> None:
    triggered = learned(tmp_path, name="triggered_gossip", theta=0, form=form)
    fixed = learned(tmp_path, name="gossip", tau=1, form=form)
    assert losses(triggered) == losses(fixed)
    assert exchanges(triggered) == exchanges(fixed) == 4 * STEPS


def test_a_threshold_that_is_never_reached_is_no_exchange(tmp_path: Path) -> None:
    never = learned(tmp_path, name="triggered_gossip", theta=1e9)
    assert exchanges(never) == 0
    assert losses(never) == losses(learned(tmp_path, name="gossip", tau=1000))
    assert losses(never) != losses(learned(tmp_path, name="gossip", tau=1))


@pytest.mark.parametrize("measure", ["l2", "layer_max", "mean_absolute"])
def test_an_exchange_begins_when_the_change_reaches_the_threshold_and_counts_anew(tmp_path: Path, measure: str) -> None:
    theta = float(
        learned(tmp_path, name="triggered_gossip", theta=1e9, measure=measure).query("event == 'change'").value.median()
    )
    samples = learned(tmp_path, name="triggered_gossip", theta=theta, measure=measure)
    for rank in range(4):
        rows = samples[samples["rank"] == rank]
        changes = rows[rows.event == "change"].set_index("step").value
        called = rows[rows.event == "call"].step.tolist()
        assert called and called == changes[changes >= theta].index.tolist()
        after = [step + 1 for step in called if step + 1 < STEPS]
        assert np.all(changes.loc[after] < theta), "of one step, from the parameters after the exchange"


def test_a_threshold_that_falls_starts_more_exchanges(tmp_path: Path) -> None:
    steady, falling = (
        exchanges(learned(tmp_path, name="triggered_gossip", theta=0.2, decay=decay)) for decay in (1.0, 0.5)
    )
    assert falling > steady
