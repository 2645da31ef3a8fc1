"""The step of strategy hybrid (strategies/hybrid.py) for the simulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from scaleproof.spec.case import Operation, TrainCase
from scaleproof.spec.emulated import shrunk
from scaleproof.strategies.buckets import ITEM, Parameter
from scaleproof.strategies.step_program import Compute, Item, Plan, Scope, Submit, Wait, bucketed, parameters_of
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.networks import INPUT, Layer, Network
from scaleproof.workloads.strips import check_division, strip_bounds, tail
from scaleproof.workloads.volumes import best_groups

FIRST_CALL = 1_000_000
"""Calls with this number or a larger one are exchanges of activations."""
LABEL = 8
"""Bytes of a label."""


class _Bucket(NamedTuple):
    """Parameters exchanged in one call, and the ranks that take part."""

    members: tuple[int, ...]
    nbytes: float
    scope: Scope


def simulated_plan(case: TrainCase, network: Network) -> Plan:
    """Buckets of parameters that all ranks hold, exchanged by all ranks, and buckets of the widest strips, exchanged by
    the ranks that hold the same strips. A strip computes as long as the whole layer for the points of one rank: P times
    the points, 1/P of the features."""
    groups = case.value("strategy.groups", 0) or best_groups(network, case.ranks, case.minibatch)
    size = case.ranks // groups
    check_division(network, size)
    parameters, layers = parameters_of(network, case.shrink)
    undivided = sum(parameter.elements for parameter in parameters) * ITEM
    first = len(network.layers) - len(tail(network))
    of_strips = [index for index, layer_index in enumerate(layers) if layer_index >= first and size > 1]
    for index in of_strips:
        layer = network.layers[layers[index]]
        variable = layer.variables[index - layers.index(layers[index])]
        rows = _widest(layer, size)
        parameters[index] = Parameter(
            variable.name, shrunk(variable.elements // layer.output_shape[0] * rows, case.shrink)
        )
    shared = [index for index in range(len(parameters)) if index not in set(of_strips)]
    chosen = [_Bucket(*bucket, "all") for bucket in zip(*bucketed(case, parameters, shared, case.ranks), strict=True)]
    if groups > 1:
        divided = bucketed(case, parameters, of_strips, groups)
        chosen += [_Bucket(*bucket, "between") for bucket in zip(*divided, strict=True)]
    chosen.sort(key=lambda bucket: -max(bucket.members))
    alone = sum(parameters[index].elements for index in of_strips) * ITEM if groups == 1 else 0
    return Plan(
        tuple(bucket.nbytes for bucket in chosen),
        tuple(bucket.members for bucket in chosen),
        layers,
        tuple(float(parameter.elements * ITEM) for parameter in parameters),
        tuple(bucket.scope for bucket in chosen),
        groups,
        case.ranks,
        undivided=float(undivided),
        alone=float(alone),
    )


def with_activations(case: TrainCase, plan: Plan, items: Sequence[Item]) -> list[Item]:
    """The step with the exchanges of activations: labels, points before the first divided layer, features after every
    divided layer, and their gradients."""
    network, size = network_of(case), case.ranks // plan.groups
    layers, points = tail(network), case.minibatch // plan.groups
    if size == 1:
        return list(items)
    wide = [size * _widest(layer, size) for layer in layers]
    border = prod(layers[0].input_shape)
    first, count = len(network.layers) - len(layers), len(network.layers)
    calls = _Calls(case.shrink, points)
    forward = {first + position: calls.gather(features) for position, features in enumerate(wide)}
    backward = {first + position: calls.reduce(wide[position - 1]) for position in range(1, len(layers))}
    if layers[0].inputs != (INPUT,):
        backward[first] = calls.reduce(border)
    extended: list[Item] = [*calls.labels()]
    passed = {"forward": 0, "backward": 0}
    for item in items:
        if isinstance(item, Compute) and item.event == "forward" and passed["forward"] == first:
            extended += calls.gather(border)
        extended.append(item)
        if not isinstance(item, Compute) or item.event not in passed:
            continue
        passed[item.event] += 1
        if item.event == "forward":
            extended += forward.get(passed["forward"] - 1, [])
        elif passed["backward"] % 2 == 0:
            extended += backward.get(count - passed["backward"] // 2, [])
    return extended


class _Calls:
    """Numbered calls inside a group that a pass waits for."""

    def __init__(self, shrink: float, points: int) -> None:
        self._shrink, self._points = shrink, points
        self._next = FIRST_CALL

    def labels(self) -> Iterator[Item]:
        """part-broadcast of the labels of all points of the group."""
        yield from self._call(self._points * LABEL, "all_gather")

    def gather(self, features: int) -> list[Item]:
        """part-broadcast of activations."""
        return list(self._call(self._points * shrunk(features, self._shrink) * ITEM, "all_gather"))

    def reduce(self, features: int) -> list[Item]:
        """part-reduce of gradients of activations."""
        return list(self._call(self._points * shrunk(features, self._shrink) * ITEM, "reduce_scatter"))

    def _call(self, nbytes: float, operation: Operation) -> Iterator[Item]:
        yield Submit(self._next, float(nbytes), 0, operation, "inside")
        yield Wait(self._next, "activations", float(nbytes))
        self._next += 1


def _widest(layer: Layer, parts: int) -> int:
    bounds = strip_bounds(layer.output_shape[0], parts)
    return max(stop - start for start, stop in zip(bounds, bounds[1:], strict=False))
