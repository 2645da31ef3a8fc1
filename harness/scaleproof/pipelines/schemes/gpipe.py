"""GPipe (Huang et al. 2019): all forward passes, then all backward passes in reverse order."""

from __future__ import annotations

from scaleproof.pipelines.schedule import Pass, Schedule
from scaleproof.pipelines.scheme import Scheme


def gpipe(stages: int, micro_batches: int) -> Schedule:
    """One pipeline; a stage holds the activations of all micro-batches."""
    orders = tuple(
        (
            *(Pass(0, stage, "forward", (number,)) for number in range(micro_batches)),
            *(Pass(0, stage, "backward", (number,)) for number in reversed(range(micro_batches))),
        )
        for stage in range(stages)
    )
    return Schedule("gpipe", stages, micro_batches, orders)


SCHEMES = (Scheme("gpipe", "all forward passes, then all backward passes", gpipe, lambda stages, count: count),)
