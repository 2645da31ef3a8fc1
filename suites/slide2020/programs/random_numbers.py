"""Random numbers of the loops in machine code: Marsaglia's xorshift of 64 bits."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def below(state: np.ndarray, limit: int) -> int:
    """A number from 0 to `limit` - 1. `state`: one uint64 that is not 0, which changes."""
    word = state[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    state[0] = word
    return np.int64((word >> np.uint64(33)) % np.uint64(limit))
