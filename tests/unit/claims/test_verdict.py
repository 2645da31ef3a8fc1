"""Each rule with an interval inside, outside and across its bound; noise floor; steps; controls; what cannot be
judged."""

import dataclasses
import math
from typing import Any, Literal

import pytest
from pydantic import ValidationError

from scaleproof.claims.arithmetic import Ends
from scaleproof.claims.claim_form import ClaimForm, Direction, PublishedRow, Rule
from scaleproof.claims.controls import with_control
from scaleproof.claims.outcome import Reason, StepFacts
from scaleproof.claims.sentences import finding_sentence, rule_sentence
from scaleproof.claims.verdict_rules import Estimate, apply_rule
from scaleproof.spec.errors import SpecError
from scaleproof.stats.compare_arms import compare
from scaleproof.stats.intervals import Interval, Method
from scaleproof.stats.summary import trend


def measured(low: float, high: float, values: tuple[float, ...] = ()) -> Estimate:
    return Estimate((low + high) / 2, Interval(low, high, 0.96875, Method.ORDER_STATISTICS), 6, values)


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
        (Rule(name="ratio", low=1.2, one_sided=True), 1.5, 1.6, None, "reproduced"),
        (Rule(name="ratio", low=1.2, one_sided=True), 1.1, 1.6, None, "inconclusive"),
        (Rule(name="ratio", high=1.2, one_sided=True), 1.5, 1.6, None, "not reproduced"),
        (Rule(name="at_most", value=2), 1.5, 2.5, "lower", "inconclusive"),
    ],
)
def test_an_interval_decides_or_straddles(
    rule: Rule, low: float, high: float, direction: Direction | None, verdict: str
) -> None:
    assert apply_rule(rule, measured(low, high), 10, direction).verdict == verdict


def test_the_rule_reads_as_a_sum_that_can_be_checked() -> None:
    outcome = apply_rule(Rule(name="at_least", value=0.85), measured(0.86, 0.9), None, "higher")
    assert (
        rule_sentence(outcome)
        == "0.88 in [0.86, 0.9]: all of it at least 0.85; 6 launches, 96.9% interval, one-sided rule"
    )
    assert "two-sided rule" in rule_sentence(apply_rule(WITHIN, measured(9, 11), 10, "higher"))


def test_too_few_launches_are_inconclusive_whatever_they_show() -> None:
    few = Estimate(100, None, 5, (100,) * 5)
    for rule in (Rule(name="at_least", value=1), Rule(name="equal_to_tolerance", value=100, tolerance=1)):
        outcome = apply_rule(rule, few, None, "higher")
        assert outcome.verdict == "inconclusive"
        assert "5 launches give no 95 % interval, 6 do" in rule_sentence(outcome)


def test_an_identity_must_hold_in_every_launch() -> None:
    rule = Rule(name="equal_to_tolerance", value=1, tolerance=0.01)
    assert apply_rule(rule, measured(1, 1, (1.0, 1.0, 0.995, 1.0, 1.005, 1.0)), None, None).verdict == "reproduced"
    outcome = apply_rule(rule, measured(1, 1, (1.0, 1.0, 1.0, 1.0, 1.0, 1.2)), None, None)
    assert outcome.verdict == "not reproduced"
    assert "1 of them not within 0.01 of 1" in rule_sentence(outcome)


IDENTITY = Rule(name="equal_to_tolerance", value=1, tolerance=0.05)


@pytest.mark.parametrize(
    ("values", "floor", "verdict"),
    [
        ((1.04,) * 6, 0.005, "reproduced"),
        ((1.0,) * 5 + (1.04,), 0.02, "inconclusive"),
        ((1.0,) * 5 + (1.06,), 0.02, "inconclusive"),
        ((1.0,) * 5 + (1.08,), 0.02, "not reproduced"),
        ((1.0,) * 6, 0.1, "inconclusive"),
    ],
)
def test_an_identity_of_times_must_hold_beyond_the_noise_floor(
    values: tuple[float, ...], floor: float, verdict: str
) -> None:
    estimate = dataclasses.replace(measured(min(values), max(values), values), floor=floor)
    outcome = apply_rule(IDENTITY, estimate, None, None)
    assert outcome.verdict == verdict
    assert ("closer to the bound than the noise floor" in rule_sentence(outcome)) == (verdict == "inconclusive")


