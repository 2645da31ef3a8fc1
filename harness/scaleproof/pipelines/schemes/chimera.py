"""Chimera (Li and Hoefler 2021): 2f pipelines over the same workers, half of which run in the other direction, so that
one fills gaps of another.

Slots as in `shared` units of one pass: the forward pass of the i-th micro-batch of a pipeline at its stage s is in slot
2i + s, its backward pass in slot 2i + 2D - 1 - s. With f directions each, pipeline g is shifted by g D / f workers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from scaleproof.pipelines.schedule import Pass, Schedule, refuse
from scaleproof.pipelines.scheme import Scheme


def chimera(stages: int, micro_batches: int, pairs: int = 1) -> Schedule:
    """`pairs`: f, pairs of a pipeline down and one up. More micro-batches than stages: basic units one after the other
    (direct concatenation), each with as many micro-batches as stages."""
    if stages % 2:
        raise refuse("chimera", "an odd number of stages", stages, [stages - 1, stages + 1])
    if (stages // 2) % pairs:
        divisors = [each for each in range(1, stages // 2 + 1) if not (stages // 2) % each]
        raise refuse("chimera", f"{stages} stages with pairs of pipelines,", pairs, divisors)
    of_unit = min(micro_batches, stages)
    if of_unit % (2 * pairs) or micro_batches % of_unit:
        step = 2 * pairs if micro_batches < stages else stages
        lower = micro_batches - micro_batches % step
        raise refuse("chimera", "micro-batches", micro_batches, [each for each in (lower, lower + step) if each])
    slots: list[list[tuple[int, Pass]]] = [[] for _ in range(stages)]
    for base in range(0, micro_batches, of_unit):
        for pipeline in range(2 * pairs):
            _add_pipeline(slots, pipeline, pairs, stages, base, of_unit)
    orders = tuple(tuple(each for _, each in sorted(slot)) for slot in slots)
    return Schedule("chimera", stages, micro_batches, orders)


def _add_pipeline(
    slots: list[list[tuple[int, Pass]]], pipeline: int, pairs: int, stages: int, base: int, of_unit: int
) -> None:
    """The passes of one pipeline in the basic unit that begins with micro-batch `base`."""
    count = of_unit // (2 * pairs)
    up, shift = divmod(pipeline, pairs)
    for stage in range(stages):
        place = (stage + shift * stages // pairs) % stages
        worker = stages - 1 - place if up else place
        for i in range(count):
            number = base + pipeline * count + i
            slots[worker].append((2 * base + 2 * i + stage, Pass(pipeline, stage, "forward", (number,))))
            back = 2 * base + 2 * i + 2 * stages - 1 - stage
            slots[worker].append((back, Pass(pipeline, stage, "backward", (number,))))


def forward_doubling(stages: int, micro_batches: int, pairs: int = 1) -> Schedule:
    """Each forward pass takes two micro-batches and is followed by two backward passes of one: with backward passes of
    twice the time no gaps remain between basic units. Twice the activations."""
    if micro_batches % 2:
        raise refuse("chimera_doubling", "micro-batches", micro_batches, [micro_batches - 1, micro_batches + 1])
    doubled = _split_backward(chimera(stages, micro_batches // 2, pairs), Fraction(1))
    return replace(doubled, scheme="chimera_doubling", micro_batches=micro_batches)


def backward_halving(stages: int, micro_batches: int, pairs: int = 1) -> Schedule:
    """Each backward pass takes half a micro-batch, so that it takes as long as a forward pass where a whole one takes
    twice as long. No more activations."""
    halved = _split_backward(chimera(stages, micro_batches, pairs), Fraction(1, 2))
    return replace(halved, scheme="chimera_halving")


def _split_backward(base: Schedule, unit: Fraction) -> Schedule:
    """Each micro-batch of the schedule becomes two units, which go forward together and backward one by one."""

    def passes(each: Pass) -> tuple[Pass, ...]:
        (number,) = each.units
        both = (2 * number, 2 * number + 1)
        if each.direction == "forward":
            return (each._replace(units=both),)
        return tuple(each._replace(units=(half,)) for half in both)

    orders = tuple(tuple(part for each in order for part in passes(each)) for order in base.orders)
    return replace(base, orders=orders, unit=unit)


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
