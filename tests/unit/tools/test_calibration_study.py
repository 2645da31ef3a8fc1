"""The study of false alarms: its arithmetic on generated launches, and its rates recomputed from the stored values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools.calibration_study import design, values_file
from tools.calibration_study.__main__ import OUTCOME, VALUES


def study(noise: float, slowdown: float = 0.05, between_arms: float = 0.0, launches: int = 10) -> design.Values:
    """Launches of a made-up machine; with `between_arms` arm b wrongly differs from arm a."""
    generator, counts = np.random.default_rng(11), design.repetitions(launches)
    drift = generator.normal(0, 0.1, max(counts.values()))  # from block to block, for all arms alike
    levels = {"a": 1.0, "b": 1.0 + between_arms, "slowed": 1.0 + slowdown}
    arms = {
        arm: list(level * np.exp(drift[: counts[arm]] + generator.normal(0, noise, counts[arm])))
        for arm, level in levels.items()
    }
    return design.Values(launches, arms)


def test_on_a_quiet_machine_everything_is_shown() -> None:
    outcome = design.outcome(study(0.01))
    assert outcome["floor_allows"] and outcome["false_alarms"]["of"] == 200 and outcome["found"]["of"] == 100
    assert (
        outcome["found"]["rate"] >= 0.95
        and outcome["false_alarms"]["rate"] <= outcome["false_alarms_of_the_test_alone"]["rate"] <= 0.09
    )
    assert outcome["slowdown_measured"] == pytest.approx(0.05, abs=0.003)
    assert all(design.verdicts(outcome).values())


def test_on_a_noisy_machine_the_slowdown_is_mostly_inconclusive() -> None:
    outcome = design.outcome(study(0.1))
    assert (
        not outcome["floor_allows"]
        and outcome["found"]["rate"] < 0.1
        and outcome["findings_on_the_slowdown"]["inconclusive"] > 75
    )


def test_arms_that_do_differ_raise_too_many_alarms() -> None:
    verdicts = design.verdicts(design.outcome(study(0.01, between_arms=0.03)))
    assert not verdicts["false alarms within 5 %"]


def test_a_slowdown_that_is_not_there_is_not_shown() -> None:
    assert sum(design.verdicts(design.outcome(study(0.01, slowdown=0.0))).values()) < 4


def test_every_comparison_has_launches_of_its_own() -> None:
    values = design.Values(
        10, {arm: [float(number) for number in range(count)] for arm, count in design.repetitions(10).items()}
    )
    used = [value for number in range(design.SAME) for value in values.comparison("b", number)[0]]
    assert used == [float(number) for number in range(design.FLOOR_BLOCKS, design.FLOOR_BLOCKS + 100 * 10 + 100 * 6)]
    assert values.comparison("slowed", 99)[0] == values.comparison("a", 99)[0] == used[990:1000]
    planned = design.planned(10)
    assert (
        len(planned)
        == len({(launch.case.case_id, launch.plan_index) for launch in planned})
        == 3 * design.FLOOR_BLOCKS + 3 * 1000 + 2 * 600
    )


def test_values_and_digests_come_back_as_they_were(tmp_path: Path) -> None:
    values, digests = study(0.01, launches=6), {("a", 0): [5, 3, 4], ("slowed", 629): [7]}
    values_file.write(tmp_path / "values.parquet", values.arms, digests)
    assert values_file.read(tmp_path / "values.parquet", 6) == (values, digests)


def kept_study() -> tuple[design.Values, dict[tuple[str, int], list[int]], dict[str, Any]]:
    stored = json.loads(OUTCOME.read_text())
    return *values_file.read(VALUES, stored["outcome"]["launches_per_arm"]), stored


def test_the_rates_of_the_stored_study_follow_from_its_values() -> None:
    values, _, stored = kept_study()
    again = design.outcome(values)
    assert json.loads(json.dumps(again)) == stored["outcome"]
    assert all(design.verdicts(again).values())
    assert stored["median_launch_s"] < 1


def test_the_values_of_the_stored_study_follow_from_its_digests() -> None:
    values, digests, _ = kept_study()
    assert {arm for arm, _ in digests} == set(design.ARMS)
    for (arm, block), durations in digests.items():
        assert len(durations) == 300
        assert values.arms[arm][block] == pytest.approx(design.median_s(durations), rel=1e-5)


def test_the_docs_give_the_stored_results() -> None:
    stored = json.loads(OUTCOME.read_text())["outcome"]
    text = (Path(__file__).parents[3] / "docs" / "calibration.md").read_text()
    for name in ("false_alarms", "false_alarms_of_the_test_alone", "found"):
        rate = stored[name]
        low, high = (f"{100 * rate[end]:.1f}".removesuffix(".0") for end in ("low", "high"))
        assert f"| {rate['count']} of {rate['of']} | {low} to {high} % |" in text
    percentages = {
        "spreads by": stored["spread"],
        "noise floor of": stored["noise_floor"],
        "comparisons from": stored["detectable"],
    }
    assert all(f"{label} {100 * value:.1f} %" in text for label, value in percentages.items())
