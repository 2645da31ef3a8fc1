"""Claims that no launches could refute or confirm are refused, and a dry run names those that a plan cannot decide."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaleproof.claims.claim_form import PublishedRow, Rule
from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.claims.decidable import undecidable
from scaleproof.claims.made_up import ImpossibleValue
from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.claims.power import Launches, Noise
from scaleproof.claims.wanted_values import aim, clear_factor, stated_effect
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import load_suite
from tests.unit.claims.test_judge import ROW, SPEEDUP, a_suite

SUITES = Path(__file__).parents[3] / "suites"
ORDER: dict[str, Any] = {
    **{key: value for key, value in SPEEDUP.items() if key != "against"},
    "metric": "throughput",
    "select": {},
    "arms": [{"arm": "gloo"}, {"arm": "tcp"}, {"arm": "alone", "ranks": 2}],
    "rule": {"name": "ordering"},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": {"name": "at_least", "value": 0}}, "no launch can refute it: every value .* is 0 or more"),
        (
            {"metric": "test_accuracy", "against": None, "rule": {"name": "at_most", "value": 1}},
            "no launch can refute it: every value .* is from 0 to 1, and the rule accepts all",
        ),
        (
            {"metric": "test_accuracy", "against": None, "rule": {"name": "at_least", "value": 1.5}},
            "no launch can confirm it",
        ),
        ({"rule": {"name": "ratio", "low": 0, "high": 1e308}}, "no launch can refute it: every value .* below 1e.18"),
        ({"rule": {"name": "at_most", "value": 1e300}}, "no launch can refute it"),
        ({"rule": {"name": "at_least", "value": 1e300}}, "no launch can confirm it"),
        ({"rule": {"name": "ratio", "low": 2, "high": 0.5}}, "no launch can confirm it: 2 to 0.5 is no range"),
        (
            {"rule": {"name": "within", "value": 2, "tolerance": 1, "one_sided": True}},
            "no launch can refute it: every value .* is 0 or more, and the rule accepts all",
        ),
        ({"against": SPEEDUP["select"]}, "against: .*'against' selects what 'select' does"),
        ({"against": {"transport": ["gloo"]}}, "against: .*'against' selects what 'select' does"),
        ({"against": {"arm": "gloo", "ranks": [2]}}, "against: .*'against' selects what 'select' does"),
        ({"control": {"statement": "s", "select": SPEEDUP["select"]}}, "the control selects what the claim selects"),
        ({"control": {"statement": "s", "select": {"transport": ["gloo"]}}}, "the control selects what the claim"),
        (
            {"select": {"transport": "glo"}},
            "select.transport: no case of experiment 'speed' has transport 'glo' at any size; did you mean 'gloo'",
        ),
        ({"select": {"transport": ["gloo", "tpc"]}}, "select.transport: .* 'tpc' .*; did you mean 'tcp'"),
        ({"against": {"ranks": 3}}, "against.ranks: .* has ranks 3 at any size; known: 2, 1"),
        ({"against": {"transport": "gloo", "ranks": 1}}, "against: no case .* has ranks 1, transport 'gloo' at any"),
        ({"select": {"collective": "tree"}}, "select.collective: .*; known: native, ring"),
        (
            {"control": {"statement": "s", "select": {"arm": "alnoe"}}},
            "control.select.arm: .*; did you mean 'alone'",
        ),
    ],
)
def test_a_claim_that_cannot_fall_both_ways_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    claim = {name: value for name, value in {**SPEEDUP, **change}.items() if value is not None}
    with pytest.raises(SpecError, match=rf"claims\.yaml:\d+: .*{message}"):
        load_claims(a_suite(tmp_path, claim))


@pytest.mark.parametrize(
    "arms",
    [
        [{"arm": "gloo"}, {"arm": "gloo"}],
        [{"arm": "gloo"}, {"transport": ["gloo"]}],
        [{"arm": "gloo"}, {"arm": ["tcp", "gloo"]}],
    ],
)
def test_an_order_whose_arms_share_cases_is_refused(tmp_path: Path, arms: list[dict[str, Any]]) -> None:
    wrong = r"claims\.yaml:\d+: \[0\]\.arms\[1\]: .*arms 1 and 2 have the same cases: no order can hold"
    with pytest.raises(SpecError, match=wrong):
        load_claims(a_suite(tmp_path, {**ORDER, "arms": arms}))


def test_an_arm_of_an_order_that_no_case_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"\.arms\[1\]\.arm: no case .* has arm 'tcpp' at any size; did you mean 'tcp'"):
        load_claims(a_suite(tmp_path, {**ORDER, "arms": [{"arm": "gloo"}, {"arm": "tcpp"}]}))


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"over": ["options.clustr"]}, "over"),
        ({"control": {"statement": "s", "select": {"arm": "fifo_idle"}, "over": ["options.clustr"]}}, "control.over"),
        ({"rule": {"name": "monotone", "along": "options.clustr", "trend": "rising"}}, "rule.along"),
    ],
)
def test_an_option_that_no_case_has_is_refused_where_it_is_named_without_a_value(
    tmp_path: Path, change: dict[str, Any], key: str
) -> None:
    """All cases would be one, and nobody would see it."""
    folder = tmp_path / "helios2021"
    shutil.copytree(SUITES / "helios2021", folder, ignore=shutil.ignore_patterns("__pycache__"))
    document = yaml.safe_load((folder / "claims.yaml").read_text())
    claim = next(each for each in document if each["id"] == "helios2021.own.synthetic.qssf")
    if "along" in change.get("rule", {}):
        del claim["against"], claim["control"]
    claim.update(change)
    (folder / "claims.yaml").write_text(yaml.safe_dump(document))
    wrong = "no case of experiment 'synthetic' has the field 'options.clustr'; did you mean 'options.cluster'"
    with pytest.raises(SpecError, match=rf"\.{re.escape(key)}: {wrong}"):
        load_claims(load_suite(folder))


def test_a_value_that_one_size_alone_has_may_be_selected(tmp_path: Path) -> None:
    assert load_claims(a_suite(tmp_path, {**SPEEDUP, "select": {"minibatch": 64}}))


def test_a_trend_over_one_value_is_refused(tmp_path: Path) -> None:
    trend = {**ORDER, "select": {"arm": "gloo"}, "rule": {"name": "monotone", "along": "ranks", "trend": "falling"}}
    del trend["arms"]
    with pytest.raises(SpecError, match=r"claims\.yaml:\d+: \[0\]\.rule: .*no size plans two values of 'ranks'"):
        load_claims(a_suite(tmp_path, trend))


def test_a_trend_over_one_value_of_this_size_has_no_power(tmp_path: Path) -> None:
    """Minibatch 64 is planned by size full alone, and 16 beside it by smoke."""
    trend = {**ORDER, "rule": {"name": "monotone", "along": "minibatch", "trend": "falling"}}
    del trend["arms"]
    suite = a_suite(tmp_path, trend, "{arms: [gloo], set: {minibatch: 16}}, ")
    (claim,) = load_claims(suite)
    with pytest.raises(ImpossibleValue, match="one value of 'minibatch' is planned"):
        Launches(suite, "full").power(claim, "measured", Noise())


def test_a_claim_that_no_launch_of_the_plan_can_fail_is_named_with_its_line(tmp_path: Path) -> None:
    """Over all numbers of ranks together: of some of them, a crossover that fails it lies beyond the sizes."""
    folder = tmp_path / "collectives"
    shutil.copytree(SUITES / "collectives", folder)
    text = (folder / "claims.yaml").read_text()
    arms = "select: {arm: [ring, recursive_doubling]"
    (folder / "claims.yaml").write_text(text.replace(f"{arms}, ranks: 4}}", f"{arms}}}"))
    suite = load_suite(folder)
    claim = next(each for each in load_claims(suite) if each.form.id == "collectives.own.crossover.p4")
    (found,) = undecidable(claim, Launches(suite, "smoke"), lambda claim, cases: Noise(0.01, 0.02))
    line = text.splitlines().index("- id: collectives.own.crossover.p4") + 1
    assert found.sentence == (
        "collectives.own.crossover.p4: cannot be decided with the planned cases: no launch can hold it, or none can "
        "fail it (without noise, launches made to hold it are reproduced, and such made to fail it reproduced); "
        f"{folder}/claims.yaml:{line}"
    )


def sentences(tmp_path: Path, claim: dict[str, Any], noise: Noise | None) -> list[str]:
    """What a dry run says of a claim with six launches an arm."""
    suite = a_suite(tmp_path, claim)
    (loaded,) = load_claims(suite)
    return [found.sentence for found in undecidable(loaded, Launches(suite, "smoke"), lambda claim, case: noise)]


def test_an_effect_below_the_floor_cannot_be_decided_here(tmp_path: Path) -> None:
    near = {**SPEEDUP, "rule": {"name": "ratio", "low": 0.95, "high": 1.05}}
    (sentence,) = sentences(tmp_path, near, Noise(0.01, 0.22))
    assert sentence.startswith("mine.own.speedup: cannot be decided on this machine: resolution 2")
    assert sentence.endswith("effect 5.13 %; 105 launches would do")
    nearer = {**SPEEDUP, "rule": {"name": "ratio", "low": 0.99, "high": 1.01}}
    (sentence,) = sentences(tmp_path, nearer, Noise(0.01, 0.22))
    assert sentence.endswith("effect 1.01 %; no number of launches would do")
    (sentence,) = sentences(tmp_path, near, Noise(0.02, 0.01))
    assert sentence.endswith("effect 5.13 %; 7 launches would do")
    assert sentences(tmp_path, near, Noise(0.001, 0.01)) == [] and sentences(tmp_path, near, None) == []


@pytest.mark.parametrize(("noise", "told"), [(Noise(0.05, 0.1), True), (Noise(0.005, 0.01), False)])
def test_what_counts_beyond_the_floor_of_one_launch_says_how_much_noise_it_can_bear(noise: Noise, told: bool) -> None:
    launches = Launches(load_suite("zou2017", SUITES), "smoke")
    claim = next(each for each in load_claims(launches.suite) if each.form.id == "zou2017.own.lemma2")
    found = [each.sentence for each in undecidable(claim, launches, lambda claim, cases: noise)]
    assert len(found) == told
    assert not told or re.search(r"noise floor of one launch 14.9 %, it can bear 5.\d+ %; no number", found[0]), found


@pytest.mark.parametrize(("more_ranks", "needed"), [([], None), ([4], 7), ([4, 8, 16], 8)])
def test_a_trend_needs_launches_for_its_number_of_steps(
    tmp_path: Path, more_ranks: list[int], needed: int | None
) -> None:
    """Over one and two ranks, and more of them."""
    trend = {**ORDER, "select": {"arm": "alone"}, "rule": {"name": "monotone", "along": "ranks", "trend": "falling"}}
    del trend["arms"]
    matrix = f"{{arms: [alone], set: {{minibatch: 48}}, sweep: {{ranks: {more_ranks}}}}}, " if more_ranks else ""
    suite = a_suite(tmp_path, trend, matrix)
    (claim,), launches = load_claims(suite), Launches(suite, "smoke")
    assert launches.count(claim, "measured") == 6, "of each number of ranks"
    found = [found.sentence for found in undecidable(claim, launches, lambda claim, cases: None)]
    many = f"mine.own.speedup: cannot be decided with 6 launches; {needed} launches would do"
    assert found == ([] if needed is None else [many])


def test_an_order_that_has_too_few_blocks_says_how_many_it_needs(tmp_path: Path) -> None:
    assert sentences(tmp_path, ORDER, None) == [
        "mine.own.speedup: cannot be decided with 6 launches; 7 launches would do"
    ]


AT_LEAST: dict[str, Any] = {"name": "at_least", "value": 1.5}
ABOUT: dict[str, Any] = {"name": "within", "tolerance": 0.2}
SPEED, STEP, ERROR = METRICS["speedup"], METRICS["step_s"], METRICS["level_error"]
IN_ONE_LAUNCH = Metric("minibatch_gain", "x", "higher", launch=lambda record, samples: None, clocked=True)
WINS = Metric("wins", "bool", "higher", block=lambda block, floor: None, clocked=True, noise="inside")
R_SQUARED = Metric("r", "1", "higher", launch=IN_ONE_LAUNCH.launch, clocked=True, range=(-math.inf, 1))
PER_CENT = Metric("gain", "%", "higher", launch=IN_ONE_LAUNCH.launch, noise="gain", range=(-100, math.inf))


def claim_with(tmp_path: Path, metric: Metric, rule: dict[str, Any], published: float | None = None) -> Claim:
    """A claim with this metric and rule; a metric of single launches has no base."""
    (own,) = load_claims(a_suite(tmp_path, SPEEDUP))
    against = None if metric.launch else own.form.against
    form = own.form.model_copy(update={"rule": Rule(**rule), "unit": metric.unit, "against": against})
    row = None if published is None else PublishedRow(**{**ROW, "value": published, "unit": metric.unit})
    return Claim(form, row, metric, own.arguments)


@pytest.mark.parametrize(
    ("metric", "rule", "published", "effect"),
    [
        (SPEED, ABOUT, 10, 0.2),
        (SPEED, {**ABOUT, "one_sided": True}, 10, 0.25),
        (SPEED, {"name": "within", "tolerance": "floor", "largest_floor": 0.1, "value": 1}, None, 0.1),
        (SPEED, {"name": "ratio", "low": 0.8, "high": 1.25}, None, 0.25),
        (SPEED, {"name": "ratio", "low": 0.8, "high": 1.25}, 1, 0.25),
        (SPEED, {"name": "ratio", "low": 0.8, "high": 1.25}, 1.2, 1.25 / 1.2 - 1),
        (SPEED, {"name": "ratio", "high": 0.5, "one_sided": True}, None, 1.0),
        (SPEED, AT_LEAST, None, 0.5),
        (SPEED, AT_LEAST, 2, 1 / 3),
        (SPEED, AT_LEAST, 1.5, 0.5),
        (SPEED, AT_LEAST, 1.2, 0.5),
        (SPEED, {**AT_LEAST, "value": 0.8}, None, 0.25),
        (SPEED, {**AT_LEAST, "value": 1}, None, None),
        (IN_ONE_LAUNCH, AT_LEAST, None, 0.5),
        (R_SQUARED, {**AT_LEAST, "value": 0.8}, None, 0.25),
        (PER_CENT, {**AT_LEAST, "value": 25}, None, 0.25),
        (PER_CENT, {**AT_LEAST, "value": 25}, 50, 0.2),
        (ERROR, {"name": "at_most", "value": 0.2}, None, 0.2),
        (ERROR, {"name": "at_most", "value": 0.2}, 0.15, 0.05),
        (WINS, {**AT_LEAST, "value": 0.5}, 1, None),
        (STEP, {"name": "at_most", "value": 0.1}, None, None),
        (STEP, {"name": "at_most", "value": 0.1, "effect": 0.1}, None, 0.1),
        (STEP, {"name": "at_most", "value": 0.1}, 0.08, 0.25),
        (STEP, {"name": "equal_to_tolerance", "value": 10, "tolerance": 1}, None, 0.1),
        (STEP, {"name": "equal_to_tolerance", "value": 0, "tolerance": 1}, None, None),
        (SPEED, {"name": "ordering"}, None, None),
        (SPEED, {"name": "ordering"}, 10, 9.0),
        (SPEED, {"name": "ordering"}, 0.5, 1.0),
        (SPEED, {"name": "ordering", "effect": 0.1}, 10, 0.1),
        (WINS, {"name": "ordering", "effect": 0.1}, None, None),
        (SPEED, {"name": "monotone", "along": "ranks", "trend": "rising", "effect": 0.1}, None, 0.1),
        (SPEED, {"name": "monotone", "along": "ranks", "trend": "rising"}, 10, None),
    ],
)
def test_the_effect_is_how_far_the_claims_number_lies_from_the_nearest_value_that_is_refused(
    tmp_path: Path, metric: Metric, rule: dict[str, Any], published: float | None, effect: float | None
) -> None:
    found = stated_effect(claim_with(tmp_path, metric, rule, published))
    assert found == (None if effect is None else pytest.approx(effect))


def test_launches_fail_clearly_where_no_effect_is_accepted(tmp_path: Path) -> None:
    little = claim_with(tmp_path, IN_ONE_LAUNCH, {"name": "at_most", "value": 1.5})
    assert min(aim(little, IN_ONE_LAUNCH, 1.502, None).fails) == 2, "1.502 times no effect is hardly more than 1.5"


def test_launches_that_hold_have_the_published_value_and_those_that_fail_no_effect(tmp_path: Path) -> None:
    doubled = claim_with(tmp_path, SPEED, AT_LEAST, 2)
    aimed = aim(doubled, SPEED, clear_factor(doubled, 9), None)
    assert (aimed.holds, aimed.fails[0]) == (2, 1)


def test_arms_of_an_order_differ_by_its_effect_whatever_the_noise(tmp_path: Path) -> None:
    order = claim_with(tmp_path, SPEED, {"name": "ordering", "effect": 0.1})
    bound_of_a_time = claim_with(tmp_path, STEP, {"name": "at_most", "value": 0.1})
    assert clear_factor(order, 9) == pytest.approx(1.1) and clear_factor(bound_of_a_time, 9) == 9


def test_only_orders_and_single_bounds_take_an_effect() -> None:
    with pytest.raises(
        ValueError, match="'effect' belongs to the rules at_least, at_most, ordering, monotone; 'ratio'"
    ):
        Rule(name="ratio", low=0.5, high=1.5, effect=0.1)


def test_a_bound_of_a_time_with_an_effect_can_lie_below_what_a_machine_resolves(tmp_path: Path) -> None:
    within = {**SPEEDUP, "metric": "step_s", "unit": "s", "rule": {"name": "at_most", "value": 0.1, "effect": 0.1}}
    del within["against"]
    (sentence,) = sentences(tmp_path, within, Noise(0.01, 0.22))
    assert "effect 10 %" in sentence and sentences(tmp_path, within, Noise(0.001, 0.01)) == []
