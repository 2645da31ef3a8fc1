"""Options of a case that tune an estimate; one that is missing has its default."""

from __future__ import annotations

from dataclasses import replace

from suite_programs.forecasts import MODELS, Models
from suite_programs.forest import Trees
from suite_programs.simulation import ROLLING, Rolling

from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import Options, real, whole

MOST_LEAVES = 131_072
"""Of a tree of LightGBM."""


def rolling_of(given: Options) -> Rolling:
    """Options `decay`, `prior_count` and `share`."""
    of: Options = {"decay": ROLLING.decay, "prior_count": ROLLING.prior_count, "share": ROLLING.share, **given}
    return Rolling(ROLLING.prior, real(of, "decay", 0, 1), real(of, "prior_count", 0), real(of, "share", 0, 1))


def trees_of(given: Options, default: Trees) -> Trees:
    """Options `leaves` and `rate` of LightGBM."""
    of: Options = {"leaves": default.leaves, "rate": default.rate, **given}
    leaves, rate = whole(of, "leaves", 2, MOST_LEAVES), real(of, "rate", 0, 1)
    if not rate:
        raise SpecError("options.rate: 0 lets nothing be learned")
    return replace(default, leaves=leaves, rate=rate)


def models_of(given: Options) -> Models:
    """Of forecasts: options of LightGBM, and `penalty` of least squares."""
    return Models(trees_of(given, MODELS.trees), real({"penalty": MODELS.penalty, **given}, "penalty", 0))
