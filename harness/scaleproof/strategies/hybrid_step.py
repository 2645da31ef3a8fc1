"""The step of strategy hybrid for the simulator: what a rank exchanges when fully connected layers are divided over the
ranks of a group (strategies/hybrid.py)."""

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
"""Numbers of calls from here on are exchanges of activations."""
LABEL = 8
"""Bytes of a label."""


class _Bucket(NamedTuple):
    """Parameters that go in one call, and the ranks that it is among."""

    members: tuple[int, ...]
    nbytes: float
    scope: Scope


def simulated_plan(case: TrainCase, network: Network) -> Plan:
    """Buckets of what all ranks hold, over all of them; of the widest strips, over the ranks that hold the same ones. A
    strip takes as long as the whole layer on the points of one rank: P times the points, a P-th of the features."""
    groups = case.value("strategy.groups", 0) or best_groups(network, case.ranks, case.minibatch)
    size = case.ranks // groups
    check_division(network, size)
    parameters, layers = parameters_of(network, case.shrink)
    undivided = sum(one.elements for one in parameters) * ITEM
    first = len(network.layers) - len(tail(network))
    of_strips = [index for index, place in enumerate(layers) if place >= first and size > 1]
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
    """The step with the exchanges that its passes wait for: labels, points at the border, features behind every divided
    layer, and gradients back."""
    network, size = network_of(case), case.ranks // plan.groups
    layers, points = tail(network), case.minibatch // plan.groups
    if size == 1:
        return list(items)
    wide = [size * _widest(layer, size) for layer in layers]
    border = prod(layers[0].input_shape)
    first, count = len(network.layers) - len(layers), len(network.layers)
    calls = _Calls(case.shrink, points)
    forward = {first + place: calls.gather(features) for place, features in enumerate(wide)}
    backward = {first + place: calls.reduce(wide[place - 1]) for place in range(1, len(layers))}
    if layers[0].inputs != (INPUT,):
        backward[first] = calls.reduce(border)
    found: list[Item] = [*calls.labels()]
    done = {"forward": 0, "backward": 0}
    for item in items:
        if isinstance(item, Compute) and item.event == "forward" and done["forward"] == first:
            found += calls.gather(border)
        found.append(item)
        if not isinstance(item, Compute) or item.event not in done:
            continue
        done[item.event] += 1
        if item.event == "forward":
            found += forward.get(done["forward"] - 1, [])
        elif done["backward"] % 2 == 0:
            found += backward.get(count - done["backward"] // 2, [])
    return found


class _Calls:
    """Calls inside a group that the pass waits for, numbered on."""

    def __init__(self, shrink: float, points: int) -> None:
        self._shrink, self._points = shrink, points
        self._next = FIRST_CALL

    def labels(self) -> Iterator[Item]:
        """Of all points of the group."""
        yield from self._call(self._points * LABEL, "all_gather")

    def gather(self, features: int) -> list[Item]:
        """part-broadcast of activations."""
        return list(self._call(self._points * shrunk(features, self._shrink) * ITEM, "all_gather"))

    def reduce(self, features: int) -> list[Item]:
        """part-reduce of their gradients."""
        return list(self._call(self._points * shrunk(features, self._shrink) * ITEM, "reduce_scatter"))

    def _call(self, nbytes: float, operation: Operation) -> Iterator[Item]:
        yield Submit(self._next, float(nbytes), 0, operation, "inside")
        yield Wait(self._next, "activations", float(nbytes))
        self._next += 1


def _widest(layer: Layer, parts: int) -> int:
    bounds = strip_bounds(layer.output_shape[0], parts)
    return max(stop - start for start, stop in zip(bounds, bounds[1:], strict=False))
