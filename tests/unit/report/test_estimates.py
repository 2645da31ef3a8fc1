"""Values of figures: intervals over launches hold what each campaign gives alone, as those of verdicts do."""

from __future__ import annotations

import pytest

from scaleproof.core.campaign import Campaign
from scaleproof.report.estimates import of_launches, ratio_of_launches

FIRST, SECOND = Campaign(0, "a"), Campaign(1, "b")
NEAR = [100.0 + index for index in range(6)]


def test_launches_of_one_campaign_have_the_interval_of_their_order_statistics() -> None:
    assert of_launches([(FIRST, value) for value in NEAR]) == (102.5, 100.0, 105.0)


def test_an_interval_holds_each_campaign_alone() -> None:
    many = [(FIRST, value) for value in NEAR * 4]
    assert of_launches([*many, (SECOND, 140.0)]).high == 140.0
    assert of_launches([*many, (FIRST, 140.0)]).high == pytest.approx(104, abs=1)


def test_ratios_hold_the_ratio_of_each_campaign_that_both_sides_have() -> None:
    above = [*((FIRST, value) for value in NEAR * 3), (SECOND, 300.0)]
    below = [*((FIRST, value) for value in NEAR * 3), (SECOND, 100.0)]
    ratio = ratio_of_launches(above, below)
    assert ratio.value == pytest.approx(1, abs=0.02) and ratio.high == pytest.approx(3)
    assert (ratio_of_launches(above[:-1], below).high or 9) < 1.1


def test_a_call_of_few_launches_is_held_however_many_campaigns_there_are() -> None:
    """Of ten whole campaigns the highest may be left out, but not a piece of one that was interrupted."""
    nine = [(Campaign(number, str(number)), value + number) for number in range(9) for value in NEAR]
    tenth = [(Campaign(9, "9"), value + 100) for value in NEAR]
    assert (of_launches([*nine, *tenth]).high or 200) < 150
    assert of_launches([*nine, *tenth, (Campaign(8, "after a pause"), 201.0)]).high == pytest.approx(202.5)
