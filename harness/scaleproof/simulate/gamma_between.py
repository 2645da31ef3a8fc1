"""gamma of arrays whose size was not measured."""

from __future__ import annotations

import numpy as np


def gamma_between(nbytes: float, sizes: np.ndarray, gammas: np.ndarray) -> float:
    """gamma of arrays of `nbytes` from those of other sizes: in between on the logarithm of the size, and beyond them
    as at the nearest."""
    return float(np.interp(np.log(max(nbytes, 1.0)), np.log(sizes), gammas))
