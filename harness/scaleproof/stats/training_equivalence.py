"""Whether two trainings are equal up to rounding, by loss curves and final parameters."""

from __future__ import annotations

import numpy as np


def relative_difference(ours: np.ndarray, base: np.ndarray) -> float:
    """max |ours - base| / max |base|, in float64; absolute where the base is zero, infinite when sizes differ, are 0,
    or a value is not finite."""
    if ours.shape != base.shape or not ours.size:
        return float("inf")
    values, reference = ours.astype(np.float64), base.astype(np.float64)
    if not (np.isfinite(values).all() and np.isfinite(reference).all()):
        return float("inf")
    return float(np.max(np.abs(values - reference))) / (float(np.max(np.abs(reference))) or 1.0)
