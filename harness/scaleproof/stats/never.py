"""A launch that never gets where a metric counts (it diverges, or misses its target) has no number. In statistics it
stands beyond every number: leaving it out would favour the arms that fail."""

from __future__ import annotations

NEVER = 1e300
"""Where less is better. Finite, so that medians, logarithms and files can have it; where more is better, 1 / NEVER."""
_LEAST = 1e200


def worst(higher_is_better: bool) -> float:
    """What stands for a launch without a number."""
    return 1 / NEVER if higher_is_better else NEVER


def is_never(value: float) -> bool:
    """Whether a number comes from NEVER: it is that itself, or a ratio or mean with it."""
    return abs(value) > _LEAST or 0 < abs(value) < 1 / _LEAST
