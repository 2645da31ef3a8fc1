"""Options of a case as numbers. SpecError names the option that is none, or outside its range."""

from __future__ import annotations

from collections.abc import Mapping

from scaleproof.spec.errors import SpecError

Options = Mapping[str, str | int | float]


def real(of: Options, name: str, low: float, high: float = float("inf")) -> float:
    """A number from `low` to `high`."""
    value = _given(of, name)
    if isinstance(value, str) or not low <= value <= high:
        raise SpecError(f"options.{name}: {value!r} is no number {_range(low, high)}")
    return float(value)


def whole(of: Options, name: str, low: int, high: float = float("inf")) -> int:
    """A whole number from `low` to `high`."""
    value = _given(of, name)
    if isinstance(value, str) or not low <= value <= high or not float(value).is_integer():
        raise SpecError(f"options.{name}: {value!r} is no whole number {_range(low, high)}")
    return int(value)


def _given(of: Options, name: str) -> str | int | float:
    if name not in of:
        raise SpecError(f"options.{name}: is missing")
    return of[name]


def _range(low: float, high: float) -> str:
    return f"of at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
