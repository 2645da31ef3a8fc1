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


def run(
    suite: Suite,
    store: Store,
    length: Length,
    name: str = "x",
    day: int = 1,
    ids: Callable[[PlannedLaunch], dict[str, Any]] | None = None,
) -> None:
    """All launches of the plan, campaign after campaign. `ids`: of a launch, where each campaign has not one of its
    own."""
    for launch in plan(suite, "speed", "smoke"):
        moment = f"2026-01-{day + launch.campaign:02}T00:{launch.order // 60:02}:{launch.order % 60:02}Z"
        of_campaign = {
            "campaign": launch.campaign,
            "campaign_id": f"{name}{launch.campaign}",
            **(ids or no_ids)(launch),
        }
        fields = {"launch": f"{launch.case.case_id}-{launch.plan_index}{name}", "started_at": moment, **of_campaign}
        commit(store, launch, length(launch), {**fields, "accuracy": 0.5 + launch.plan_index / 100})


def no_ids(launch: PlannedLaunch) -> dict[str, Any]:
    return {}


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


def resumed(launch: PlannedLaunch) -> dict[str, Any]:
    """Ids of a run that was interrupted in block 3: two calls made it."""
    return {"campaign_id": "first" if launch.plan_index <= 3 else "second"}


def test_an_interrupted_run_is_two_campaigns_that_keep_every_pair(tmp_path: Path) -> None:
    """The call after the pause is three times as slow: pairs do not see it, one arm alone does."""
    suite, store = two_campaigns(tmp_path, SPEEDUP, campaigns=1), Store(tmp_path / "results")
    calibrate_for_suite(store.results, suite, "smoke")

    def length(launch: PlannedLaunch) -> float:
        return (200 if launch.case.ranks == 1 else 100) * (3 if launch.plan_index > 3 else 1)

    run(suite, store, length, ids=resumed)
    (result,) = judge_suite(suite, "smoke", store)
    assert (result.verdict, result.n, result.campaigns) == ("reproduced", 6, 2)
    (alone,) = judge_suite(two_campaigns(tmp_path, STEP, campaigns=1), "smoke", store)
    assert (alone.verdict, alone.n, alone.campaigns) == ("inconclusive", 6, 2)


def test_seeds_of_an_interrupted_run_all_count(tmp_path: Path) -> None:
    suite, store = two_campaigns(tmp_path, QUALITY, campaigns=1), Store(tmp_path / "results")
    run(suite, store, lambda launch: 100, ids=resumed)
    (result,) = judge_suite(suite, "smoke", store)
    assert (result.n, result.campaigns) == (6, 2)


def test_launches_made_again_replace_the_first_ones_though_another_call_made_them(tmp_path: Path) -> None:
    suite, store = two_campaigns(tmp_path, STEP, campaigns=1), Store(tmp_path / "results")
    run(suite, store, lambda launch: 150, "x", ids=resumed)
    run(
        suite,
        store,
        lambda launch: 100,
        "y",
        2,
        lambda launch: {"campaign_id": "again", "replaces": resumed(launch)["campaign_id"]},
    )
    (result,) = judge_suite(suite, "smoke", store)
    assert (result.ours, result.n, result.campaigns) == (pytest.approx(0.1), 6, 1)
    table = collect(plan(suite, "speed", "smoke"), Store(store.results), {})
    assert set(table["campaign_id"].to_pylist()) == {"again"} and len(table) == len(plan(suite, "speed", "smoke"))


def test_pairs_of_two_calls_stand_alone(tmp_path: Path) -> None:
    """One arm was made again in one block, and there it is hardly faster than the other."""
    suite, store = two_campaigns(tmp_path, ORDER, campaigns=1), Store(tmp_path / "results")
    run(suite, store, lambda launch: 70 if launch.case.transport == "gloo" else 100)
    for launch in plan(suite, "speed", "smoke"):
        if launch.plan_index == 5 and launch.case.transport == "gloo":
            again = {"launch": f"{launch.case.case_id}-again", "started_at": "2026-02-01T00:00:00Z"}
            commit(store, launch, 99, {**again, "campaign_id": "again", "replaces": "x0"})
    (result,) = judge_suite(suite, "smoke", Store(store.results))
    assert (result.n, result.campaigns) == (6, 2) and result.interval is not None
    assert result.interval.method == "percentile bootstrap over blocks, around 2 campaigns"


def test_merging_an_interrupted_run_says_how_many_calls_made_it(tmp_path: Path) -> None:
    suite = two_campaigns(tmp_path, STEP, campaigns=1)
    here, there = Store(tmp_path / "results"), Store(tmp_path / "there")
    run(suite, here, lambda launch: 100, "x")
    run(suite, there, lambda launch: 100, "y", 5, resumed)
    assert merge(here.results, there.results).campaigns == ["mine speed 0 (2 calls of `run`)"]
    (result,) = judge_suite(suite, "smoke", Store(here.results))
    assert (result.n, result.campaigns) == (12, 3)


def test_a_block_that_failed_as_a_whole_and_was_made_by_a_later_call_has_one_row_a_launch(tmp_path: Path) -> None:
    suite, store = two_campaigns(tmp_path, STEP, campaigns=1), Store(tmp_path / "results")
    launches = plan(suite, "speed", "smoke")
    for launch in launches:
        if launch.plan_index == 5:
            fields = {"launch": f"{launch.case.case_id}-failed", "started_at": "2026-01-01T00:00:00Z"}
            commit(store, launch, 100, {**fields, "campaign_id": "first", "status": "failed"})
    run(suite, store, lambda launch: 100, "y", 2)
    table = collect(launches, Store(store.results), {})
    assert set(table["status"].to_pylist()) == {"ok"} and len(table) == len(launches)


@pytest.mark.parametrize(("later", "warned"), [("all", True), ("one", False), ("none", False)])
def test_a_side_that_a_later_call_made_warns(tmp_path: Path, later: str, warned: bool) -> None:
    """Launches that failed at first keep the id of their block; they all ran on another day."""
    suite, store = two_campaigns(tmp_path, SPEEDUP, campaigns=1), Store(tmp_path / "results")

    def moment(launch: PlannedLaunch) -> dict[str, Any]:
        on_another_day = later == "all" or (later == "one" and launch.plan_index == 2)
        return {"started_at": "2026-03-01T00:00:00Z"} if launch.case.ranks == 1 and on_another_day else {}

    run(suite, store, lambda launch: 100, ids=moment)
    (result,) = judge_suite(suite, "smoke", store)
    assert (
        any("in 1 of 1 campaigns all launches of one side began before" in each for each in result.warnings) == warned
    )
