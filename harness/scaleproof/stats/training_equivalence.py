"""Whether two trainings are the same one: loss curves and final parameters, compared up to rounding."""

from __future__ import annotations

import numpy as np


def relative_difference(ours: np.ndarray, base: np.ndarray) -> float:
    """max |ours - base| / max |base|, in float64; absolute where the base is zero, infinite when sizes differ, are 0,
    or a value is not finite."""
    if ours.shape != base.shape or not ours.size:
        return float("inf")
    one, other = ours.astype(np.float64), base.astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return float("inf")
    return float(np.max(np.abs(one - other))) / (float(np.max(np.abs(other))) or 1.0)
