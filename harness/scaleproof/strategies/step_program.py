"""One training step of each rank's main thread, for the simulator: computing, submitting calls to the communication
thread, waiting for them.

A strategy's file defines its `simulated_step`. If it does not exchange buckets that all ranks hold, it also defines its
`simulated_plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from scaleproof.spec.case import Operation, TrainCase
from scaleproof.spec.emulated import shrunk
from scaleproof.strategies import buckets
from scaleproof.strategies.base import MIB
from scaleproof.strategies.buckets import ALIGN, ITEM, Parameter
from scaleproof.workloads.networks import Network


@dataclass(frozen=True, slots=True)
class Compute:
    """The main thread computes for `seconds`. Consecutive items of one event become one span."""

    event: str
    seconds: float


Scope = Literal["all", "inside", "between"]
"""Ranks of a call: all, those of one group, or those with the same position in their groups."""


@dataclass(frozen=True, slots=True)
class Submit:
    """A call is submitted. `priority`: its first layer, for bucket order by priority (lower goes first)."""

    number: int
    nbytes: float
    priority: int = 0
    operation: Operation = "all_reduce"
    scope: Scope = "all"


@dataclass(frozen=True, slots=True)
class Wait:
    """Waits until call `number` (None: all calls so far) has finished; recorded as `event`."""

    number: int | None = None
    event: str = "wait"
    nbytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Pushed:
    """The gradient of parameter `index` is sent to its server."""

    index: int


@dataclass(frozen=True, slots=True)
class Served:
    """Servers sum and update, and all ranks wait for the new parameters."""


Item = Compute | Submit | Wait | Pushed | Served


@dataclass(frozen=True, slots=True)
class Plan:
    """What a step exchanges: bytes of every bucket in the order of calls, the parameters of each bucket, and the layer
    of each parameter."""

    nbytes: tuple[float, ...]
    members: tuple[tuple[int, ...], ...]
    layers: tuple[int, ...]
    parameters: tuple[float, ...]
    """Bytes of each parameter."""
    scopes: tuple[Scope, ...] = ()
    """Scope of each bucket; empty: all ranks for every bucket."""
    groups: int = 1
    """Number of groups of neighbouring ranks (strategy hybrid)."""
    ranks: int = 1
    undivided: float = 0.0
    """Bytes of all parameters if a rank holds only strips of some; 0: the buckets hold all."""
    alone: float = 0.0
    """Bytes that a rank updates and no other rank holds."""
    late: frozenset[int] = frozenset()
    """With parameter servers: parameters whose gradients are sent only when the main thread waits."""

    def scope(self, number: int) -> Scope:
        """Ranks of bucket `number`."""
        return self.scopes[number] if self.scopes else "all"

    def sharers(self, number: int) -> int:
        """How many ranks share the update of bucket `number`."""
        return self.groups if self.scope(number) == "between" else self.ranks


Passed = list[tuple[int, float, float]]
"""Layers from the last to the first: index, s until its parameters' gradients are final, s after that."""


def plan_of_buckets(case: TrainCase, network: Network, parts: int = 1) -> Plan:
    """Buckets of all parameters, each divisible into `parts`, which all ranks exchange."""
    parameters, layers = parameters_of(network, case.shrink)
    members, nbytes = bucketed(case, parameters, range(len(parameters)), parts)
    sizes = tuple(float(parameter.elements * ITEM) for parameter in parameters)
    return Plan(nbytes, members, layers, sizes, ranks=case.ranks)


def parameters_of(network: Network, shrink: float) -> tuple[list[Parameter], tuple[int, ...]]:
    """Every parameter, and the index of its layer."""
    variables = [(index, variable) for index, layer in enumerate(network.layers) for variable in layer.variables]
    return [Parameter(variable.name, shrunk(variable.elements, shrink)) for _, variable in variables], tuple(
        index for index, _ in variables
    )


def bucketed(
    case: TrainCase, parameters: Sequence[Parameter], chosen: Sequence[int], parts: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    """Members and bytes of the buckets of some parameters, each divisible into `parts`."""
    members = buckets.plan(
        [parameters[index] for index in chosen],
        0
        if case.value("transport.fusion_mib") is not None
        else case.value("strategy.bucket_mib", 25.0) * MIB / case.shrink,
    )
    indices = tuple(tuple(chosen[position] for position in bucket) for bucket in members)
    elements = [sum(-(-parameters[index].elements // ALIGN) * ALIGN for index in bucket) for bucket in indices]
    return indices, tuple(float(-(-count // parts) * parts * ITEM) for count in elements)


def beside_backward(plan: Plan, passed: Passed, submits: list[Submit]) -> list[Item]:
    """The backward pass with calls in order, each submitted as soon as its gradients are ready."""
    items, ready = list[Item](), set[int]()
    if not passed:
        return [*submits]
    for finished_layer, before, after in passed:
        items.append(Compute("backward", before))
        ready |= {index for index, layer in enumerate(plan.layers) if layer == finished_layer}
        while submits and ready.issuperset(plan.members[submits[0].number]):
            items.append(submits.pop(0))
        items.append(Compute("backward", after))
    return items


def submits(plan: Plan) -> Iterator[Submit]:
    """A call for every bucket, in the order of the plan."""
    for number, (nbytes, bucket) in enumerate(zip(plan.nbytes, plan.members, strict=True)):
        yield Submit(number, nbytes, min(plan.layers[index] for index in bucket))


def end_of_step(update: Compute, across: bool) -> Sequence[Item]:
    """The update after waiting for all calls; `across`: the forward pass of the next step waits instead."""
    return (update,) if across else (Wait(), update)
