"""The minutes that suites may take in the reference run, on two quiet cores, and what a slower machine may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from scaleproof.spec.suite import load_suite
from tools.reference import ROOT

TODAY = frozenset(
    {"awan2019", "crosscheck", "das2016", "micro", "taxonomy", "validation", "vigna2007", "xue2019", "zou2017"}
)
"""The suites that share BUDGET_MIN; each later one states its own minutes as `reference_minutes` in suite.yaml."""
BUDGET_MIN = 75.0
"""For the suites of TODAY with calibration and pages; experiments that came to them later state their own minutes."""

CALIBRATION, PAGES = "calibrate", "pages"
CALIBRATION_MIN = 1.62
"""What calibration took on the machine for which all minutes here are stated (run of commit d3500e56be). It does the
same work everywhere, so that its minutes tell how much slower a machine is."""


def slowness(minutes: Mapping[str, float]) -> float:
    """How many times as long a machine takes, by its calibration; a faster one, or none measured, is held to 1."""
    return max(1.0, minutes.get(CALIBRATION, 0.0) / CALIBRATION_MIN)


@cache
def added_min(suite: str) -> float:
    """The minutes that later experiments of a suite of TODAY state."""
    return load_suite(ROOT / "suites" / suite).added_minutes if suite in TODAY else 0.0


def own_min(minutes: Mapping[str, float]) -> float:
    """The minutes of a run that count against `allowed_min`: without later suites, and without their part of the
    pages, which is as large as that of any suite."""
    own = [step for step in minutes if limit_min(step) is None]
    suites = len(minutes.keys() - {CALIBRATION, PAGES})
    theirs = (suites - len(TODAY & minutes.keys())) / suites if suites else 0.0
    return sum(minutes[step] for step in own) - theirs * minutes.get(PAGES, 0.0)


def allowed_min(steps: Iterable[str]) -> float:
    """What steps may take that are not of later suites."""
    return BUDGET_MIN + sum(added_min(step) for step in steps)


@cache
def limit_min(suite: str) -> float | None:
    """The minutes that a later suite states; None for a suite of TODAY, and for what is no suite."""
    if suite in TODAY or not (ROOT / "suites" / suite).is_dir():
        return None
    return load_suite(ROOT / "suites" / suite).reference_minutes
