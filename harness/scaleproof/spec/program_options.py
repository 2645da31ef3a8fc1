"""Options of a suite's own program, and how one reads them: what is wrong is a SpecError of one line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NoReturn

from scaleproof.spec.errors import SpecError

Options = Mapping[str, str | int | float]


class ProgramOptions(dict[str, str | int | float]):
    """By name. Reading one that the case lacks raises SpecError, one line with the program and what there is."""

    def __init__(self, entry: str, values: Mapping[str, str | int | float]) -> None:
        super().__init__(values)
        self._entry = entry

    def __missing__(self, name: str) -> NoReturn:
        from scaleproof.spec.registry import nearest

        there = f"the case has {', '.join(self)}" if self else "the case has none"
        advice = nearest(name, list(self)) if self else ""
        similar = f"; {advice}" if advice.startswith("did you mean") else ""
        raise SpecError(f"programs/{self._entry}.py needs option {name!r} (options.{name}); {there}{similar}")


def real(of: Options, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number from `low` to `high`."""
    value = of[name]
    if not _is_finite(value) or not low <= float(value) <= high:
        raise SpecError(f"options.{name}: {value!r} is no number{_range(low, high)}")
    return float(value)


def whole(of: Options, name: str, low: float = 0, high: float = math.inf) -> int:
    """A whole number from `low` to `high`."""
    value = of[name]
    if not _is_finite(value) or not low <= float(value) <= high or not float(value).is_integer():
        raise SpecError(f"options.{name}: {value!r} is no whole number{_range(low, high)}")
    return int(value)


def choice(of: Options, name: str, known: Iterable[str]) -> str:
    """One of the `known` names."""
    from scaleproof.spec.registry import nearest

    value, names = of[name], list(known)
    if value not in names:
        raise SpecError(f"options.{name}: unknown value {value!r}; {nearest(str(value), names)}")
    return str(value)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _range(low: float, high: float) -> str:
    if high < math.inf:
        return f" from {low:g} to {high:g}"
    return f" of at least {low:g}" if low > -math.inf else ""
