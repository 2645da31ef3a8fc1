"""GPipe (Huang et al. 2019): all forward passes, then all backward passes in reverse order."""

from __future__ import annotations

from itertools import chain

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
    last = stages + micro_batches - 1
    slots = tuple(
        tuple(chain(range(stage, stage + micro_batches), range(last + back, last + back + micro_batches)))
        for stage, back in zip(range(stages), reversed(range(stages)), strict=True)
    )
    return Schedule("gpipe", stages, micro_batches, orders, slots)


SCHEMES = (Scheme("gpipe", "all forward passes, then all backward passes", gpipe, lambda stages, count: count),)
