"""Campaigns with an effect of their own: intervals hold what each campaign gives alone, and none denies a finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from scaleproof.stats.arm_difference import Difference, DifferenceReason
from scaleproof.stats.campaigns import Alone, around_campaigns, shift_alone, with_campaigns
from scaleproof.stats.compare_arms import compare
from scaleproof.stats.intervals import median, median_interval

LAUNCHES = 6
TRIALS = 2000
WITHIN, LUCK = 0.01, 0.05
"""Standard deviations: of launches in a campaign, and of what the launches of a campaign share."""
campaigns = st.lists(st.lists(st.floats(0.5, 2.0), min_size=LAUNCHES, max_size=LAUNCHES), min_size=2, max_size=5)


def drawn(count: int, effect: float, seed: int = 5) -> np.ndarray:
    """Logarithms of values with median 0, of shape (trials, campaigns, launches)."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(0, effect, (TRIALS, count, 1)) if effect else 0.0
    return np.asarray(shared + generator.normal(0, WITHIN, (TRIALS, count, LAUNCHES)))


def medians(campaigns: Iterable[Sequence[float] | np.ndarray]) -> list[Alone]:
    """What each campaign gives alone."""
    return [Alone(median(campaign), len(campaign)) for campaign in campaigns]


def coverage(count: int, effect: float, aware: bool) -> float:
    """How often the interval over all launches of `count` campaigns holds the true median."""
    held = 0
    for trial in drawn(count, effect):
        interval = median_interval(trial.ravel())
        if aware:
            interval = around_campaigns(interval, medians(trial))
        assert interval is not None
        held += interval.low <= 0 <= interval.high
    return held / TRIALS


def difference_of(ratios: Sequence[Sequence[float] | np.ndarray], floor: float | None) -> Difference:
    """A paired comparison of arms with these ratios in the blocks of each campaign."""
    above = np.concatenate(ratios)
    difference = compare(above, np.ones(len(above)), paired=True, floor=floor)
    return with_campaigns(difference, [shift_alone(each, np.ones(len(each)), True) for each in ratios])


@pytest.mark.parametrize(("count", "least"), [(2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375), (6, 0.95), (10, 0.95)])
def test_where_the_campaign_effect_dominates_campaigns_hold_the_true_value_as_often_as_their_number_allows(
    count: int, least: float
) -> None:
    held = round(coverage(count, LUCK, aware=True) * TRIALS)
    assert binomtest(held, TRIALS, least, alternative="less").pvalue > 0.001


def test_launches_alone_hold_it_far_less_often() -> None:
    assert coverage(6, LUCK, aware=False) < 0.85 < coverage(6, LUCK, aware=True)


@pytest.mark.parametrize("count", [2, 3, 6])
def test_without_effect_the_interval_holds_it_as_promised(count: int) -> None:
    assert coverage(count, 0.0, aware=True) >= coverage(count, 0.0, aware=False) >= 0.93


@given(campaigns)
def test_an_interval_is_never_narrower_than_the_campaigns_disagree(values: list[list[float]]) -> None:
    alone = [median(campaign) for campaign in values]
    plain = median_interval(np.concatenate(values))
    interval = around_campaigns(plain, medians(values))
    assert plain is not None and interval is not None
    assert interval.low <= min(plain.low, *alone) and interval.high >= max(plain.high, *alone)
    assert interval.campaigns == len(values)


@given(campaigns, st.sampled_from([None, 0.02, 0.1]))
def test_a_difference_is_found_only_where_every_campaign_alone_is_beyond_the_floor_on_the_same_side(
    ratios: list[list[float]], floor: float | None
) -> None:
    difference = difference_of(ratios, floor)
    bound = 1 + (floor or 0)
    if difference.finding == "higher":
        assert min(difference.campaigns) > bound
    if difference.finding == "lower":
        assert max(difference.campaigns) < 1 / bound


def test_campaigns_that_agree_keep_the_finding_and_two_that_do_not_are_inconclusive() -> None:
    near = np.linspace(1.09, 1.11, LAUNCHES)
    assert difference_of([near, near], 0.02).finding == "higher"
    apart = difference_of([near + 0.2, 0.99 * near / 1.1], 0.02)
    assert compare(np.concatenate([near + 0.2] * 3 + [near - 0.11]), np.ones(24), paired=True, floor=0.02).finding == (
        "higher"
    )
    outvoted = difference_of([near + 0.2, near + 0.2, near + 0.2, near - 0.11], 0.02)
    assert (apart.finding, outvoted.finding) == ("inconclusive", "inconclusive")
    assert outvoted.reason is DifferenceReason.CAMPAIGNS_DISAGREE


