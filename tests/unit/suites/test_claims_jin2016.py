"""The suite jin2016: its rows, its laws as they were written, its metrics on made-up launches, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims, load_published
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.launch_pool import chosen
from scaleproof.claims.made_up import Event, MadeUp, events
from scaleproof.claims.suite_metrics import load_models
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.suite import Suite, load_suite
from tests.unit.claims.made_up_launches import judged

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "suites" / "jin2016"
LEAST, MOST = None, "uniform:0,0.3"
"""Ends of the range of delays, beside GPUs that differ."""
BOUNDS = {
    "sooner": {"name": "at_most", "value": 0.95},
    "turns": {"name": "at_least", "value": 1.05},
    "final_loss": {"name": "at_least", "value": 1.0},
}
"""The rule of each group of claims of our own, as it was written before the first run."""


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("jin2016", ROOT / "suites")


@pytest.fixture(scope="module")
def metrics() -> Any:
    return load_models(FOLDER / "models" / "__init__.py")


def test_rows_that_decide_have_their_values(suite: Suite) -> None:
    rows = load_published(suite.folder)
    gates = {name.removeprefix("jin2016."): row.value for name, row in rows.items() if row.gate}
    assert gates == {"async_better_small": 32, "sync_better_large": 100, "async_needs_large_step": 1}
    assert len(rows) == 10


def test_bounds_are_those_that_were_written_before_the_first_run(suite: Suite) -> None:
    for claim in load_claims(suite):
        group = claim.form.id.removeprefix("jin2016.own.").partition(".")[0]
        if group in BOUNDS:
            assert claim.form.rule is not None
            assert claim.form.rule.model_dump(exclude_defaults=True) == BOUNDS[group]


@pytest.mark.parametrize("size", ["smoke", "small", "full"])
def test_scaling_runs_both_ends_of_the_stragglers_and_from_small_on_of_the_links(suite: Suite, size: str) -> None:
    cases = [case for case in suite.experiment("scaling").size(size).cases if isinstance(case, TrainCase)]
    uneven = [case for case in cases if case.value("fabric.stragglers") == "spread:0,0.07"]
    assert {LEAST, MOST} <= {case.step_delay for case in uneven}
    links = {case.value("fabric.cluster") for case in uneven}
    assert links == ({"fdr"} if size == "smoke" else {"fdr", "ethernet_10g"})
    for law in (LEAST, MOST):
        assert {2, 8, 32, 128} <= {case.ranks for case in uneven if case.step_delay == law}


def test_the_strategies_are_the_forms_of_the_code(suite: Suite) -> None:
    cases = {case.arm: case for case in suite.experiment("scaling").size("small").cases}
    options = {arm: case.value("strategy_options").model_dump(exclude_defaults=True) for arm, case in cases.items()}
    momentum = {"momentum": "nesterov"}
    assert options["pull"] == momentum | {
        "name": "gossip",
        "averaged": "before_step",
        "published": "at_exchange",
        "draws": "all",
    }
    assert options["push"] == momentum | {"name": "gossip", "form": "push", "draws": "all"}
    assert options["elastic"] == momentum | {
        "name": "elastic_averaging",
        "dedicated_servers": 0,
        "exchange": "parameters",
        "order": "after_gradient",
        "beta": 0.8,
    }
    assert options["all_reduce"] == momentum | {"name": "averaged_gradients"}


def test_the_time_to_the_loss_lies_between_two_evaluations(metrics: Any, suite: Suite) -> None:
    case = suite.experiment("scaling").size("smoke").cases[0]
    falling = [Event("test_loss", at, at, ranks=(0,), value=loss) for at, loss in ((2.0, 2.0), (4.0, 0.7), (6.0, 0.3))]
    made = events(Event("start", 1.0, 1.0), *falling)
    time_to_given_loss = next(each for each in metrics.METRICS if each.name == "time_to_given_loss").launch
    assert time_to_given_loss(made.record(case), made.samples(case.ranks)) == pytest.approx(5.0 - 1.0)
    high = events(Event("start"), falling[0])
    assert time_to_given_loss(high.record(case), high.samples(case.ranks)) is None


def times(suite: Suite, metric: str, seconds: Mapping[tuple[str, int], float | None], metrics: Any) -> float | None:
    """A metric of the launches of one seed, by arm and ranks; None: the loss is not reached."""
    cases = {(case.arm, case.ranks): case for case in suite.experiment("scaling").size("smoke").cases}
    block = []
    for key, time in seconds.items():
        reached = [] if time is None else [Event("test_loss", time, time, ranks=(0,), value=0.2)]
        made = events(Event("start"), Event("test_loss", ranks=(0,), value=2.0), *reached)
        block.append(Launch(made.record(cases[key]), made.samples(key[1])))
    value: float | None = next(each for each in metrics.METRICS if each.name == metric).block(block)
    return value


def test_an_arm_that_does_not_reach_the_loss_counts_as_ten_times_later(metrics: Any, suite: Suite) -> None:
    def ratio(ours: float | None, theirs: float | None) -> float | None:
        return times(suite, "time_ratio", {("pull", 8): ours, ("all_reduce", 8): theirs}, metrics)

    assert ratio(2.0, 4.0) == pytest.approx(0.5, rel=0.2)
    assert (ratio(None, 4.0), ratio(4.0, None), ratio(None, None)) == (10.0, 0.1, None)


def test_the_sign_turns_for_the_first_arm_and_for_the_last(metrics: Any, suite: Suite) -> None:
    seconds = {("all_reduce", ranks): 4.0 for ranks in (2, 8, 32, 128)}
    pull = {("pull", ranks): 4.0 * ratio for ranks, ratio in ((2, 0.5), (8, 0.5), (32, 2.0), (128, 4.0))}
    elastic = {("elastic", ranks): 4.0 * ratio for ranks, ratio in ((2, 0.5), (8, 0.5), (32, 0.5), (128, 2.0))}
    both = {**seconds, **pull, **elastic}
    assert times(suite, "async_ahead_to", both, metrics) == pytest.approx(16.0)
    assert times(suite, "all_reduce_ahead_from", both, metrics) == pytest.approx(64.0)
    ahead = {**seconds, **dict.fromkeys(elastic, 1.0)}
    behind = {**seconds, **dict.fromkeys(elastic, 8.0)}
    for metric in ("async_ahead_to", "all_reduce_ahead_from"):
        assert (times(suite, metric, ahead, metrics), times(suite, metric, behind, metrics)) == (128.0, 2.0)


def test_a_sign_that_turns_twice_has_a_first_and_a_last_time(metrics: Any, suite: Suite) -> None:
    ratios = ((2, 0.5), (8, 2.0), (32, 0.5), (128, 2.0))
    seconds = {("all_reduce", ranks): 4.0 for ranks, _ in ratios} | {("pull", n): 4.0 * ratio for n, ratio in ratios}
    assert times(suite, "async_ahead_to", seconds, metrics) == pytest.approx(4.0)
    assert times(suite, "all_reduce_ahead_from", seconds, metrics) == pytest.approx(64.0)


def crossing_at(few: float, many: float) -> Any:
    """Launches whose sign turns at so many workers with few stragglers, and with many."""

    def made(launch: PlannedLaunch) -> MadeUp:
        case = launch.case
        nodes = few if case.value("step_delay") is LEAST else many
        ratio = 1.0 if case.arm == "all_reduce" else (case.ranks / nodes) ** 0.5
        return events(Event("start"), Event("test_loss", ratio, ratio, ranks=(0,), value=0.5))

    return made


@pytest.mark.parametrize(
    ("few", "many", "verdict"), [(30, 40, "reproduced"), (10, 12, "not reproduced"), (10, 40, "inconclusive")]
)
def test_the_verdict_must_hold_at_both_ends_of_the_stragglers(few: float, many: float, verdict: str) -> None:
    assert judged("jin2016.async_better_small", crossing_at(few, many)).verdict == verdict


def test_five_of_six_seeds_do_not_decide_and_six_do() -> None:
    def seeds(worse: int) -> Any:
        def made(launch: PlannedLaunch) -> MadeUp:
            loss = 0.5 if launch.case.arm == "all_reduce" else 0.6 if launch.plan_index < worse else 0.4
            return events(Event("test_loss", 1.0, 1.0, ranks=(0,), value=loss))

        return made

    assert judged("jin2016.own.equal_samples.p16", seeds(6)).verdict == "reproduced"
    assert judged("jin2016.own.equal_samples.p16", seeds(5)).verdict == "inconclusive"
    assert judged("jin2016.own.equal_samples.p16", seeds(0)).verdict == "not reproduced"


def test_every_claim_has_launches_at_size_small(suite: Suite) -> None:
    for claim in load_claims(suite):
        form = claim.form
        if form.experiment is not None:
            cases = suite.experiment(form.experiment).size("small").cases
            assert any(chosen(case, form.select) for case in cases), form.id


def test_seeds_have_the_interval_of_launches_and_not_that_of_draws() -> None:
    ratios = (1.01, 1.5, 1.1, 2.5, 1.05, 3.0)

    def made(launch: PlannedLaunch) -> MadeUp:
        loss = 0.5 if launch.case.arm == "all_reduce" else 0.5 * ratios[launch.plan_index]
        return events(Event("test_loss", 1.0, 1.0, ranks=(0,), value=loss))

    result = judged("jin2016.own.equal_samples.p16", made)
    assert result.interval is not None and (result.interval.low, result.interval.high) == pytest.approx((1.01, 3.0))
    assert result.verdict == "reproduced" and "trajectory computed" in result.evidence_details
