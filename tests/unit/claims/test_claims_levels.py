"""Claims about the difference between two levels of evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.claims.estimate import answer
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.level_difference import case_differences, largest, level_independent_key, summary
from scaleproof.claims.metrics import METRICS
from scaleproof.claims.note_sentences import note_sentence
from scaleproof.claims.question import Measurement, Question
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.stats.intervals import median
from tests.unit.claims.claims_samples import TRAIN, record, samples
from tests.unit.claims.test_judge import judged

EMULATED: dict[str, Any] = {
    "fabric": "netns",
    "compute": "replay",
    "nodes": 2,
    "dilation": 4,
    "shrink": 2,
    "interface": "eth0",
}


def launches(*cases: tuple[dict[str, Any], float]) -> list[tuple[Launch, float]]:
    return [(Launch(record({**TRAIN, **case}), samples()), value) for case, value in cases]


def test_cases_that_differ_in_how_they_were_run_are_one_case() -> None:
    (measured, _), (emulated, _), (other, _) = launches(({}, 1), (EMULATED, 1), ({**EMULATED, "link_mbit": 100}, 1))
    assert (
        level_independent_key(measured.record.case)
        == level_independent_key(emulated.record.case)
        != level_independent_key(other.record.case)
    )


def test_each_case_counts_once_with_the_median_of_its_launches() -> None:
    below = launches(({}, 100), ({}, 90), ({}, 110), ({"minibatch": 16}, 200), ({"minibatch": 32}, 1))
    above = launches((EMULATED, 95), ({**EMULATED, "minibatch": 16}, 230))
    differences = case_differences(above, below)
    assert [difference.share for difference in differences] == [pytest.approx(-0.05), pytest.approx(0.15)]
    assert note_sentence(largest(differences)) == "furthest apart: +15.0% (gloo, cd_dnn, 2 ranks)"
    assert summary(differences, median) == (pytest.approx(0.1), None)
    assert summary(differences, max) == (pytest.approx(0.15), None)


def test_points_are_differences_of_shares_and_not_relative_to_them() -> None:
    below = launches(({}, 0.05), ({"minibatch": 16}, 0.45))
    above = launches((EMULATED, 0.04), ({**EMULATED, "minibatch": 16}, 0.47))
    differences = case_differences(above, below, points=True)
    assert [difference.share for difference in differences] == [pytest.approx(-0.01), pytest.approx(0.02)]
    assert note_sentence(largest(differences)) == "furthest apart: +2.0 points (gloo, cd_dnn, 2 ranks)"
    assert [abs(each.share) for each in case_differences(above, below)][0] == pytest.approx(0.2)


def predicted_over_measured(repetitions: int, upside_down: bool = False) -> Measurement:
    """A prediction of 100 samples/s whose draws spread by 10 %, and launches of 80 that spread by 1 %."""
    dice = np.random.default_rng(3)
    draws = [100.0, *(100 * np.exp(dice.normal(0, 0.1, repetitions - 1)))]
    steps = {"simulated": draws, "measured": list(80 * np.exp(dice.normal(0, 0.01, repetitions)))}
    sides = {
        evidence: [
            Launch(record(TRAIN, number, evidence=evidence), samples(*timed_steps(8000 / rate)))
            for number, rate in enumerate(rates)
        ]
        for evidence, rates in steps.items()
    }
    pool: Any = SimpleNamespace(launches=lambda select, evidence: sides[evidence])
    upper, lower = ("measured", "simulated") if upside_down else ("simulated", "measured")
    question = Question(METRICS["speedup"], {}, {}, base_evidence=lower)  # type: ignore[arg-type]
    measurement = answer(question, pool, upper)  # type: ignore[arg-type]
    assert (
        measurement is not None
        and measurement.estimate.interval is not None
        and measurement.estimate.difference is not None
    )
    return measurement


@pytest.mark.parametrize(("points", "expected"), [(False, 200 / 160 - 1), (True, 200 - 160)])
def test_a_metric_in_points_is_estimated_by_differences(points: bool, expected: float) -> None:
    sides = {
        evidence: [Launch(record(TRAIN, evidence=evidence), samples(*timed_steps(16000 / rate)))]
        for evidence, rate in (("emulated", 200), ("measured", 160))
    }
    pool: Any = SimpleNamespace(launches=lambda select, evidence: sides[evidence])
    metric = replace(METRICS["level_error"], points=points)
    found = answer(Question(metric, {}, {}, base_evidence="measured"), pool, "emulated")
    assert found is not None and found.estimate.ours == pytest.approx(expected)


def timed_steps(length_ms: float) -> list[tuple[Any, ...]]:
    return [(rank, event, 0, at, at) for rank in range(2) for event, at in (("start", 0), ("end", length_ms))] + [
        (rank, "step", number, number * length_ms / 2, (number + 1) * length_ms / 2)
        for rank in range(2)
        for number in range(2)
    ]


@pytest.mark.parametrize("upside_down", [False, True])
def test_more_draws_of_a_prediction_do_not_narrow_its_ratio_to_launches(upside_down: bool) -> None:
    widths = []
    for repetitions in (12, 60):
        estimate = predicted_over_measured(repetitions, upside_down).estimate
        assert (
            estimate.interval is not None
            and estimate.difference is not None
            and estimate.difference.interval is not None
        )
        assert estimate.ours == pytest.approx(0.8 if upside_down else 1.25, rel=0.01), (
            "the prediction itself, over the median of launches"
        )
        assert estimate.interval.low < estimate.ours < estimate.interval.high and estimate.difference.p_value is None
        assert (estimate.difference.interval.low, estimate.difference.interval.high) == pytest.approx(
            (estimate.interval.low, estimate.interval.high)
        )
        widths.append(np.log(estimate.interval.high / estimate.interval.low))
    assert min(widths) > 2 * 1.96 * 0.1 * 0.9, "draws of 10 % leave this open, however many there are"


CLAIM: dict[str, Any] = {
    "id": "mine.own.levels",
    "origin": "own",
    "statement": "s",
    "unit": "fraction",
    "direction": "lower",
    "experiment": "speed",
    "metric": "level_error",
    "select": {"transport": "tcp", "ranks": 2},
    "against": {"transport": "tcp", "ranks": 2},
    "base_evidence": "measured",
    "rule": {"name": "at_most", "value": 0.08},
}
SWEPT = "sweep: {minibatch: [16, 32, 64, 128, 256, 512]}"
BOTH = f"{{arms: [tcp], {SWEPT}}}, {{arms: [tcp], set: {{fabric: netns, compute: replay}}, {SWEPT}}}, "


def replayed(launch: PlannedLaunch) -> dict[str, Any]:
    return {"evidence": "emulated"} if getattr(launch.case, "compute", "") == "replay" else {}


@pytest.mark.parametrize(("replay_ms", "verdict"), [(104, "reproduced"), (125, "not reproduced")])
def test_a_level_is_judged_against_the_one_below_it(tmp_path: Path, replay_ms: float, verdict: str) -> None:
    result = judged(tmp_path, CLAIM, lambda launch: replay_ms if replayed(launch) else 100, replayed, BOTH)
    assert (result.evidence, result.verdict, result.n) == ("emulated", verdict, 6)
    assert result.ours == pytest.approx(1 - 100 / replay_ms) and result.interval is not None
    assert "over cases: order statistics of 6" in result.rule and "furthest apart: -" in result.reason
    assert "planned launches finished" not in result.reason, "those of the other level are not this one's"


def test_a_missing_launch_is_counted_at_its_own_level(tmp_path: Path) -> None:
    def finished(launch: PlannedLaunch) -> dict[str, Any] | None:
        missing = launch.plan_index == 5 and launch.case.minibatch == 16  # type: ignore[union-attr]
        return None if missing else replayed(launch)

    result = judged(tmp_path, CLAIM, lambda launch: 100, finished, BOTH)
    assert "35 of 36 planned launches finished" in result.reason


def test_a_ratio_may_stand_against_another_level(tmp_path: Path) -> None:
    claim = {
        **CLAIM,
        "metric": "speedup",
        "select": {"minibatch": 16},
        "against": {"minibatch": 16},
        "rule": {"name": "ratio", "low": 0.9, "high": 1.0},
    }
    result = judged(tmp_path, claim, lambda launch: 104 if replayed(launch) else 100, replayed, BOTH)
    assert (result.evidence, result.ours) == ("emulated", pytest.approx(100 / 104))
