"""Each rule with an interval inside, outside and across its bound; controls; what cannot be judged."""

import pytest
from pydantic import ValidationError

from harness.claims.schema import Direction, PublishedRow, Rule
from harness.claims.verdict import Estimate, Outcome, judge, with_control
from harness.spec.errors import SpecError
from harness.stats.intervals import Interval


def measured(low: float, high: float, values: tuple[float, ...] = ()) -> Estimate:
    return Estimate((low + high) / 2, Interval(low, high, 0.96875, "order statistics"), 6, values)


WITHIN = Rule(name="within", tolerance=0.2, neutral=1)


@pytest.mark.parametrize(
    ("rule", "low", "high", "direction", "verdict"),
    [
        (WITHIN, 9, 11, "higher", "reproduced"),
        (WITHIN, 7, 11, "higher", "inconclusive"),
        (WITHIN, 5, 7, "higher", "direction only"),
        (WITHIN, 13, 15, "higher", "direction only"),
        (WITHIN, 0.5, 0.9, "higher", "not reproduced"),
        (Rule(name="within", tolerance=0.2, one_sided=True), 13, 15, "higher", "reproduced"),
        (Rule(name="within", tolerance=0.2, one_sided=True), 13, 15, "lower", "not reproduced"),
        (Rule(name="within", tolerance=0.2, one_sided=True), 1, 2, "lower", "reproduced"),
        (Rule(name="at_least", value=0.85), 0.86, 0.91, "higher", "reproduced"),
        (Rule(name="at_least", value=0.85), 0.84, 0.91, "higher", "inconclusive"),
        (Rule(name="at_least", value=0.85), 0.7, 0.8, "higher", "not reproduced"),
        (Rule(name="at_most", value=2), 1, 2, "lower", "reproduced"),
        (Rule(name="at_most", value=2), 2.1, 3, "lower", "not reproduced"),
        (Rule(name="ordering"), 0.5, 0.9, "lower", "reproduced"),
        (Rule(name="ordering"), 0.5, 1.0, "lower", "inconclusive"),
        (Rule(name="ordering"), 1.1, 1.2, "lower", "not reproduced"),
        (Rule(name="ordering"), 1.1, 1.2, "higher", "reproduced"),
        (Rule(name="ratio", low=1.2, high=1.4), 1.25, 1.35, None, "reproduced"),
        (Rule(name="ratio", low=1.2, high=1.4), 1.1, 1.35, None, "inconclusive"),
        (Rule(name="ratio", low=1.2, high=1.4), 1.5, 1.6, None, "not reproduced"),
    ],
)
def test_an_interval_decides_or_straddles(rule: Rule, low: float, high: float, direction: Direction | None, verdict: str) -> None:
    assert judge(rule, measured(low, high), 10, direction).verdict == verdict


def test_the_rule_reads_as_a_sum_that_can_be_checked() -> None:
    outcome = judge(Rule(name="at_least", value=0.85), measured(0.86, 0.9), None, "higher")
    assert outcome.rule == "0.88 in [0.86, 0.9]: all of it at least 0.85; 6 launches, 96.9% interval"


def test_too_few_launches_are_inconclusive_whatever_they_show() -> None:
    few = Estimate(100, None, 5, (100,) * 5)
    for rule in (Rule(name="at_least", value=1), Rule(name="equal_to_tolerance", value=100, tolerance=1)):
        outcome = judge(rule, few, None, "higher")
        assert outcome.verdict == "inconclusive"
        assert "5 launches give no 95 % interval, 6 do" in outcome.rule


def test_an_identity_must_hold_in_every_launch() -> None:
    rule = Rule(name="equal_to_tolerance", value=1, tolerance=0.01)
    assert judge(rule, measured(1, 1, (1.0, 1.0, 0.995, 1.0, 1.005, 1.0)), None, None).verdict == "reproduced"
    outcome = judge(rule, measured(1, 1, (1.0, 1.0, 1.0, 1.0, 1.0, 1.2)), None, None)
    assert outcome.verdict == "not reproduced"
    assert "1 of them not within 0.01 of 1" in outcome.rule


def test_one_launch_refutes_an_identity() -> None:
    rule = Rule(name="equal_to_tolerance", value=1, tolerance=0.01)
    assert judge(rule, Estimate(1.2, None, 1, (1.2,)), None, None).verdict == "not reproduced"


def test_arithmetic_needs_no_interval() -> None:
    rule = Rule(name="equal_to_tolerance", tolerance=0.05)
    assert judge(rule, Estimate(1218.108, None, None), 1218.1, None).verdict == "reproduced"
    assert judge(rule, Estimate(1456.0, None, None), 1218.1, None).verdict == "not reproduced"


def test_a_control_that_shows_the_effect_too_takes_the_verdict_away() -> None:
    good = Outcome("reproduced", "6 launches: every one within 0.01 of 1")
    assert with_control(good, Outcome("not reproduced", "")) is good
    assert with_control(good, None) is good
    spoilt = with_control(good, Outcome("reproduced", "6 launches from 1 to 1"))
    assert spoilt.verdict == "inconclusive"
    assert "the control shows the effect too: 6 launches from 1 to 1" in spoilt.rule


def test_a_rule_without_anything_to_compare_with_is_refused() -> None:
    with pytest.raises(SpecError, match="no published value"):
        judge(WITHIN, measured(1, 2), None, "higher")
    with pytest.raises(SpecError, match="needs a direction"):
        judge(Rule(name="ordering"), measured(1, 2), None, None)


def test_a_rule_says_what_it_lacks() -> None:
    with pytest.raises(ValidationError, match="rule 'ratio' needs 'high'"):
        Rule(name="ratio", low=1)


def test_a_recalled_row_cannot_decide() -> None:
    with pytest.raises(ValidationError, match="memory_low cannot have gate true"):
        PublishedRow(
            id="a", paper="p", statement="s", metric="m", unit="x", direction=None, x={}, value=1, baseline=None,
            where=None, source="from memory", provenance="memory_low", gate=True,
        )  # fmt: skip
