"""Whether any launches at all could confirm a claim, and any refute it, by the values that its metric can have."""

from __future__ import annotations

import math

from scaleproof.claims.claim_form import ORDERS, Direction, Rule
from scaleproof.claims.metrics import Metric
from scaleproof.claims.verdict_rules import accepted_region

UNREACHED = 1e18
"""No launch has such a value, whatever its unit: it is more seconds than the universe is old, and more bytes than all
memory of a machine has."""


def cannot_fall(rule: Rule, metric: Metric, published: float | None, direction: Direction | None) -> str | None:
    """Why no launches at all can refute the claim, or confirm it; None where it can fall both ways."""
    if rule.name in ORDERS:
        return None
    if published is None and rule.value is None and rule.name in ("within", "equal_to_tolerance"):
        return None
    region = accepted_region(rule, published, direction, floor=0.0)
    if region.low > region.high:
        return f"no launch can confirm it: {region.low:g} to {region.high:g} is no range"
    values = f"every value of metric {metric.name!r} is {_between(*metric.possible)}"
    least, most = (min(max(end, -UNREACHED), UNREACHED) for end in metric.possible)
    if most == UNREACHED <= region.high < math.inf:
        values += f", below {UNREACHED:g}"
    if region.low <= least and most <= region.high:
        return f"no launch can refute it: {values}, and the rule accepts all of them"
    if region.high < least or region.low > most:
        return f"no launch can confirm it: {values}, and the rule accepts none of them"
    return None


def _between(least: float, most: float) -> str:
    if math.isinf(most):
        return "a number" if math.isinf(least) else f"{least:g} or more"
    return f"{most:g} or less" if math.isinf(least) else f"from {least:g} to {most:g}"