@pytest.mark.parametrize(
    ("low", "high", "floor", "verdict"),
    [
        (1.02, 1.04, 0.1, "not reproduced"),
        (1.02, 1.04, 0.01, "direction only"),
        (1.2, 1.3, 0.1, "direction only"),
        (1.2, 1.3, None, "direction only"),
    ],
)
def test_a_direction_is_one_beyond_the_noise_floor(low: float, high: float, floor: float | None, verdict: str) -> None:
    estimate = dataclasses.replace(measured(low, high), floor=floor)
    assert apply_rule(WITHIN, estimate, 2.5, "higher").verdict == verdict
    below = dataclasses.replace(measured(1 / high, 1 / low), floor=floor)
    assert apply_rule(WITHIN, below, 0.4, "lower").verdict == verdict


@pytest.mark.parametrize(("floor", "verdict"), [(1.04, "inconclusive"), (0.05, "direction only")])
def test_a_gain_that_noise_could_have_made_of_the_published_one_refutes_nothing(floor: float, verdict: str) -> None:
    gain = dataclasses.replace(measured(31, 78), floor=floor, noise="gain")
    assert apply_rule(Rule(name="within", tolerance=0.2, neutral=0), gain, 169, "higher").verdict == verdict


def test_one_launch_refutes_an_identity() -> None:
    rule = Rule(name="equal_to_tolerance", value=1, tolerance=0.01)
    assert apply_rule(rule, Estimate(1.2, None, 1, (1.2,)), None, None).verdict == "not reproduced"


@pytest.mark.parametrize(
    ("ends", "verdict", "text"),
    [
        ((9.0, 12.0), "reproduced", "9 to 12, over what is known of the conditions, is at least 8"),
        (
            (5.0, 12.0),
            "inconclusive",
            "5 to 12, over what is known of the conditions, is in part at least 8, in part not",
        ),
        ((5.0, 7.0), "not reproduced", "5 to 7, over what is known of the conditions, is not at least 8"),
        ((9.0, 9.0), "reproduced", "9 is at least 8"),
        ((math.inf, math.inf), "reproduced", "infinity is at least 8"),
    ],
)
def test_a_verdict_about_arithmetic_holds_for_both_ends_of_what_is_known(
    ends: tuple[float, float], verdict: str, text: str
) -> None:
    outcome = apply_rule(Rule(name="at_least", value=8.0), Estimate.of_ends(Ends(*ends)), None, None)
    assert outcome.verdict == verdict
    assert finding_sentence(outcome) == text


def test_arithmetic_needs_no_interval() -> None:
    rule = Rule(name="equal_to_tolerance", tolerance=0.05)
    assert apply_rule(rule, Estimate(1218.108, None, None), 1218.1, None).verdict == "reproduced"
    assert apply_rule(rule, Estimate(1456.0, None, None), 1218.1, None).verdict == "not reproduced"


WIDE = (1.03, 0.97, 1.00, 1.01, 0.98, 1.02)
FAST = (1.00, 1.01, 0.99, 1.005, 0.995, 1.002)


def ratio_of(share: float, floor: float | None, noise: tuple[float, ...] = FAST) -> Estimate:
    """1 + `share` times the base, six launches a side."""
    difference = compare([value * (1 + share) for value in noise], FAST, paired=False, floor=floor)
    assert difference.ratio is not None
    return Estimate(
        difference.ratio, difference.interval, 6, difference=difference, floor=floor, floor_unknown=floor is None
    )


