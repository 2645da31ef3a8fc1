"""The step of strategy hybrid (strategies/hybrid.py) for the simulator."""

from __future__ import annotations

from collections.abc import Generator
from math import prod
from typing import Any, NamedTuple, cast

from scaleproof.rank_programs.effects import Await, Collective, Compute, Effect, Start, weightless
from scaleproof.spec.case import Operation, TrainCase
from scaleproof.spec.emulated import shrunk
from scaleproof.strategies.buckets import ITEM, Parameter
from scaleproof.strategies.step_program import Calls, Plan, Scope, Step, bucketed, parameters_of
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


def with_activations(case: TrainCase, plan: Plan, step: Step) -> Step:
    """The step with the exchanges of activations: labels, points before the first divided layer, features after every
    divided layer, and their gradients."""
    network, size = network_of(case), case.ranks // plan.groups
    layers, points = tail(network), case.minibatch // plan.groups
    if size == 1:
        return (yield from step)
    wide = [size * _widest(layer, size) for layer in layers]
    border = prod(layers[0].input_shape)
    first, count = len(network.layers) - len(layers), len(network.layers)
    calls = _Calls(case.shrink, points)
    gathered = {first + position: features for position, features in enumerate(wide)}
    reduced = {first + position: wide[position - 1] for position in range(1, len(layers))}
    if layers[0].inputs != (INPUT,):
        reduced[first] = border
    yield from calls.exchange(points * LABEL, "all_gather")
    forward, backward, result = 0, 0, None
    while True:
        try:
            effect = step.send(result)
        except StopIteration as end:
            return cast(Calls, end.value)
        event = effect.event if isinstance(effect, Compute) else ""
        if event == "forward" and forward == first:
            yield from calls.gather(border)
        result = yield effect
        if event == "forward":
            yield from calls.gather(gathered.get(forward))
            forward += 1
        elif event == "backward":
            backward += 1
            yield from calls.reduce(reduced.get(count - backward // 2) if backward % 2 == 0 else None)


class _Calls:
    """Calls inside a group that a pass waits for, with tags of their own."""

    def __init__(self, shrink: float, points: int) -> None:
        self._shrink, self._points = shrink, points
        self._next = FIRST_CALL

    def gather(self, features: int | None) -> Generator[Effect, Any, None]:
        """part-broadcast of activations; None: there are none."""
        if features is not None:
            yield from self.exchange(self._points * shrunk(features, self._shrink) * ITEM, "all_gather")

    def reduce(self, features: int | None) -> Generator[Effect, Any, None]:
        """part-reduce of gradients of activations."""
        if features is not None:
            yield from self.exchange(self._points * shrunk(features, self._shrink) * ITEM, "reduce_scatter")

    def exchange(self, nbytes: int, operation: Operation) -> Generator[Effect, Any, None]:
        """A call that is waited for at once."""
        started = yield Start(Collective(operation, weightless(nbytes), self._next, "inside"))
        yield Await(started, "activations", nbytes)
        self._next += 1


def _widest(layer: Layer, parts: int) -> int:
    bounds = strip_bounds(layer.output_shape[0], parts)
    return max(stop - start for start, stop in zip(bounds, bounds[1:], strict=False))
