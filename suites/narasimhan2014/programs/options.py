"""What is wrong with the numbers and names of a case, in one line."""

from __future__ import annotations

from suite_programs import library
from suite_programs.data_sets import SOURCES
from suite_programs.heuristics import heuristic

from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.program_options import real, whole

LEAST = {"samples": 0, "parts": 1, "most": 0, "cache_mb": 1, "alone": 0, "exchanges": 0}
"""The smallest value of each option that is a whole number."""


def check_options(case: OwnCase) -> None:
    """SpecError for the first option that makes no solution. Data are looked up elsewhere (data_sets.py)."""
    options = case.options
    eps = real(options, "eps")
    if not 0 < eps < 1:
        raise SpecError(f"options.eps: {eps:g} is not above 0 and below 1")
    for name, least in LEAST.items():
        whole(options, name, least)
    source, samples = SOURCES.get(str(options["data"])), int(options["samples"])
    if source is not None and source.draw is not None and samples < max(2, case.ranks):
        raise SpecError(f"options.samples: {samples} are too few for two classes on {case.ranks} ranks")
    names = str(options["variants"]).split()
    if not names:
        raise SpecError("options.variants: it names no heuristic")
    for name in names:
        if name not in library.NAMES:
            heuristic(name, 1)
        elif case.ranks > 1:
            raise SpecError(f"options.variants: {name} runs on one rank, not on {case.ranks}")
