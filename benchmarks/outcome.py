"""Whether an interval meets a target: only if all of it does."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["met", "missed", "undecided", "not measured"]


def outcome(low: float | None, high: float | None, wanted: float) -> Outcome:
    """Of a ratio that has to be at least `wanted`; too few launches for an interval decide nothing."""
    if low is None or high is None:
        return "undecided"
    if low >= wanted:
        return "met"
    return "missed" if high < wanted else "undecided"
