"""Recurrent networks of xue2019: one LSTM or GRU layer of 1024 on inputs of 1024, and a softmax of 1000 on its last
state."""

from __future__ import annotations

from typing import Literal

from scaleproof.workloads.layers import Linear, Recurrent
from scaleproof.workloads.networks import Network, build, no_images

POSITIONS = 16
"""Length of a sequence: our own, the published one is not known. Parameters do not depend on it, FLOP do."""


def lstm(image_side: int | None = None, width: float = 1.0) -> Network:
    """Four gates of three tensors and a softmax: the published 14 tensors and 35.93 MiB."""
    return _recurrent("lstm", image_side, width)


def gru(image_side: int | None = None, width: float = 1.0) -> Network:
    """Three gates of three tensors and a softmax: the published 11 tensors and 27.92 MiB."""
    return _recurrent("gru", image_side, width)


def _recurrent(name: Literal["lstm", "gru"], image_side: int | None, width: float) -> Network:
    table = (Recurrent("cell", 1024, name), Linear("softmax", 1000, classifier=True))
    return build(name, no_images(name, (POSITIONS, 1024), image_side), table, width, "tanh")
