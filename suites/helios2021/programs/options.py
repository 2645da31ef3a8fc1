"""Options of a case that tune an estimate. SpecError names the one that is no number, or outside its range; one that is
missing has its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from suite_programs.forecasts import MODELS, Models
from suite_programs.forest import Trees
from suite_programs.simulation import ROLLING, Rolling

from scaleproof.spec.errors import SpecError

Options = Mapping[str, str | int | float]
TINY = 1e-9
"""Least of what must be above 0."""
MOST_LEAVES = 131_072
"""Of a tree of LightGBM."""


def real(of: Options, name: str, default: float, low: float, high: float = float("inf")) -> float:
    """A number from `low` to `high`."""
    value = of.get(name, default)
    if isinstance(value, str) or not low <= value <= high or value == float("inf"):
        raise SpecError(f"options.{name}: {value!r} is no number {_range(low, high)}")
    return float(value)


def whole(of: Options, name: str, default: int, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    value = of.get(name, default)
    if isinstance(value, str) or not low <= value <= high or not float(value).is_integer():
        raise SpecError(f"options.{name}: {value!r} is no whole number {_range(low, high)}")
    return int(value)


def rolling_of(of: Options) -> Rolling:
    """Options `decay`, `pull` and `share`."""
    return Rolling(
        ROLLING.prior,
        real(of, "decay", ROLLING.decay, 0, 1),
        real(of, "pull", ROLLING.pull, 0),
        real(of, "share", ROLLING.share, 0, 1),
    )


def trees_of(of: Options, default: Trees) -> Trees:
    """Options `leaves` and `rate` of LightGBM."""
    leaves = whole(of, "leaves", default.leaves, 2, MOST_LEAVES)
    return replace(default, leaves=leaves, rate=real(of, "rate", default.rate, TINY, 1))


def models_of(of: Options) -> Models:
    """Of forecasts: options of LightGBM, and `penalty` of least squares."""
    return Models(trees_of(of, MODELS.trees), real(of, "penalty", MODELS.penalty, 0))


def _range(low: float, high: float) -> str:
    if high == float("inf"):
        return f"of at least {low:g}"
    return f"above 0, up to {high:g}" if low == TINY else f"from {low:g} to {high:g}"
