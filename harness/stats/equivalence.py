"""Whether two trainings are the same one: loss curves and final parameters, compared up to rounding."""

from __future__ import annotations

import numpy as np

TOLERANCE = 1e-5
"""For both measures below. Rounding alone gives up to 5e-7 on the digits nets (docs/workloads.md); one rank left out of one step gives 5e-3 and more."""


def loss_difference(first: np.ndarray, second: np.ndarray) -> float:
    """Largest absolute difference of two loss curves (one value per step); infinite when their lengths differ or a value is not finite."""
    if first.shape != second.shape or not first.size:
        return float("inf")
    return _finite(float(np.max(np.abs(first - second))))


def parameter_difference(first: np.ndarray, second: np.ndarray) -> float:
    """Euclidean norm of the difference over the norm of the first, in float64; infinite when the sizes differ or a value is not finite."""
    if first.shape != second.shape or not first.size:
        return float("inf")
    one, other = first.astype(np.float64).reshape(-1), second.astype(np.float64).reshape(-1)
    norm = float(np.linalg.norm(one))
    return _finite(float(np.linalg.norm(one - other)) / norm) if norm else _finite(float(np.linalg.norm(other)))


def _finite(value: float) -> float:
    return value if np.isfinite(value) else float("inf")
