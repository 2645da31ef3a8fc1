"""Byte sizes as people write them, and sizes and times as people read them."""

from __future__ import annotations

import re

from pydantic import ByteSize, TypeAdapter, ValidationError

_SIZE = TypeAdapter(ByteSize)
_NUMBER_AND_UNIT = re.compile(r"[\d.]+\s*[A-Za-z]+")
"""ByteSize ignores what comes after its unit."""


def parse_bytes(value: object) -> object:
    """A number of bytes from '64 KiB' and the like; what is no text is returned as it is. Raises ValueError."""
    if not isinstance(value, str):
        return value
    try:
        if _NUMBER_AND_UNIT.fullmatch(value.strip()):
            return int(_SIZE.validate_python(value))
    except ValidationError:
        pass
    raise ValueError(f"{value!r} is no size in bytes; write a number with its unit, as in '64 KiB'")


def format_bytes(nbytes: float) -> str:
    """'512 B', '1.5 MiB', '132 MiB'."""
    units = ("B", "KiB", "MiB", "GiB")
    power = min(3, max(0, int(nbytes).bit_length() - 1) // 10)
    number = nbytes / 1024**power
    return f"{number:.0f} {units[power]}" if number >= 100 or power == 0 else f"{number:.3g} {units[power]}"


def format_seconds(seconds: float) -> str:
    """'12 s', '3 min 20 s', '2 h 5 min'."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    minutes, rest = divmod(total, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
