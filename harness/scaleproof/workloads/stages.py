"""A network cut into stages of consecutive layers, one after the other, as pipelines hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Literal

from scaleproof.spec.errors import FieldError
from scaleproof.workloads.networks import INPUT, Layer, Network

Balance = Literal["work", "blocks"]
FIELD = "strategy.stages"


def cut(network: Network, stages: int, balance: Balance = "work") -> tuple[Network, ...]:
    """The stages, as networks. `balance`: work: the largest stage has as few multiply-accumulates as possible; blocks:
    every stage has the same number of the network's numbered blocks, what comes before the first one is in the first
    stage, what comes after the last one in the last. FieldError, with what would do, where that cannot be."""
    segments = list(_segments(network))
    if balance == "blocks":
        ends = _ends_of_blocks(network, segments, stages)
    else:
        if stages > len(segments):
            raise FieldError(FIELD, f"{stages} stages, and {network.name} can be cut into {len(segments)} at most")
        ends = _ends_of_work([sum(layer.mac for layer in segment) for segment in segments], stages)
    parts = [[layer for segment in segments[low:high] for layer in segment] for low, high in pairwise([0, *ends])]
    return tuple(_stage(network, part, number) for number, part in enumerate(parts))


def _segments(network: Network) -> Iterator[tuple[Layer, ...]]:
    """Parts of the network between which one array passes: all later layers read the last output of a part, or one of
    their own."""
    layers, begin = network.layers, 0
    lowest = list(accumulate((min(indices) for indices in reversed(network.input_indices)), min))[::-1]
    heads = min(network.heads)
    for number in range(1, len(layers)):
        if lowest[number] >= number and heads >= number:
            yield layers[begin:number]
            begin = number
    yield layers[begin:]


def _ends_of_work(work: Sequence[int], stages: int) -> list[int]:
    """Ends of consecutive groups whose largest sum is the least: dynamic programming over groups and ends. Of equal
    ones the last groups are the shortest."""
    sums = [0, *accumulate(work)]
    count = len(work)
    best = [float(total) for total in sums]
    begins = [[0] * (count + 1)]
    for groups in range(2, stages + 1):
        row, begin = [float("inf")] * (count + 1), [0] * (count + 1)
        for end in range(groups, count + 1):
            for split in range(end - 1, groups - 2, -1):
                largest = max(best[split], sums[end] - sums[split])
                if largest < row[end]:
                    row[end], begin[end] = largest, split
                if sums[end] - sums[split] > row[end]:
                    break
        best = row
        begins.append(begin)
    ends = [count]
    for begin in reversed(begins[1:]):
        ends.append(begin[ends[-1]])
    return ends[::-1]


def _ends_of_blocks(network: Network, segments: Sequence[Sequence[Layer]], stages: int) -> list[int]:
    """Of segments, by the numbered block that each one ends in (`layer7` of `layer7.attention.sum`)."""
    last_of = dict[str, int]()
    for number, segment in enumerate(segments):
        if (name := _block(segment[-1])) is not None:
            last_of[name] = number + 1
    if not last_of:
        raise FieldError("strategy.cut", f"{network.name} has no numbered blocks; use 'work'")
    blocks = list(last_of.values())
    if len(blocks) % stages:
        fitting = [each for each in range(1, len(blocks) + 1) if len(blocks) % each == 0]
        near = sorted(fitting, key=lambda each: abs(each - stages))[:2]
        message = f"{stages} stages do not divide the {len(blocks)} blocks of {network.name}"
        raise FieldError(FIELD, f"{message}; {' or '.join(map(str, sorted(near)))} would do")
    size = len(blocks) // stages
    return [*blocks[size - 1 : -1 : size], len(segments)]


def _block(layer: Layer) -> str | None:
    """The numbered block that a layer is in; None: it is in none."""
    first = layer.name.split(".")[0]
    return first if first != layer.name and first[-1].isdigit() else None


def _stage(network: Network, layers: Sequence[Layer], number: int) -> Network:
    own = {layer.name for layer in layers}
    renamed = tuple(
        replace(layer, inputs=tuple(name if name in own else INPUT for name in layer.inputs)) for layer in layers
    )
    auxiliary = network.auxiliary if network.auxiliary in own else None
    return replace(
        network,
        name=f"{network.name}, stage {number}",
        input_shape=layers[0].input_shape,
        layers=renamed,
        vocabulary=network.vocabulary if number == 0 else None,
        auxiliary=auxiliary,
    )
