"""What suite validation alone needs: how much of their set rate links carry, and its figures."""

from __future__ import annotations

from typing import Any

import pytest

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import ImpossibleValue, Wanted
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.report.headlines.load import load_headlines
from scaleproof.spec.case import AnyCase
from scaleproof.spec.link_rates import PAYLOAD
from scaleproof.spec.suite import load_suite
from tests.short_form import case_from
from tests.unit.claims.claims_samples import COLLECTIVE, record, samples

SUITE = load_suite("validation")
SHARE = suite_metrics(SUITE.folder)["carried_share"]
MBIT, SIZE = 1000, 8 << 20
RING: dict[str, Any] = {**COLLECTIVE, "sizes": [SIZE], "fabric": {"name": "netns", "link_mbit": MBIT}}


def carried(case: dict[str, Any], call_ms: float, size: int = SIZE) -> float | None:
    rows = [(rank, "all_reduce", 0, 0, call_ms - rank, size) for rank in range(4)]
    assert SHARE.launch is not None
    return SHARE.launch(record(case), samples(*rows))


def test_the_share_is_what_a_link_passes_over_what_its_rate_allows_it_to() -> None:
    on_link = SIZE * 2 * 3 / 4 / PAYLOAD
    bucket = MBIT * 1e6 / 8 * 1e-3
    least_ms = (on_link - bucket) / (MBIT * 1e6 / 8) * 1e3
    assert carried(RING, least_ms) == pytest.approx(1.0, rel=1e-3)
    assert carried(RING, 2 * least_ms) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(
    "changes",
    [{"collective": "tree"}, {"fabric": "netns"}, {"nodes": 2}, {"dilation": 2}, {"ranks": 4, "fabric": "host"}],
)
def test_what_is_no_ring_over_links_of_one_rate_has_no_share(changes: dict[str, Any]) -> None:
    case = {**RING, **changes}
    assert carried(case, 100.0) is None and SHARE.made_up is not None
    with pytest.raises(ImpossibleValue):
        SHARE.made_up(Wanted(case_from(case), 0.9))


def test_a_made_up_launch_has_the_share_that_is_wanted() -> None:
    case = case_from(RING)
    assert SHARE.made_up is not None and SHARE.launch is not None
    for share in (0.6, 1.0):
        assert SHARE.made_up(Wanted(case, share)).value(SHARE.launch, case) == pytest.approx(share, rel=1e-6)


def cases(experiment: str, size: str, arm: str) -> list[AnyCase]:
    return [case for case in SUITE.experiment(experiment).size(size).cases if case.arm == arm]


def test_each_cost_of_its_own_is_predicted_with_and_without_it() -> None:
    incast, unequal = (cases("costs", "smoke", arm) for arm in ("incast", "unequal_nodes"))
    assert sorted(str(case.value("fabric.beta_times")) for case in incast) == ["1.0", "1.2", "None"]
    assert {case.value("strategy.servers") for case in incast} == {1} and {case.ranks for case in incast} == {8}
    assert [case.value("compute.others") is None for case in unequal] == [False, False, True]


def test_the_figures_name_arms_and_claims_of_the_suite() -> None:
    declared = load_headlines(SUITE)
    assert declared is not None
    planned = {case.arm for size in ("smoke", "small") for case in SUITE.experiment("prediction").size(size).cases}
    drawn = {series.select["arm"] for figure in declared.figures for series in figure.series if series.select}
    assert drawn == planned


def test_a_loss_is_held_against_that_of_the_same_seed_in_processes() -> None:
    metric = suite_metrics(SUITE.folder)["loss_ratio"]
    (case,) = [each for each in cases("replicas", "smoke", "local_sgd") if each.fabric == "host"]
    assert metric.made_up is not None and metric.pair is not None
    launches = []
    for value in (1.25, None):  # None: the base
        made = metric.made_up(Wanted(case, value))
        launches.append(Launch(made.record(case), made.samples(case.ranks)))
    assert metric.pair(launches[0], launches[1], None) == pytest.approx(1.25)


def test_real_emulated_and_virtual_runs_of_three_strategies_are_compared_at_2_and_4_ranks() -> None:
    for arm in ("server", "gossip", "local_sgd"):
        ran = {
            (each.ranks, each.fabric, each.value("compute"), each.value("fabric.beta_times", 1.0))
            for each in cases("replicas", "small", arm)
        }
        of_losses = {(ranks, fabric, "real", 1.0) for ranks in (2, 4) for fabric in ("host", "netns", "simulated")}
        predicted = {(ranks, "simulated", "replay", times) for ranks in (2, 4) for times in (1.0, 1.2)}
        emulated = {(ranks, "netns", "replay", 1.0) for ranks in (2, 4)}
        assert ran == of_losses | predicted | emulated | {(2, "host", "replay", 1.0)}
