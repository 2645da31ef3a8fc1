"""How many outputs a Q-network needs, and the memory that training it takes."""

from __future__ import annotations

import math

BYTES = 4
"""Of a float32."""
COPIES = 5
"""Of each weight: the weight, its gradient, Adam's two moments, and the target network's copy."""
SCHEDULERS = ("iterative", "shared", "flat", "flat_ordered")
"""A plant after the other, by one network over the whole state or by one that scores each plant; a whole schedule at
once, as a set of plants or with their channels."""
LIBRARY = "flat_library"
"""The actions of `flat`, learned by stable-baselines3."""


def outputs(scheduler: str, plants: int, channels: int) -> int:
    """Outputs of the Q-network: one per action."""
    if scheduler in ("flat", LIBRARY):
        return math.comb(plants, channels)
    if scheduler == "flat_ordered":
        return math.perm(plants, channels)
    return plants


def memory_bytes(count: int, hidden: int, batch: int) -> int:
    """Least memory to train the last layer: its weights and biases in all copies, and the values of a batch with their
    gradients."""
    return BYTES * count * (COPIES * (hidden + 1) + 2 * batch)
