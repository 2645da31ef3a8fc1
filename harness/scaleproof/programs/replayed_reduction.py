"""A reduction that takes as long as a slower node's: it is done as usual, and then its rank waits."""

from __future__ import annotations

import numpy as np

from scaleproof.transports.contract import UFUNCS
from scaleproof.workloads.pace import SECOND, Pace

LEAST_NS = 200_000
"""Shorter waits are added up: a sleep ends microseconds late, and what one wait is late the next is shorter."""


class PacedReduction:
    """Called as a NumPy function of two arguments is. `ns_per_byte`: of what is reduced."""

    def __init__(self, ufunc: np.ufunc, ns_per_byte: float, pace: Pace) -> None:
        self._ufunc, self._ns_per_byte, self._pace = ufunc, ns_per_byte, pace
        self._owed_ns = 0.0

    def __call__(self, one: np.ndarray, other: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Reduces into `out`, and waits."""
        began = self._pace.now()
        self._ufunc(one, other, out=out)
        self._owed_ns += out.nbytes * self._ns_per_byte
        if self._owed_ns - (self._pace.now() - began) >= LEAST_NS:
            self._pace.wait_until(round(began + self._owed_ns))
        self._owed_ns = max(self._owed_ns - (self._pace.now() - began), -LEAST_NS)
        return out


def reduce_as_slowly(gbyte_s: float, times: float, pace: Pace) -> None:
    """From now on, collectives of ours reduce so many GB/s in this process, `times` times slower: as often as its clock
    and its tensors are smaller than those that are replayed."""
    for name, ufunc in UFUNCS.items():
        assert isinstance(ufunc, np.ufunc)
        UFUNCS[name] = PacedReduction(ufunc, times / gbyte_s / 1e9 * SECOND, pace)
