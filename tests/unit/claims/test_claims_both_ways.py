"""Claims that no launches could refute or confirm are refused, and a dry run names those that a plan cannot decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.decidable import undecidable
from scaleproof.claims.power import Launches, Noise
from scaleproof.claims.wanted_values import stated_effect
from scaleproof.spec.errors import SpecError
from tests.unit.claims.test_judge import SPEEDUP, a_suite

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
        ({"against": SPEEDUP["select"]}, "'against' is 'select'"),
        ({"control": {"statement": "s", "select": SPEEDUP["select"]}}, "the control selects what the claim selects"),
    ],
)
def test_a_claim_that_cannot_fall_both_ways_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    claim = {name: value for name, value in {**SPEEDUP, **change}.items() if value is not None}
    with pytest.raises(SpecError, match=rf"claims\.yaml:\d+: .*{message}"):
        load_claims(a_suite(tmp_path, claim))


def test_an_order_with_an_arm_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"claims\.yaml:\d+: .*is there twice: no order can hold"):
        load_claims(a_suite(tmp_path, {**ORDER, "arms": [{"arm": "gloo"}, {"arm": "gloo"}]}))


def sentences(tmp_path: Path, claim: dict[str, Any], noise: Noise | None) -> list[str]:
    """What a dry run says of a claim with six launches an arm."""
    suite = a_suite(tmp_path, claim)
    (loaded,) = load_claims(suite)
    return [found.sentence for found in undecidable(loaded, Launches(suite, "smoke"), lambda claim, case: noise)]


def test_an_effect_below_the_floor_cannot_be_decided_here(tmp_path: Path) -> None:
    near = {**SPEEDUP, "rule": {"name": "ratio", "low": 0.95, "high": 1.05}}
    (sentence,) = sentences(tmp_path, near, Noise(0.01, 0.22))
    assert sentence.startswith("mine.own.speedup: cannot be decided on this machine: resolution 2")
    assert sentence.endswith("effect 5.13 %; no number of launches would do")
    (sentence,) = sentences(tmp_path, near, Noise(0.02, 0.01))
    assert sentence.endswith("effect 5.13 %; 7 launches would do")
    assert sentences(tmp_path, near, Noise(0.001, 0.01)) == [] and sentences(tmp_path, near, None) == []


def test_an_order_that_has_too_few_blocks_says_how_many_it_needs(tmp_path: Path) -> None:
    assert sentences(tmp_path, ORDER, None) == [
        "mine.own.speedup: cannot be decided with 6 launches; 7 launches would do"
    ]


@pytest.mark.parametrize(
    ("rule", "effect"),
    [
        ({"name": "ratio", "low": 0.8, "high": 1.25}, 0.25),
        ({"name": "at_least", "value": 1.5}, 0.5),
        ({"name": "ratio", "high": 0.5, "one_sided": True}, 1.0),
        ({"name": "ordering"}, None),
    ],
)
def test_the_effect_is_the_one_that_the_claim_states(
    tmp_path: Path, rule: dict[str, Any], effect: float | None
) -> None:
    (claim,) = load_claims(a_suite(tmp_path, {**SPEEDUP, "rule": rule}))
    assert stated_effect(claim) == (effect if effect is None else pytest.approx(effect))
