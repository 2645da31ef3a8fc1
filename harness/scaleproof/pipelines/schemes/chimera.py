"""Chimera (Li and Hoefler 2021): 2f pipelines over the same workers, half of which run in the other direction, so that
one fills gaps of another.

Slots as in `shared` units of one pass: the forward pass of the i-th micro-batch of a pipeline at its stage s is in slot
2i + s, its backward pass in slot 2i + 2D - 1 - s. With f directions each, pipeline g is shifted by g D / f workers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from scaleproof.pipelines.schedule import Direction, Pass, Schedule, refuse
from scaleproof.pipelines.scheme import Scheme

DIRECTIONS: tuple[Direction, ...] = ("backward", "forward")


def chimera(stages: int, micro_batches: int, pairs: int = 1) -> Schedule:
    """`pairs`: f, pairs of a pipeline down and one up. More micro-batches than stages: basic units one after the other
    (direct concatenation), each with as many micro-batches as stages."""
    of_unit = _of_unit("chimera", stages, micro_batches, pairs)
    return Schedule("chimera", stages, micro_batches, *_orders(stages, micro_batches, pairs, of_unit))


def _of_unit(scheme: str, stages: int, micro_batches: int, pairs: int, at_a_time: int = 1) -> int:
    """Forward passes at a stage in a basic unit, each of `at_a_time` micro-batches. SpecError for what does not fit."""
    if stages % 2:
        raise refuse(scheme, "an odd number of stages", stages, [stages - 1, stages + 1])
    if (stages // 2) % pairs:
        divisors = [each for each in range(1, stages // 2 + 1) if not (stages // 2) % each]
        raise refuse(scheme, f"{stages} stages with pairs of pipelines,", pairs, divisors)
    passes = micro_batches // at_a_time
    of_unit = min(passes, stages)
    if micro_batches % at_a_time or of_unit % (2 * pairs) or passes % of_unit:
        step = at_a_time * (2 * pairs if passes < stages else stages)
        lower = micro_batches - micro_batches % step
        raise refuse(scheme, "micro-batches", micro_batches, [lower, lower + step])
    return of_unit


def _orders(
    stages: int, micro_batches: int, pairs: int, of_unit: int
) -> tuple[tuple[tuple[Pass, ...], ...], tuple[tuple[int, ...], ...]]:
    """Passes of all pipelines in all basic units, by worker and slot, and their slots."""
    count = of_unit // (2 * pairs)
    shape = micro_batches // of_unit, 2 * pairs, stages, count, len(DIRECTIONS)
    unit, pipeline, stage, number, forward = (each.ravel() for each in np.indices(shape))
    up, shift = np.divmod(pipeline, pairs)
    place = (stage + shift * stages // pairs) % stages
    worker = np.where(up, stages - 1 - place, place)
    slot = 2 * (unit * of_unit + number) + np.where(forward, stage, 2 * stages - 1 - stage)
    micro_batch = unit * of_unit + pipeline * count + number
    by_slot = np.lexsort((micro_batch, forward, stage, pipeline, slot, worker))
    columns = (each[by_slot].tolist() for each in (pipeline, stage, forward, micro_batch))
    pipelines, of_stage, directions, numbers = columns
    passes = list(map(Pass, pipelines, of_stage, map(DIRECTIONS.__getitem__, directions), zip(numbers, strict=True)))
    of_worker = len(passes) // stages
    begins = range(0, len(passes), of_worker)
    slots = slot[by_slot].tolist()
    return (
        tuple(tuple(passes[begin : begin + of_worker]) for begin in begins),
        tuple(tuple(slots[begin : begin + of_worker]) for begin in begins),
    )


def forward_doubling(stages: int, micro_batches: int, pairs: int = 1) -> Schedule:
    """Each forward pass takes two micro-batches and is followed by two backward passes of one: with backward passes of
    twice the time no gaps remain between basic units. Twice the activations."""
    _of_unit("chimera_doubling", stages, micro_batches, pairs, at_a_time=2)
    doubled = _split_backward(chimera(stages, micro_batches // 2, pairs), Fraction(1))
    return replace(doubled, scheme="chimera_doubling", micro_batches=micro_batches)


def backward_halving(stages: int, micro_batches: int, pairs: int = 1) -> Schedule:
    """Each backward pass takes half a micro-batch, so that it takes as long as a forward pass where a whole one takes
    twice as long. No more activations."""
    _of_unit("chimera_halving", stages, micro_batches, pairs)
    halved = _split_backward(chimera(stages, micro_batches, pairs), Fraction(1, 2))
    return replace(halved, scheme="chimera_halving")


def _split_backward(base: Schedule, unit: Fraction) -> Schedule:
    """Each micro-batch of the schedule becomes two units, which go forward together and backward one by one; each slot
    becomes two."""

    def passes(each: Pass) -> tuple[Pass, ...]:
        (number,) = each.units
        both = (2 * number, 2 * number + 1)
        if each.direction == "forward":
            return (each._replace(units=both),)
        return tuple(each._replace(units=(half,)) for half in both)

    orders = tuple(tuple(part for each in order for part in passes(each)) for order in base.orders)
    slots = tuple(
        tuple(2 * slot + half for each, slot in zip(order, of_worker, strict=True) for half in range(len(passes(each))))
        for order, of_worker in zip(base.orders, base.slots, strict=True)
    )
    return replace(base, orders=orders, slots=slots, unit=unit)


SCHEMES = (
    Scheme("chimera", "pipelines in both directions; basic units follow one another", chimera, min, has_pairs=True),
    Scheme(
        "chimera_doubling",
        "the same with forward passes of two micro-batches",
        forward_doubling,
        lambda stages, count: min(2 * stages, count),
        has_pairs=True,
    ),
    Scheme(
        "chimera_halving", "the same with backward passes of half a micro-batch", backward_halving, min, has_pairs=True
    ),
)
