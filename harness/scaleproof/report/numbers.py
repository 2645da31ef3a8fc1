"""Numbers for readers: three significant digits, intervals beside values, units that fit."""

from __future__ import annotations

import math

from scaleproof.stats.never import is_never

NARROW = "\u202f"
"""A narrow space between groups of digits; it does not break."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def significant(value: float | int | None, digits: int = 3) -> str:
    """Rounded to significant digits; an en dash for nothing. Counts (int) below 10 000 stay as they are."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if value == 0:
        return "0"
    if math.isinf(value) or is_never(value) and abs(value) > 1:
        return "∞" if value > 0 else "−∞"
    if is_never(value):
        return "0"
    if isinstance(value, int) and abs(value) < 10_000:
        return _signed(str(value))
    exponent = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if exponent < -4 or exponent > 9:
        return (
            _signed(f"{value / 10.0**exponent:.{digits - 1}f}")
            + f"{NARROW}×{NARROW}10{str(exponent).translate(_SUPERSCRIPTS)}"
        )
    if exponent >= digits:
        return _signed(f"{round(value, digits - 1 - exponent):,.0f}".replace(",", NARROW))
    return _signed(f"{value:.{max(digits - 1 - exponent, 0)}f}")


def exact(value: float | int | None) -> str:
    """A published value or a tick, not rounded to significant digits."""
    if value is None or not 1e-4 <= abs(value) < 1e9:
        return significant(value)
    integer, _, fraction = f"{value:,.9f}".rstrip("0").partition(".")
    grouped = integer.replace(",", "" if abs(value) < 10_000 else NARROW)
    return _signed(f"{grouped}.{fraction}" if fraction else grouped)


def bracket(low: float | None, high: float | None) -> str:
    """An interval, empty when there is none."""
    return "" if low is None or high is None else f"[{significant(low)}, {significant(high)}]"


def percent(share: float | None) -> str:
    """A share of 1 in percent, to a tenth below 10 %."""
    if share is None or math.isnan(share):
        return "–"
    return _signed(f"{100 * share:.{0 if abs(share) >= 0.0995 else 1}f}").replace("−0.0", "0.0") + f"{NARROW}%"


def nbytes(count: float | None) -> str:
    """A message size or traffic in binary units."""
    if count is None or math.isnan(count):
        return "–"
    size, units = float(count), ("B", "KiB", "MiB", "GiB", "TiB")
    power = 0
    while abs(size) >= 1024 and power < len(units) - 1:
        size, power = size / 1024, power + 1
    return f"{exact(size) if size.is_integer() else significant(size)}{NARROW}{units[power]}"


def _signed(text: str) -> str:
    return text.replace("-", "−")
