"""Claims about how far two levels of evidence are apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.claims.launch import Launch
from harness.claims.levels import apart, asked, largest, summary
from harness.spec.plan import PlannedLaunch
from harness.stats.intervals import median
from tests.unit.claims_samples import TRAIN, record, samples
from tests.unit.test_judge import judged

EMULATED: dict[str, Any] = {"fabric": "netns", "compute": "replay", "nodes": 2, "dilation": 4, "shrink": 2, "interface": "eth0"}


def launches(*cases: tuple[dict[str, Any], float]) -> list[tuple[Launch, float]]:
    return [(Launch(record({**TRAIN, **case}), samples()), value) for case, value in cases]


def test_cases_that_differ_in_how_they_were_run_are_one_case() -> None:
    (measured, _), (emulated, _), (other, _) = launches(({}, 1), (EMULATED, 1), ({**EMULATED, "link_mbit": 100}, 1))
    assert asked(measured.record.case) == asked(emulated.record.case) != asked(other.record.case)


def test_each_case_counts_once_with_the_median_of_its_launches() -> None:
    below = launches(({}, 100), ({}, 90), ({}, 110), ({"minibatch": 16}, 200), ({"minibatch": 32}, 1))
    above = launches((EMULATED, 95), ({**EMULATED, "minibatch": 16}, 230))
    found = apart(above, below)
    assert [one.share for one in found] == [pytest.approx(-0.05), pytest.approx(0.15)]
    assert largest(found) == "furthest apart: +15.0% (gloo, cd_dnn, 2 ranks)"
    assert summary(found, median) == (pytest.approx(0.1), None)
    value, interval = summary(found, max)
    assert value == pytest.approx(0.15) and interval is not None and interval.low == interval.high == value


CLAIM: dict[str, Any] = {
    "id": "mine.own.levels", "origin": "own", "statement": "s", "unit": "fraction", "direction": "lower", "experiment": "speed", "metric": "level_error",
    "select": {"transport": "tcp", "ranks": 2}, "against": {"transport": "tcp", "ranks": 2},
    "base_evidence": "measured", "rule": {"name": "at_most", "value": 0.08},
}  # fmt: skip
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


def test_a_ratio_may_stand_against_another_level(tmp_path: Path) -> None:
    claim = {**CLAIM, "metric": "speedup", "select": {"minibatch": 16}, "against": {"minibatch": 16}, "rule": {"name": "ratio", "low": 0.9, "high": 1.0}}
    result = judged(tmp_path, claim, lambda launch: 104 if replayed(launch) else 100, replayed, BOTH)
    assert (result.evidence, result.ours) == ("emulated", pytest.approx(100 / 104))