@pytest.mark.parametrize(
    ("rule", "share", "floor", "direction", "verdict"),
    [
        (Rule(name="ordering"), 0.05, 0.02, "higher", "reproduced"),
        (Rule(name="ordering"), 0.05, 0.06, "higher", "inconclusive"),
        (Rule(name="ordering"), 0.05, 0.06, "lower", "inconclusive"),
        (Rule(name="ordering"), 0.05, 0.02, "lower", "not reproduced"),
        (Rule(name="ratio", low=1.2, high=1.6), 0.25, 0.02, None, "reproduced"),
        (Rule(name="ratio", low=1.2, high=1.6), 0.25, 0.08, None, "inconclusive"),
        (Rule(name="ratio", low=1.2, high=1.6), 0.15, 0.08, None, "inconclusive"),
        (Rule(name="ratio", low=0.9, high=1.1), 0.0, 0.05, None, "reproduced"),
        (Rule(name="ratio", low=0.9, high=1.1), 0.0, 0.15, None, "inconclusive"),
        (Rule(name="at_least", value=1.5), 0.02, 0.05, "higher", "not reproduced"),
    ],
)
def test_a_ratio_closer_to_a_bound_than_the_noise_floor_decides_nothing(
    rule: Rule, share: float, floor: float, direction: Direction | None, verdict: str
) -> None:
    outcome = apply_rule(rule, ratio_of(share, floor), None, direction)
    assert outcome.verdict == verdict
    assert "noise floor" in rule_sentence(outcome)


@pytest.mark.parametrize(
    ("won", "undecided", "verdict"),
    [
        (0.7, 0.0, "reproduced"),
        (0.7, 0.3, "reproduced"),
        (0.2, 0.0, "not reproduced"),
        (0.2, 0.1, "not reproduced"),
        (0.2, 0.6, "inconclusive"),
    ],
)
def test_a_share_of_wins_is_refuted_only_where_what_lies_within_the_floor_could_not_change_it(
    won: float, undecided: float, verdict: str
) -> None:
    estimate = dataclasses.replace(measured(won - 0.05, won + 0.05), undecided=undecided, floor=0.22, noise="inside")
    outcome = apply_rule(Rule(name="at_least", value=0.5), estimate, None, "higher")
    assert outcome.verdict == verdict
    assert ("closer to the bound than the noise floor of 22 %" in rule_sentence(outcome)) is (verdict == "inconclusive")


@pytest.mark.parametrize(
    ("ours", "below", "above", "verdict"),
    [
        (0.9, 0.1, 0.1, "reproduced"),
        (0.9, 0.4, 0.1, "inconclusive"),
        (0.2, 0.2, 0.3, "not reproduced"),
        (0.2, 0.2, 0.6, "inconclusive"),
    ],
)
def test_a_value_decides_only_where_what_the_floor_leaves_open_could_not_change_it_either_way(
    ours: float, below: float, above: float, verdict: str
) -> None:
    estimate = dataclasses.replace(
        measured(ours, ours), undecided=above, undecided_below=below, floor=0.22, noise="inside"
    )
    assert apply_rule(Rule(name="at_least", value=0.7), estimate, None, "higher").verdict == verdict


@pytest.mark.parametrize(("gain", "verdict"), [(10, "inconclusive"), (16, "reproduced"), (2, "not reproduced")])
def test_the_floor_moves_the_ratio_behind_a_gain(gain: float, verdict: str) -> None:
    """At a floor of 5 %, a gain of 10 % could be one of 4.8 to 15.5 %, not of 9.5 to 10.5 %."""
    estimate = dataclasses.replace(measured(gain - 0.1, gain + 0.1), floor=0.05, noise="gain")
    assert apply_rule(Rule(name="at_least", value=9), estimate, None, "higher").verdict == verdict


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_a_timing_without_a_floor_is_neither_reproduced_nor_refuted(direction: Direction) -> None:
    outcome = apply_rule(Rule(name="ordering"), ratio_of(0.5, None), None, direction)
    assert (outcome.verdict, outcome.reason) == ("inconclusive", Reason.NO_FLOOR)
    counted = dataclasses.replace(ratio_of(0.5, None), floor_unknown=False)
    assert apply_rule(Rule(name="ordering"), counted, None, direction).verdict != "inconclusive"


EQUAL = Rule(name="within", value=1, tolerance="floor")
CAPPED = Rule(name="within", value=1, tolerance="floor", largest_floor=0.03)


