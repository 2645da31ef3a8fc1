"""Options of a suite's own program are read in one way, and what is wrong is one line."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import ProgramOptions, choice, real, whole


def options(value: Any) -> ProgramOptions:
    return ProgramOptions("training", {"rate": value})


def test_numbers_and_words_are_read() -> None:
    assert real(options(1), "rate", 0, 1) == 1.0
    assert whole(options(3.0), "rate", 1) == 3
    assert choice(options("slow"), "rate", ["slow", "fast"]) == "slow"


@pytest.mark.parametrize("value", ["0.1", "fast", math.nan, math.inf, -0.1, 1.1, True])
def test_what_is_no_number_of_the_range_is_one_line(value: Any) -> None:
    with pytest.raises(SpecError) as raised:
        real(options(value), "rate", 0, 1)
    assert str(raised.value) == f"options.rate: {value!r} is no number from 0 to 1"


@pytest.mark.parametrize("value", ["3", 1.5, 0, -2, math.inf, math.nan, True])
def test_what_is_no_whole_number_of_the_range_is_one_line(value: Any) -> None:
    with pytest.raises(SpecError) as raised:
        whole(options(value), "rate", 1)
    assert str(raised.value) == f"options.rate: {value!r} is no whole number of at least 1"


def test_an_unknown_word_is_one_line_with_the_nearest_one() -> None:
    with pytest.raises(SpecError) as raised:
        choice(options("slwo"), "rate", ["slow", "fast"])
    assert str(raised.value) == "options.rate: unknown value 'slwo'; did you mean 'slow'?"


def test_an_option_that_the_case_lacks_is_named_with_what_there_is() -> None:
    with pytest.raises(
        SpecError, match=r"programs/training.py needs option 'rat' \(options.rat\).*did you mean 'rate'"
    ):
        real(options(1), "rat")
