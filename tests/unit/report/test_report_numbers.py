"""Numbers as the pages show them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.report.numbers import bracket, exact, nbytes, significant


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0, "0"),
        (6, "6"),
        (1.0, "1.00"),
        (0.8567, "0.857"),
        (-2.345, "−2.35"),
        (12345.0, "12\u202f300"),
        (999.6, "1\u202f000"),
        (1.234e-7, "1.23\u202f×\u202f10⁻⁷"),
        (0.00099996, "0.00100"),
    ],
)
def test_three_significant_digits(value: float | None, expected: str) -> None:
    assert significant(value) == expected


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_what_is_shown_is_within_half_a_unit_of_the_third_digit(value: float) -> None:
    text = significant(value).replace("\u202f", "").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    mantissa, _, power = text.partition("×10")
    assert float(mantissa) * 10.0 ** int(power or 0) == pytest.approx(value, rel=0.00501)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(6.5, "6.5"), (90, "90"), (29500, "29\u202f500"), (0.7031, "0.7031"), (None, "–"), (0.015, "0.015")],
)
def test_published_values_are_not_rounded(value: float | None, expected: str) -> None:
    assert exact(value) == expected


def test_message_sizes_are_binary() -> None:
    assert [nbytes(size) for size in (0, 1000, 1024, 1536, 64 << 20)] == [
        "0\u202fB",
        "1000\u202fB",
        "1\u202fKiB",
        "1.50\u202fKiB",
        "64\u202fMiB",
    ]


def test_no_interval_is_shown_where_there_is_none() -> None:
    assert bracket(None, None) == ""
    assert bracket(1.234, 5.678) == "[1.23, 5.68]"
