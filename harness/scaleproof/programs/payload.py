"""Payloads with known content: small integers, so that sums over ranks are exact in every type."""

from __future__ import annotations

import numpy as np

BLOCK = 251
PERIOD = 7
"""Values 0 to 6: a sum over 18 ranks still fits into int8, one over 300 is exact in float16."""


def pattern(elements: int, dtype: str, salt: int) -> np.ndarray:
    """Element i is (i + i // 251 + salt) mod 7. Neighbouring blocks differ: a misplaced block is detected unless it is
    moved by a multiple of 7 * 251 elements."""
    index = np.arange(PERIOD * BLOCK)
    once = ((index + index // BLOCK + salt) % PERIOD).astype(dtype)
    return np.resize(once, elements)


def differing(actual: np.ndarray, expected: np.ndarray) -> int:
    """Number of elements that differ from the expected ones."""
    return int(np.count_nonzero(actual != expected))
