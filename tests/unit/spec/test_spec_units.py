"""Byte sizes as people write them."""

from __future__ import annotations

import pytest

from scaleproof.spec.units import format_bytes, format_seconds, parse_bytes


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("0 B", 0), ("1 KiB", 1024), ("64MiB", 64 * 2**20), (" 2 GiB ", 2**31), ("1 kB", 1000), (7, 7), (None, None)],
)
def test_sizes_with_a_unit_are_bytes_binary_and_decimal(text: object, nbytes: object) -> None:
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize("text", ["64 Mebi", "-1 KiB", "MiB", "", "1 KiB 2", "1e3 B"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size in bytes"):
        parse_bytes(text)


def test_numbers_are_shown_with_a_unit() -> None:
    assert [format_bytes(number) for number in (0, 1023, 1536, 64 * 2**20, 3 * 2**40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "64 MiB",
        "3072 GiB",
    ]
    assert [format_seconds(number) for number in (0.04, 59.4, 60, 125, 7500)] == [
        "0.0 s",
        "59 s",
        "1 min 0 s",
        "2 min 5 s",
        "2 h 5 min",
    ]