def test_equal_arms_are_no_longer_called_equal_where_a_campaign_says_otherwise() -> None:
    flat, risen = np.linspace(0.999, 1.001, LAUNCHES), np.linspace(1.059, 1.061, LAUNCHES)
    pooled = [*[flat] * 7, risen]
    plain = compare(np.concatenate(pooled), np.ones(8 * LAUNCHES), paired=True, floor=0.05)
    assert plain.finding == "no difference"
    assert difference_of([flat, flat], 0.05).finding == "no difference"
    assert difference_of([*[flat] * 2, risen], 0.05).finding == "inconclusive"


def test_one_campaign_changes_nothing() -> None:
    values = np.linspace(1, 2, LAUNCHES)
    assert around_campaigns(median_interval(values), medians([values])) == median_interval(values)
    difference = compare(values, np.ones(LAUNCHES), paired=True, floor=0.02)
    assert with_campaigns(difference, [Alone(1.5, LAUNCHES)]) == difference


@given(st.lists(st.floats(0.5, 2.0), min_size=7, max_size=14), st.data())
def test_interrupting_a_campaign_never_decides_more(ratios: list[float], data: st.DataObject) -> None:
    """The same launches in several calls: the interval is at least as wide, and a finding stays or becomes open."""
    cuts = sorted(data.draw(st.sets(st.integers(1, len(ratios) - 1), max_size=len(ratios) - 1)))
    pieces = [ratios[start:end] for start, end in zip([0, *cuts], [*cuts, len(ratios)], strict=True)]
    whole, split = difference_of([ratios], 0.05), difference_of(pieces, 0.05)
    assert split.finding in (whole.finding, "inconclusive")
    assert whole.interval is not None and split.interval is not None
    assert split.interval.low <= whole.interval.low and split.interval.high >= whole.interval.high


def test_pieces_of_one_day_do_not_outvote_another_day() -> None:
    """Ten calls of two launches each on a day of 1.2, and one whole campaign on a day of 0.9."""
    pieces, other = [np.array([1.19, 1.21])] * 10, np.linspace(0.89, 0.91, LAUNCHES)
    assert difference_of([*pieces, other], 0.02).finding == "inconclusive"
    values = [*pieces, other]
    interval = around_campaigns(median_interval(np.concatenate(values)), medians(values))
    assert interval is not None and interval.low <= 0.9


def test_a_short_campaign_on_the_other_side_takes_a_finding_back() -> None:
    near = np.linspace(1.09, 1.11, LAUNCHES)
    assert difference_of([near, near[:1]], 0.02).finding == "higher"
    assert difference_of([near, np.array([0.97])], 0.02).finding == "inconclusive"


def test_where_every_campaign_is_one_launch_the_test_over_launches_counts() -> None:
    ratios = [*np.linspace(1.09, 1.11, 11), 0.99]
    one_by_one = difference_of([[ratio] for ratio in ratios], 0.02)
    assert (one_by_one.finding, len(one_by_one.campaigns)) == ("higher", 12)
    assert one_by_one.finding == difference_of([ratios], 0.02).finding


def found(sizes: Sequence[int], floors: float) -> float:
    """How often a difference of so many floors is found, of 400 simulated experiments with so many pairs a campaign."""
    generator, spread = np.random.default_rng(3), 0.02
    floor = 1.42 * spread
    ratios = np.exp(generator.normal(floors * floor, spread * np.sqrt(2), (400, sum(sizes))))
    pieces = [np.split(each, np.cumsum(sizes)[:-1]) for each in ratios]
    return float(np.mean([difference_of(each, floor).finding == "higher" for each in pieces]))


@pytest.mark.parametrize(
    ("sizes", "twice", "three_times"),
    [
        ((6,), 0.87, 1.0),
        ((5, 1), 0.77, 0.97),
        ((3, 3), 0.85, 0.99),
        ((6, 6), 0.98, 1.0),
        ((6, 5, 1), 0.81, 0.98),
    ],
)
def test_docs_say_what_an_interruption_costs(sizes: tuple[int, ...], twice: float, three_times: float) -> None:
    """The table of docs/statistics.md."""
    assert found(sizes, 2) == pytest.approx(twice, abs=0.04)
    assert found(sizes, 3) == pytest.approx(three_times, abs=0.02)
    assert found(sizes, 0) <= 0.01