@pytest.mark.parametrize(
    ("rule", "low", "high", "floor", "verdict"),
    [
        (EQUAL, 0.978, 0.986, 0.03, "reproduced"),
        (EQUAL, 0.978, 0.986, 0.01, "not reproduced"),
        (EQUAL, 0.978, 0.995, 0.01, "inconclusive"),
        (EQUAL, 0.999, 1.001, 0.01, "reproduced"),
        (EQUAL, 0.999, 1.001, None, "inconclusive"),
        (EQUAL, 0.5, 0.6, None, "inconclusive"),
        (CAPPED, 0.999, 1.001, 0.02, "reproduced"),
        (CAPPED, 0.999, 1.001, 0.22, "inconclusive"),
        (CAPPED, 0.9, 0.91, 0.22, "inconclusive"),
        (CAPPED, 0.5, 0.6, 0.22, "not reproduced"),
    ],
)
def test_an_equality_holds_to_the_noise_floor_and_no_further_than_the_claim_allows(
    rule: Rule, low: float, high: float, floor: float | None, verdict: str
) -> None:
    estimate = dataclasses.replace(measured(low, high), floor=floor, floor_unknown=floor is None)
    outcome = apply_rule(rule, estimate, None, None)
    assert outcome.verdict == verdict
    assert "noise floor" in rule_sentence(outcome)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "equal_to_tolerance", "tolerance": "floor"},
        {"name": "within", "tolerance": 0.1, "largest_floor": 0.1},
        {"name": "within", "tolerance": "ceiling"},
    ],
)
def test_the_floor_is_a_tolerance_of_rule_within_alone(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rule(**fields)


def test_what_validates_has_a_tolerance_of_its_own() -> None:
    fields: dict[str, Any] = {
        "id": "v",
        "origin": "own",
        "statement": "s",
        "unit": "1",
        "metric": "level_error",
        "experiment": "e",
        "validates": {"what": "dilation", "evidence": "emulated"},
    }
    assert ClaimForm(**fields, rule=Rule(name="within", value=1, tolerance=0.1)).validates is not None
    with pytest.raises(ValidationError, match="bounds of its own"):
        ClaimForm(**fields, rule=EQUAL)


@pytest.mark.parametrize(
    ("noise", "verdict"), [("factor", "inconclusive"), ("added", "inconclusive"), ("inside", "reproduced")]
)
def test_a_value_without_a_base_must_lie_beyond_the_floor_too(
    noise: Literal["factor", "added", "inside"], verdict: str
) -> None:
    """0.048 is less than 5 % from the bound, as a factor and as a difference."""
    rule = Rule(name="at_most", value=0.05)
    interval = Interval(0.047, 0.049, 0.97, Method.ORDER_STATISTICS)
    estimate = Estimate(0.048, interval, 6, floor=0.05, noise=noise)
    assert apply_rule(rule, estimate, None, None).verdict == verdict
    far = dataclasses.replace(estimate, floor=0.001)
    assert apply_rule(rule, far, None, None).verdict == "reproduced"


def test_an_ordering_needs_the_test_and_not_only_the_interval() -> None:
    """Five of six blocks are higher: the bootstrap interval may exclude 1, but the signed-rank test is not
    significant."""
    difference = compare([1.1, 1.1, 1.1, 1.1, 1.1, 0.95], FAST, paired=True, floor=None)
    estimate = Estimate(1.1, Interval(1.01, 1.11, 0.95, Method.BOOTSTRAP_OF_BLOCKS), 6, difference=difference)
    outcome = apply_rule(Rule(name="ordering"), estimate, None, "higher")
    assert outcome.verdict == "inconclusive"
    assert "signed-rank test over 6 blocks gives p = " in rule_sentence(outcome)


def steps_of(*levels: float, floor: float | None = 0.01, blocks: int = 6, paired: bool = False) -> Estimate:
    """Arms at these levels, six launches each."""
    noise = (*FAST, 1.003, 0.997)[:blocks]
    arms = [[level * value for value in noise] for level in levels]
    steps = tuple(
        StepFacts(
            before={"arm": i},
            after={"arm": i + 1},
            difference=compare(arms[i + 1], arms[i], paired=paired, floor=floor),
        )
        for i in range(len(arms) - 1)
    )
    test_result = trend([i for i, arm in enumerate(arms) for _ in arm], [value for arm in arms for value in arm])
    return Estimate(levels[-1] / levels[0], None, blocks, steps=steps, trend=test_result)


RISING = Rule(name="monotone", along="ranks", trend="rising")


@pytest.mark.parametrize(
    ("rule", "levels", "direction", "verdict"),
    [
        (RISING, (1, 1.5, 2), None, "reproduced"),
        (RISING, (1, 1.5, 1.5001), None, "inconclusive"),
        (RISING, (1, 2, 1.5), None, "not reproduced"),
        (RISING.model_copy(update={"trend": "falling"}), (2, 1.5, 1), None, "reproduced"),
        (RISING.model_copy(update={"trend": "falling"}), (1, 1.5, 2), None, "not reproduced"),
        (Rule(name="ordering"), (3, 2, 1), "higher", "reproduced"),
        (Rule(name="ordering"), (3, 2, 1), "lower", "not reproduced"),
        (Rule(name="ordering"), (1, 2, 2.0001), "lower", "inconclusive"),
        (Rule(name="ordering"), (1, 2, 4), "lower", "reproduced"),
    ],
)
def test_several_arms_need_every_step_and_one_step_back_refutes(
    rule: Rule, levels: tuple[float, ...], direction: Direction | None, verdict: str
) -> None:
    outcome = apply_rule(rule, steps_of(*levels), None, direction)
    assert outcome.verdict == verdict
    assert "Kendall's tau" in rule_sentence(outcome) and "arm=0 to arm=1: " in rule_sentence(outcome)


@pytest.mark.parametrize(
    ("blocks", "levels", "verdict"),
    [
        (6, (1, 2, 4, 8), "reproduced"),
        (7, (1, 2, 4, 8), "reproduced"),
        (7, (8, 4, 2, 1), "not reproduced"),
        (7, (1, 2, 1.5, 8), "not reproduced"),
        (6, (1, 2, 1.5, 8), "inconclusive"),
        (8, (1, 2, 1.5, 8, 9), "not reproduced"),
        (7, (1, 2, 2, 8), "inconclusive"),
    ],
)
def test_paired_arms_fall_both_ways_with_as_many_blocks_as_their_steps_need(
    blocks: int, levels: tuple[float, ...], verdict: str
) -> None:
    outcome = apply_rule(Rule(name="ordering"), steps_of(*levels, blocks=blocks, paired=True), None, "lower")
    assert outcome.verdict == verdict
    too_few = "6 blocks cannot refute an order of 3 steps, 7 can (Holm)"
    assert (too_few in rule_sentence(outcome)) == (blocks == 6 and verdict == "inconclusive")


def test_a_trend_that_is_not_strict_may_stand_still() -> None:
    weak = RISING.model_copy(update={"strict": False})
    assert apply_rule(weak, steps_of(1, 1.5, 1.5001, floor=0.05), None, None).verdict == "reproduced"
    assert apply_rule(weak, steps_of(1, 1.0001, 1.0002, floor=0.05), None, None).verdict == "inconclusive"
    assert apply_rule(RISING, steps_of(1, 1.5, 1.5001, floor=0.05), None, None).verdict == "inconclusive"


def test_the_negative_control_is_part_of_the_verdict() -> None:
    rule = Rule(name="equal_to_tolerance", value=1, tolerance=0.01)
    good = apply_rule(rule, measured(1, 1, (1.0,) * 6), None, None)
    bad = apply_rule(rule, measured(2, 3, (2.0, 3.0, 2.5, 2.5, 2.5, 2.5)), None, None)
    controlled = with_control(good, bad)
    assert (controlled.verdict, rule_sentence(controlled)) == (
        "reproduced",
        f"{rule_sentence(good)}; the control does not show the effect: {rule_sentence(bad)}",
    )
    spoilt = with_control(good, good)
    assert spoilt.verdict == "inconclusive" and spoilt.control is not None and spoilt.control.overrules
    assert "but the control shows the effect too: 6 launches from 1 to 1" in rule_sentence(spoilt)
    few = apply_rule(rule, measured(1, 1, (1.0,) * 5), None, None)
    assert with_control(bad, good).verdict == "not reproduced"
    assert with_control(bad, few).verdict == with_control(bad, None).verdict == "not reproduced"


def test_a_control_of_an_identity_needs_every_launch_to_break_it() -> None:
    rule = Rule(name="equal_to_tolerance", value=1, tolerance=0.01)
    good = apply_rule(rule, measured(1, 1, (1.0,) * 6), None, None)
    stray = with_control(good, apply_rule(rule, measured(1, 2, (*(1.0,) * 5, 2.0)), None, None))
    assert stray.verdict == "inconclusive" and stray.control is not None and stray.control.finding == "undecided"
    assert "but the control decides nothing: 6 launches from 1 to 2: 1 of them not within" in rule_sentence(stray)
    assert with_control(good, apply_rule(rule, measured(2, 2, (2.0,) * 6), None, None)).verdict == "reproduced"


def test_a_claim_whose_control_decides_nothing_is_inconclusive() -> None:
    rule = Rule(name="at_least", value=1.5)
    good = apply_rule(rule, measured(1.6, 1.8), None, "higher")
    undecided = with_control(good, apply_rule(rule, measured(1.4, 1.6), None, "higher"))
    assert undecided.verdict == "inconclusive"
    assert "; but the control decides nothing: 1.5 in [1.4, 1.6]: part of it at least 1.5" in rule_sentence(undecided)
    absent = with_control(good, None)
    assert absent.verdict == "inconclusive"
    assert rule_sentence(absent).endswith("; but the control could not be judged: nothing was measured")
    partly = apply_rule(WITHIN, measured(5, 7), 10, "higher")
    assert (partly.verdict, with_control(partly, None).verdict) == ("direction only", "inconclusive")


@pytest.mark.parametrize(
    ("control", "floor", "finding", "verdict"),
    [
        (0.0, 0.03, "no difference", "reproduced"),
        (0.02, 0.01, "less effect", "reproduced"),
        (-0.2, 0.01, "no effect", "reproduced"),
        (0.195, 0.21, "undecided", "inconclusive"),
        (0.15, 0.01, "effect", "inconclusive"),
    ],
)
def test_the_control_of_an_order_shows_no_difference_or_clearly_less(
    control: float, floor: float, finding: str, verdict: str
) -> None:
    rule = Rule(name="ordering")
    claim = apply_rule(rule, ratio_of(0.2, 0.01), None, "higher")
    judged = with_control(claim, apply_rule(rule, ratio_of(control, floor, noise=WIDE), None, "higher"))
    assert judged.control is not None
    assert (judged.control.finding, judged.verdict) == (finding, verdict)


def test_a_rule_without_anything_to_compare_with_is_refused() -> None:
    with pytest.raises(SpecError, match="no published value"):
        apply_rule(WITHIN, measured(1, 2), None, "higher")
    with pytest.raises(SpecError, match="needs a direction"):
        apply_rule(Rule(name="ordering"), measured(1, 2), None, None)


def test_a_rule_names_its_missing_field() -> None:
    with pytest.raises(ValidationError, match="rule 'ratio' needs 'high'"):
        Rule(name="ratio", low=1)
    with pytest.raises(ValidationError, match="'low' or 'high', one of them"):
        Rule(name="ratio", low=1, high=2, one_sided=True)
    with pytest.raises(ValidationError, match="rule 'monotone' needs 'along'"):
        Rule(name="monotone", trend="rising")


def test_a_recalled_row_cannot_decide() -> None:
    with pytest.raises(ValidationError, match="memory_low cannot have gate true"):
        PublishedRow(
            id="a",
            paper="p",
            statement="s",
            metric="m",
            unit="x",
            direction=None,
            x={},
            value=1,
            baseline=None,
            where=None,
            source="from memory",
            provenance="memory_low",
            gate=True,
        )


def test_bounds_of_arithmetic_are_no_ratios_to_a_base() -> None:
    rule = Rule(name="ratio", low=24.0, high=96.0)
    alone, beside = apply_rule(rule, Estimate(30.0, None, None), None, None), measured(25.0, 90.0)
    assert rule_sentence(alone).startswith("30 is between 24 and 96; arithmetic")
    assert "times the base" in rule_sentence(apply_rule(rule, beside, None, None))
