"""Each finding of a comparison, what it says, and the rank tests against scipy's."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, wilcoxon

from scaleproof.claims.difference_sentences import NO_FLOOR, difference_sentence
from scaleproof.stats.compare_arms import compare, detectable
from scaleproof.stats.rank_tests import depth_of, shift

FAST = [1.00, 1.01, 0.99, 1.005, 0.995, 1.002]
DRIFT = np.array([1.0, 1.5, 0.7, 1.2, 0.9, 1.1])


def slower(share: float) -> list[float]:
    return [value * (1 + share) + 1e-6 * index for index, value in enumerate(FAST)]


def test_a_significant_ratio_beyond_the_floor_is_a_difference() -> None:
    comparison = compare(slower(0.05), FAST, paired=False, floor=0.02)
    assert comparison.finding == "higher"
    assert compare(FAST, slower(0.05), paired=False, floor=0.02).finding == "lower"
    assert comparison.ratio == pytest.approx(1.05, rel=1e-3)
    assert comparison.p_value == pytest.approx(2 / 924)
    assert comparison.n == (6, 6)
    assert comparison.interval is not None and comparison.ratio is not None
    assert 1.02 < comparison.interval.low <= comparison.ratio <= comparison.interval.high
    assert (
        "5 % higher" in difference_sentence(comparison)
        and "beyond the noise floor of 2 %" in difference_sentence(comparison)
        and "6 and 6 launches" in difference_sentence(comparison)
    )


def test_a_significant_ratio_below_the_floor_is_none() -> None:
    comparison = compare(slower(0.05), FAST, paired=False, floor=0.06)
    assert comparison.finding == "inconclusive"
    assert "significant, but not beyond the noise floor of 6 %" in difference_sentence(comparison)


def test_no_difference_needs_the_whole_interval_in_the_band() -> None:
    assert compare(slower(0.001), FAST, paired=False, floor=0.02).finding == "no difference"
    assert compare(slower(0.001), FAST, paired=False, floor=0.002).finding == "inconclusive"


def test_a_floor_above_5_percent_calls_nothing_equal_that_may_differ_by_it() -> None:
    comparison = compare(
        [1.0, 1.07, 0.95, 1.03, 0.98, 1.06], [1.02, 0.96, 1.05, 1.0, 0.97, 1.04], paired=False, floor=0.15
    )
    assert (comparison.finding, "hides a difference of 5 %" in difference_sentence(comparison)) == (
        "inconclusive",
        True,
    )
    assert compare(slower(0.001), FAST, paired=False, floor=0.15).finding == "no difference"


def test_a_stated_margin_of_equivalence_widens_the_band() -> None:
    assert compare(slower(0.03), FAST, paired=False, floor=0.001).finding == "higher"
    assert compare(slower(0.03), FAST, paired=False, floor=0.001, margin=0.1).finding == "no difference"


def test_inconclusive_says_what_could_be_found() -> None:
    noisy = [1.0, 1.3, 0.8, 1.1, 0.9, 1.2]
    comparison = compare(noisy, [1.02, 1.25, 0.82, 1.15, 0.88, 1.21], paired=False, floor=0.02)
    assert comparison.finding == "inconclusive"
    assert "not significant" in difference_sentence(
        comparison
    ) and "these launches find one from" in difference_sentence(comparison)


def test_without_a_floor_it_says_how_to_get_one() -> None:
    comparison = compare(slower(0.05), FAST, paired=False, floor=None)
    assert comparison.finding == "higher"
    assert NO_FLOOR in difference_sentence(comparison)


def test_pairing_sees_what_drift_of_the_machine_hides() -> None:
    assert compare(1.05 * DRIFT * FAST, DRIFT, paired=True, floor=0.01).finding == "higher"
    assert compare(1.05 * DRIFT * FAST, DRIFT, paired=False, floor=0.01).finding == "inconclusive"


def test_five_launches_decide_nothing() -> None:
    comparison = compare([2.0, 2.1, 2.2, 2.3, 2.4], [1.0] * 5, paired=False, floor=0.01)
    assert (comparison.finding, comparison.interval, comparison.p_value) == ("inconclusive", None, None)
    assert "5 launches a side give no 95% interval, 6 do" in difference_sentence(comparison)


def test_the_same_launches_show_no_difference() -> None:
    assert compare(FAST, FAST, paired=True, floor=None).finding == "no difference"
    assert compare([0.0] * 6, [0.0] * 6, paired=True, floor=0.1).finding == "no difference"


def test_what_has_no_ratio_is_inconclusive() -> None:
    assert "values of 0 or below" in difference_sentence(compare([0.0, *FAST[1:]], FAST, paired=False, floor=0.1))
    assert compare([], FAST, paired=False, floor=0.1).n == (0, 6)


@pytest.mark.parametrize(
    ("a", "b", "paired", "floor", "message"),
    [
        (FAST, FAST[1:], True, 0.1, "paired sides differ: 6 and 5"),
        ([float("nan"), *FAST[1:]], FAST, False, 0.1, "not finite"),
        (FAST, FAST, False, -0.1, "share of at least 0"),
    ],
)
def test_wrong_input_is_refused(a: list[float], b: list[float], paired: bool, floor: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(a, b, paired=paired, floor=floor)


def test_the_smallest_slowdown_found_shrinks_with_launches_and_grows_with_spread_and_floor() -> None:
    assert detectable(0.02, 10, False) < 0.05 < detectable(0.02, 6, True)
    assert detectable(0.02, 10, True) < detectable(0.02, 6, True) < detectable(0.04, 6, True)
    assert detectable(0.02, 10, False, floor=0.05) > 0.05
    assert detectable(0.02, 5, False) == float("inf")


@pytest.mark.parametrize("count", [6, 10, 30])
def test_the_documented_slowdowns_are_the_computed_ones(count: int) -> None:
    cells = [
        f"{100 * detectable(spread, count, False):.1f} %, paired {100 * detectable(spread, count, True):.1f} %"
        for spread in (0.01, 0.02, 0.05, 0.1)
    ]
    assert f"| {count} | {' | '.join(cells)} |" in (Path(__file__).parents[3] / "docs" / "statistics.md").read_text()


@pytest.mark.parametrize("count", [6, 9, 14])
def test_p_values_are_those_of_scipys_exact_tests(count: int) -> None:
    generator = np.random.default_rng(count)
    first, second = generator.normal(size=count), generator.normal(0.7, size=count + 1)
    assert shift(first, second, False, 0.95).p_value == pytest.approx(
        mannwhitneyu(first, second, method="exact").pvalue
    )
    assert shift(first, second[1:], True, 0.95).p_value == pytest.approx(
        wilcoxon(first - second[1:], method="exact").pvalue
    )


def test_the_interval_of_six_blocks_is_the_range_of_their_differences() -> None:
    estimate = shift(np.array([1.0, 2, 3, 4, 5, 6]), np.zeros(6), True, 0.95)
    assert (estimate.low, estimate.high, estimate.coverage) == (1, 6, pytest.approx(1 - 2 / 64))
    assert depth_of(6, 6, False, 0.95) == 6  # Mann and Whitney's table: U at most 5 is significant
    assert depth_of(3, 3, False, 0.95) == 0
