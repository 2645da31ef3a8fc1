"""Launches of several campaigns behind one verdict: pairs within a campaign, intervals around all of them, and verdicts
that one campaign alone can take back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.claims.judge import judge_suite
from scaleproof.record.store import Store
from scaleproof.record.table import collect
from scaleproof.results.merge import merge
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite, load_suite
from tests.noise_floors import calibrate_for_suite
from tests.unit.claims.test_judge import SPEEDUP, SUITE, commit

STEP = {**SPEEDUP, "metric": "step_s", "unit": "s", "against": None, "rule": {"name": "at_most", "value": 0.11}}
ORDER = {**SPEEDUP, "direction": "lower", "metric": "step_s", "unit": "s", "against": {"transport": "tcp"}} | {
    "rule": {"name": "ordering"}
}
QUALITY = {
    **SPEEDUP,
    "metric": "test_accuracy",
    "unit": "fraction",
    "against": None,
    "rule": {"name": "at_least", "value": 0.5},
}
Length = Callable[[PlannedLaunch], float]


def two_campaigns(tmp_path: Path, claim: dict[str, Any], campaigns: int = 2) -> Suite:
    folder = tmp_path / "mine"
    folder.mkdir(exist_ok=True)
    (folder / "suite.yaml").write_text(SUITE.replace("launches: 6", f"launches: 6\n        campaigns: {campaigns}"))
    claim = {name: value for name, value in claim.items() if value is not None}
    (folder / "claims.yaml").write_text(yaml.safe_dump([claim]))
    return load_suite("mine", tmp_path)


def run(suite: Suite, store: Store, length: Length, name: str = "x", day: int = 1) -> None:
    """All launches of the plan, campaign after campaign."""
    for launch in plan(suite, "speed", "smoke"):
        moment = f"2026-01-{day + launch.campaign:02}T00:{launch.order // 60:02}:{launch.order % 60:02}Z"
        of_campaign = {"campaign": launch.campaign, "campaign_id": f"{name}{launch.campaign}"}
        fields = {"launch": f"{launch.case.case_id}-{launch.plan_index}{name}", "started_at": moment, **of_campaign}
        commit(store, launch, length(launch), {**fields, "accuracy": 0.5 + launch.plan_index / 100})


def judged(tmp_path: Path, claim: dict[str, Any], length: Length) -> ClaimResult:
    suite, store = two_campaigns(tmp_path, claim), Store(tmp_path / "results")
    calibrate_for_suite(store.results, suite, "smoke")
    run(suite, store, length)
    (result,) = judge_suite(suite, "smoke", store)
    return result


def test_all_launches_of_two_campaigns_count_and_their_number_is_said(tmp_path: Path) -> None:
    result = judged(tmp_path, STEP, lambda launch: 100 + launch.plan_index / 10)
    assert (result.verdict, result.n, result.campaigns) == ("reproduced", 12, 2)
    assert result.interval is not None and result.interval.method == "order statistics, around 2 campaigns"


def test_campaigns_on_opposite_sides_of_the_bound_decide_nothing(tmp_path: Path) -> None:
    result = judged(tmp_path, STEP, lambda launch: 100 if launch.campaign == 0 else 120)
    assert result.verdict == "inconclusive"
    assert result.interval is not None
    assert (result.interval.low, result.interval.high) == pytest.approx((0.1, 0.12))


def test_ratios_are_paired_within_a_campaign(tmp_path: Path) -> None:
    """A campaign that is three times as slow for both sides changes nothing."""

    def length(launch: PlannedLaunch) -> float:
        return (200 if launch.case.ranks == 1 else 100) * (3 if launch.campaign else 1) * (1 + launch.plan_index / 10)

    result = judged(tmp_path, SPEEDUP, length)
    assert result.interval is not None
    assert (result.interval.low, result.interval.high) == pytest.approx((2, 2))
    assert (result.verdict, result.n) == ("reproduced", 12)


def test_an_order_that_one_campaign_reverses_is_inconclusive(tmp_path: Path) -> None:
    def length(launch: PlannedLaunch) -> float:
        faster = launch.case.transport == "gloo"
        change = -30 if launch.campaign == 0 else 5
        return 100 + launch.plan_index + (change if faster else 0)

    assert judged(tmp_path, ORDER, length).verdict == "inconclusive"


def test_merged_folders_are_further_campaigns_and_merging_twice_adds_nothing(tmp_path: Path) -> None:
    suite = two_campaigns(tmp_path, STEP, campaigns=1)
    here, there = Store(tmp_path / "results"), Store(tmp_path / "there")
    run(suite, here, lambda launch: 100 + launch.plan_index / 10, "x")
    run(suite, there, lambda launch: 104 + launch.plan_index / 10, "y", day=5)
    assert merge(here.results, there.results).campaigns == ["mine speed 0"]
    assert merge(here.results, there.results).campaigns == []
    (result,) = judge_suite(suite, "smoke", Store(here.results))
    assert (result.n, result.campaigns) == (12, 2)
    assert not any("of 6 planned" in warning for warning in result.warnings)
    table = collect(plan(suite, "speed", "smoke"), Store(here.results), {})
    assert sorted(set(table["campaign_id"].to_pylist())) == ["x0", "y0"]
    assert len(table) == 2 * len(plan(suite, "speed", "smoke"))


def test_values_that_follow_from_seeds_count_once_where_folders_repeat_a_campaign(tmp_path: Path) -> None:
    suite = two_campaigns(tmp_path, QUALITY, campaigns=1)
    here, there = Store(tmp_path / "results"), Store(tmp_path / "there")
    run(suite, here, lambda launch: 100, "x")
    run(suite, there, lambda launch: 100, "y", day=5)
    merge(here.results, there.results)
    (result,) = judge_suite(suite, "smoke", Store(here.results))
    assert (result.n, result.campaigns) == (6, 1)


def test_records_without_a_campaign_are_read_as_one(tmp_path: Path) -> None:
    suite, store = two_campaigns(tmp_path, STEP, campaigns=1), Store(tmp_path / "results")
    run(suite, store, lambda launch: 100)
    shutil.rmtree(store.runs)
    for launch in plan(suite, "speed", "smoke"):
        commit(store, launch, 100, {})
    for path in store.runs.glob("*/*/run.json"):
        text = path.read_text()
        start, end = text.index('"campaign"'), text.index('"schema_version"')
        assert start < end
        path.write_text(text[:start] + text[end:])
    (result,) = judge_suite(suite, "smoke", Store(tmp_path / "results"))
    assert (result.n, result.campaigns) == (6, 1)
