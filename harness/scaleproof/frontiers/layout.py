"""Layouts of an array over a mesh of devices, and what it takes to bring it from one layout into another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True, slots=True)
class Layout:
    """Device i has part `i // (devices / batch)` of the samples and part `(i // stride) mod features` of the features;
    devices with the same parts have copies."""

    batch: int = 1
    features: int = 1
    stride: int = 1

    @property
    def parts(self) -> int:
        """How many times smaller the part of a device is than the whole."""
        return self.batch * self.features


@cache
def missing_share(have: Layout, want: Layout, devices: int) -> float:
    """Share of the whole array that a device must receive to get from one layout into another, the most of any
    device."""
    numbers = np.arange(devices)

    def starts(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
        return numbers // (
            devices // layout.batch
        ) / layout.batch, numbers // layout.stride % layout.features / layout.features

    (own_batch, own_features), (new_batch, new_features) = starts(have), starts(want)
    common = _overlap(own_batch, 1 / have.batch, new_batch, 1 / want.batch)
    common *= _overlap(own_features, 1 / have.features, new_features, 1 / want.features)
    missing = float((1 / want.parts - common).max())
    return missing if missing > 1e-12 else 0.0


def _overlap(one: np.ndarray, length: float, other: np.ndarray, other_length: float) -> np.ndarray:
    found: np.ndarray = np.clip(np.minimum(one + length, other + other_length) - np.maximum(one, other), 0, None)
    return found
