"""The interface between a pipeline and a framework: one stage of a network on one worker."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from scaleproof.workloads.networks import Network


class StageModel(Protocol):
    """A stage (workloads/stages.py). Several units of samples may be between their forward and their backward pass; a
    unit's backward pass is that of the parameters of its forward pass."""

    def __init__(self, network: Network, gradient: np.ndarray, *, first: bool, threads: int, recompute: bool) -> None:
        """`gradient`: float32 (n,), to which backward passes add. `first`: its inputs are samples, whose gradient
        nobody needs. `recompute`: a unit keeps its inputs only, and its forward pass is repeated before the backward
        pass."""

    def use(self, parameters: np.ndarray) -> None:
        """From now on forward passes have these parameters, float32 (n,), which nobody changes while a unit is on its
        way."""

    def forward(self, unit: int, inputs: np.ndarray) -> np.ndarray:
        """Outputs, float32 (samples, *output_shape), of a stage that is not the last one."""

    def loss(self, unit: int, inputs: np.ndarray, labels: np.ndarray, scale: float) -> float:
        """Mean loss of the last stage; the gradient is that of the loss times `scale`."""

    def backward(self, unit: int, gradient: np.ndarray | None) -> np.ndarray | None:
        """Gradient of the unit's inputs; None of the first stage. `gradient`: of its outputs; None: of the loss."""
