"""DAPPLE (Fan et al. 2021), the synchronous schedule 1F1B: a stage begins with as many forward passes as stages follow
it, then one backward pass alternates with one forward pass.

Slots of one pass: the forward pass of micro-batch i at stage s is in slot 2i + s, its backward pass in slot
2i + 2D - 1 - s."""

from __future__ import annotations

from collections.abc import Iterator

from scaleproof.pipelines.schedule import Pass, Schedule
from scaleproof.pipelines.scheme import Scheme


def dapple(stages: int, micro_batches: int) -> Schedule:
    """One pipeline; stage s holds the activations of at most D - s micro-batches."""
    orders = tuple(tuple(one_forward_one_backward(0, stage, stages, micro_batches)) for stage in range(stages))
    slots = tuple(
        tuple(2 * each.units[0] + (stage if each.direction == "forward" else 2 * stages - 1 - stage) for each in order)
        for stage, order in enumerate(orders)
    )
    return Schedule("dapple", stages, micro_batches, orders, slots)


def one_forward_one_backward(pipeline: int, stage: int, stages: int, micro_batches: int) -> Iterator[Pass]:
    """The passes of one stage."""
    ahead = min(stages - stage, micro_batches)
    for number in range(ahead):
        yield Pass(pipeline, stage, "forward", (number,))
    for number in range(micro_batches):
        yield Pass(pipeline, stage, "backward", (number,))
        if number + ahead < micro_batches:
            yield Pass(pipeline, stage, "forward", (number + ahead,))


SCHEMES = (Scheme("dapple", "1F1B: one backward pass alternates with one forward pass", dapple, min),)
