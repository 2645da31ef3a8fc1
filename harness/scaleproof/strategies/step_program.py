"""One training step as each rank's main thread goes through it, for the simulator: computing, handing calls to the
communication thread, waiting for them.

A strategy's file gives its own `simulated_step`, and where its exchange is not that of buckets which all ranks hold,
its own `simulated_plan`.
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
    """The main thread works for `seconds`; pieces of one event in a row are one."""

    event: str
    seconds: float


Scope = Literal["all", "inside", "between"]
"""Ranks of a call: everyone, those of a group, or those with the same place in their groups."""


@dataclass(frozen=True, slots=True)
class Submit:
    """A call may start. `place`: the foremost layer in it, for an order by priority."""

    number: int
    nbytes: float
    place: int = 0
    operation: Operation = "all_reduce"
    scope: Scope = "all"


@dataclass(frozen=True, slots=True)
class Wait:
    """Until all calls so far are done, or one of them by its number; recorded as `event`."""

    number: int | None = None
    event: str = "wait"
    nbytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Pushed:
    """The gradient of parameter `index` leaves for its server."""

    index: int


@dataclass(frozen=True, slots=True)
class Served:
    """Servers sum and step, and everyone waits for the new parameters."""


Item = Compute | Submit | Wait | Pushed | Served


@dataclass(frozen=True, slots=True)
class Plan:
    """What a step exchanges: bytes of every bucket in the order of calls, the parameters in each, and the layer of each
    parameter."""

    nbytes: tuple[float, ...]
    members: tuple[tuple[int, ...], ...]
    layers: tuple[int, ...]
    parameters: tuple[float, ...]
    """Bytes of each parameter by itself."""
    scopes: tuple[Scope, ...] = ()
    """Of the buckets' ranks, where not all of them have all ranks."""
    groups: int = 1
    """Of strategy hybrid: G groups of neighbouring ranks."""
    ranks: int = 1
    undivided: float = 0.0
    """Bytes of all parameters, where a rank holds strips of some; 0: the buckets hold all."""
    alone: float = 0.0
    """Bytes that a rank updates and nobody else holds."""
    late: frozenset[int] = frozenset()
    """Of parameter servers: parameters whose gradients leave when the main thread waits, not when it has them."""

    def scope(self, number: int) -> Scope:
        """Ranks of bucket `number`."""
        return self.scopes[number] if self.scopes else "all"

    def sharers(self, number: int) -> int:
        """How many ranks share its update."""
        return self.groups if self.scope(number) == "between" else self.ranks


Passed = list[tuple[int, float, float]]
"""Layers from the last to the first: place, s until its parameters' gradients are final, s after that."""


def plan_of_buckets(case: TrainCase, network: Network, parts: int = 1) -> Plan:
    """Buckets of all parameters, each divisible into `parts`, which all ranks exchange."""
    parameters, layers = parameters_of(network, case.shrink)
    members, nbytes = bucketed(case, parameters, range(len(parameters)), parts)
    sizes = tuple(float(parameter.elements * ITEM) for parameter in parameters)
    return Plan(nbytes, members, layers, sizes, ranks=case.ranks)


def parameters_of(network: Network, shrink: float) -> tuple[list[Parameter], tuple[int, ...]]:
    """Every parameter and the place of its layer."""
    found = [(place, variable) for place, layer in enumerate(network.layers) for variable in layer.variables]
    return [Parameter(one.name, shrunk(one.elements, shrink)) for _, one in found], tuple(place for place, _ in found)


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
    named = tuple(tuple(chosen[place] for place in some) for some in members)
    elements = [sum(-(-parameters[index].elements // ALIGN) * ALIGN for index in some) for some in named]
    return named, tuple(float(-(-count // parts) * parts * ITEM) for count in elements)


def beside_backward(plan: Plan, passed: Passed, submits: list[Submit]) -> list[Item]:
    """Calls leave in order, each as soon as the backward pass has what it needs."""
    items, done = list[Item](), set[int]()
    if not passed:
        return [*submits]
    for place, before, after in passed:
        items.append(Compute("backward", before))
        done |= {index for index, layer in enumerate(plan.layers) if layer == place}
        while submits and done.issuperset(plan.members[submits[0].number]):
            items.append(submits.pop(0))
        items.append(Compute("backward", after))
    return items


def submits(plan: Plan) -> Iterator[Submit]:
    for number, (nbytes, some) in enumerate(zip(plan.nbytes, plan.members, strict=True)):
        yield Submit(number, nbytes, min(plan.layers[index] for index in some))


def end_of_step(update: Compute, across: bool) -> Sequence[Item]:
    return (update,) if across else (Wait(), update)
