"""Emulated time: what `dilation` and `shrink` of a case do to times and tensors, and how both are taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase


def shrunk(size: int, shrink: float) -> int:
    """Elements, or bytes, that are moved in place of `size`: none for none, else at least 1."""
    return max(1, round(size / shrink)) if size else 0


def emulated(case: AnyCase) -> bool:
    """Whether the clock or the tensors of a launch are not those that its metrics speak of. A simulator has neither:
    its samples are true as they are."""
    return not case.plugin("fabric").predicted and (case.dilation != 1 or case.shrink != 1)


def true_times(case: AnyCase, nanoseconds: np.ndarray) -> np.ndarray:
    """Moments on the launch's clock, or lengths, in the time that is emulated (ns); order and equality stay."""
    if not emulated(case) or case.dilation == 1:
        return nanoseconds
    divisor = int(case.dilation) if case.dilation.is_integer() else case.dilation
    return np.floor_divide(nanoseconds, divisor).astype(np.int64)


def true_bytes(case: AnyCase, nbytes: np.ndarray) -> np.ndarray:
    """The bytes that those which were moved stand for."""
    if not emulated(case) or case.shrink == 1:
        return nbytes
    return np.rint(nbytes * case.shrink).astype(np.int64)
