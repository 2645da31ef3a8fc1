"""Nodes that are switched off in helios2021: the rule, what forecasts may know, and series of used nodes."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from scaleproof.programs.own import load_entry
from scaleproof.spec.errors import SpecError

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "helios2021" / "programs"
load_entry(PROGRAMS, "node_saving")
saving_rule, forecasts, node_series, node_saving, artifact = (
    importlib.import_module(f"suite_programs.{name}")
    for name in ("saving_rule", "forecasts", "node_series", "node_saving", "artifact_features")
)
RULE = saving_rule.Thresholds(history=2, future=3, fell=1, will_fall=1, least=1, buffer=2, keep=4)
DAY = 144


def course(used: list[int], predicted: float, total: int = 50) -> list[int]:
    nodes = np.array(used)
    found = saving_rule.switched(nodes, np.full((len(used), 6), predicted), total, RULE)
    assert found.short == 0
    return found.active.tolist()


def test_nodes_go_off_only_where_use_fell_and_will_fall() -> None:
    used = [20] * 8 + [10] * 3
    assert course(used, predicted=5.0)[8:] == [12, 12, 12]
    assert course(used, predicted=10.0)[8:] == [22, 22, 22]  # it will not fall further


def test_more_use_than_nodes_wakes_some_and_freezes_the_rule() -> None:
    used = [20] * 8 + [30, 20, 20, 20, 20, 20]
    found = saving_rule.switched(np.array(used), np.full((len(used), 6), 0.0), 50, RULE)
    assert found.wakes == 1 and found.nodes_of_wake == 10 and found.active[8:12].tolist() == [32] * 4


def test_no_more_nodes_are_on_than_there_are() -> None:
    assert max(course([49] * 7 + [50] * 3, predicted=60.0)) == 50


@pytest.mark.parametrize("kind", ["linear", "causal", "aged", "yesterday", "last"])
def test_a_causal_forecast_does_not_change_with_the_future(kind: str) -> None:
    if kind in forecasts.NEEDS_LIGHTGBM:
        pytest.importorskip("lightgbm", reason="extra helios2021 (type: python3 -m tools.setup extras helios2021)")
    used = node_series.generated(143, 20, 1)
    now, train = 15 * DAY, 10 * DAY
    changed = used.copy()
    changed[now:] = 0
    ours, theirs = (forecasts.forecasts(series, train, 36, 1, kind)[now] for series in (used, changed))
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["linear", "causal"])
def test_a_causal_forecast_of_the_next_hour_uses_the_last_hour(kind: str) -> None:
    if kind in forecasts.NEEDS_LIGHTGBM:
        pytest.importorskip("lightgbm", reason="extra helios2021 (type: python3 -m tools.setup extras helios2021)")
    used = node_series.generated(143, 20, 1)
    now, train = 15 * DAY, 10 * DAY
    changed = used.copy()
    changed[now - 5 : now] -= 30
    ours, theirs = (forecasts.forecasts(series, train, 36, 1, kind)[now] for series in (used, changed))
    assert theirs[5] < ours[5] - 5  # of the model whose features are 6 steps old


def test_the_features_of_the_artifact_look_ahead() -> None:
    """29 steps after a forecast is made they are from 1 hour before that step."""
    used, first = node_series.generated(143, 20, 1), np.datetime64("2020-09-01T00:00:00")
    changed = used.copy()
    changed[15 * DAY :] = 0
    made = [artifact.artifact_features(series, first, True)[15 * DAY + 35] for series in (used, changed)]
    older = [artifact.artifact_features(series, first, True, 36)[15 * DAY + 35] for series in (used, changed)]
    assert not np.array_equal(*made) and np.array_equal(*older)


def test_features_of_the_artifact_by_hand() -> None:
    used = np.arange(60)
    found = artifact.artifact_features(used, np.datetime64("2020-06-24T22:00:00"), True)[30]
    assert found[:8].tolist() == [2020, 6, 25, 3, 0, 3, 177, 26]  # a Thursday of week 26
    assert found[8:14].tolist() == pytest.approx([23, 23, 1, 21.5, 21.5, np.std(np.arange(6), ddof=1)])
    assert found[14:].tolist() == [12, 12, 1, 0]  # 3 hours before, about that, a day off, no deadline
    assert artifact.artifact_features(used, np.datetime64("2017-12-01T00:00:00"), False).shape == (60, 16)
    days = artifact.days_off_and_deadlines(np.datetime64("2020-08-29T00:00:00"), 144 * 14)[::144]
    assert days[:, 0].tolist() == [1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert days[:, 1].tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]  # 31 August to 9 September
    assert artifact.days_off_and_deadlines(np.datetime64("2020-06-28T12:00:00"), 1).tolist() == [[0, 0]]  # a Sunday


def test_a_constant_series_wakes_nothing_and_saves_all_but_the_buffer() -> None:
    used = node_series.generated(143, 30, 1, "constant")
    made = forecasts.forecasts(used, 5 * DAY, 36, 1, "linear")
    found = saving_rule.switched(used, made, 143, saving_rule.thresholds_of("earth"))
    assert found.wakes == 0 and set(found.active.tolist()) == {int(used[0]) + 5}


def test_series_of_controls() -> None:
    full = node_series.generated(143, 30, 1, "full")
    found = saving_rule.switched(full, np.full((len(full), 36), 143.0), 143, saving_rule.thresholds_of("earth"))
    assert set(full) == set(found.active) == {143}
    days = node_series.generated(143, 3, 1, "equal_days")
    assert np.array_equal(days[:DAY], days[DAY : 2 * DAY]) and np.ptp(days) > 10
    with pytest.raises(SpecError, match="options.shape: unknown value 'flat'"):
        node_series.generated(143, 3, 1, "flat")


def test_used_nodes_are_the_most_within_a_step() -> None:
    begins, ends = np.array([0.0, 100.0, 700.0]), np.array([300.0, 200.0, 1900.0])
    assert node_series.counted(begins, ends, np.array([2, 3, 1]), 0.0, 2400.0).tolist() == [5, 1, 1, 1]


def test_errors_of_forecasts() -> None:
    used = np.array([10, 20, 30])
    found = node_saving.errors(used, np.array([[10.0, 20.0], [20.0, 36.0], [0.0, 0.0]]))
    assert found["forecast_rmse"] == pytest.approx(3.0) and found["forecast_smape"] == pytest.approx(100 * (6 / 33) / 4)


def test_unknown_forecasts_and_clusters_are_named() -> None:
    with pytest.raises(SpecError, match="options.forecast: unknown value 'oracles'; did you mean 'oracle'"):
        forecasts.forecasts(np.arange(10), 5, 2, 1, "oracles")
    with pytest.raises(SpecError, match="options.cluster: unknown value 'mars'"):
        saving_rule.thresholds_of("mars")
