"""A rate's share of what the machine can do, in words: beside every rate on the pages and in tooltips."""

from __future__ import annotations

from scaleproof.calibrate.attainable import Attainable, Attained
from scaleproof.report.numbers import percent, significant


def share(attained: Attained) -> str:
    """The share itself, or that there is no bound."""
    return f"{percent(attained.share)} of attainable" if isinstance(attained, Attainable) else "no bound"


def reason(attained: Attained) -> str:
    """What the share is of, or why there is no bound."""
    if not isinstance(attained, Attainable):
        return attained.why
    return f"of {significant(attained.limit)} {attained.unit}: {attained.why}"


def beside(attained: Attained | None) -> str:
    """What follows a value in a tooltip; empty for what is no rate."""
    if attained is None:
        return ""
    return f", {share(attained)}" + ("" if isinstance(attained, Attainable) else f": {attained.why}")
