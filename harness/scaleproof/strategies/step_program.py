"""One training step of a rank's main thread, as effects of a rank program (rank_programs/effects.py): it computes,
starts collectives on lanes for communication, sends to servers, and waits.

A strategy's file defines its `simulated_step`. If it does not exchange buckets that all ranks hold, it also defines its
`simulated_plan`. All steps of all ranks are alike: the program names ranks as members of groups, and its arrays have no
values. Seconds and bytes are those of the case, dilated and shrunk.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scaleproof.rank_programs.effects import AwaitAll, Collective, Compute, Effect, Start, Started, weightless
from scaleproof.spec.case import Operation, TrainCase
from scaleproof.spec.emulated import shrunk
from scaleproof.strategies import buckets
from scaleproof.strategies.base import MIB
from scaleproof.strategies.buckets import ALIGN, ITEM, Parameter
from scaleproof.workloads.networks import Network

Scope = Literal["all", "inside", "between"]
"""Group of a collective: all ranks, one group of neighbours, or ranks with the same position in such groups."""
Calls = dict[int, Started]
"""What has been started for each bucket."""
Step = Generator[Effect, Any, Calls]
"""A step; the next one may wait for its calls."""


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
    channels: int = 1
    """Lanes for collectives."""
    owners: tuple[int, ...] = ()
    """With parameter servers: the rank that serves each parameter."""
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
    return Plan(nbytes, members, layers, sizes, ranks=case.ranks, channels=case.value("strategy.channels", 1))


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


def beside_backward(plan: Plan, passed: Passed, calls: list[Start]) -> Step:
    """The backward pass with calls in order, each started as soon as its gradients are ready."""
    started, ready, left = Calls(), set[int](), list(calls)
    if not passed:
        return (yield from start_all(left))
    for finished_layer, before, after in passed:
        yield Compute(before, event="backward")
        ready |= {index for index, layer in enumerate(plan.layers) if layer == finished_layer}
        count = 0
        while count < len(left) and ready.issuperset(plan.members[tag_of(left[count])]):
            count += 1
        started |= yield from start_all(left[:count])
        left = left[count:]
        yield Compute(after, event="backward")
    return started


def tag_of(start: Start) -> int:
    """Of a collective that is started: the number of its bucket."""
    assert isinstance(start.effect, Collective)
    return start.effect.tag


def start_all(calls: Iterable[Start]) -> Step:
    """Starts collectives; by their tags."""
    started = Calls()
    for call in calls:
        started[tag_of(call)] = yield call
    return started


def calls_of(plan: Plan, operation: Operation = "all_reduce", first_tag: int = 0) -> Iterator[Start]:
    """A collective for every bucket, in the order of the plan. Its priority is its first layer."""
    for number, (nbytes, bucket) in enumerate(zip(plan.nbytes, plan.members, strict=True)):
        tag, priority = first_tag + number, min(plan.layers[index] for index in bucket)
        call = Collective(operation, weightless(nbytes), tag, plan.scope(number), priority=priority)
        yield Start(call, tag % plan.channels)


def end_of_step(calls: Calls, update: Compute, across: bool) -> Step:
    """The update after waiting for all calls; `across`: the forward pass of the next step waits instead."""
    if not across:
        yield AwaitAll(tuple(calls.values()))
    yield update
    return calls


def listed(step: Step, first: int = 0) -> tuple[list[Effect], Calls]:
    """All effects of a step, and its calls. What is started is numbered from `first`."""
    effects, result, number = list[Effect](), None, first
    while True:
        try:
            effect = step.send(result)
        except StopIteration as end:
            return effects, end.value
        effects.append(effect)
        result = None
        if isinstance(effect, Start):
            result, number = Started(number), number + 1


def collectives(effects: Iterable[Effect]) -> Iterator[Collective]:
    """The collectives that are started."""
    for effect in effects:
        if isinstance(effect, Start) and isinstance(effect.effect, Collective):
            yield effect.effect
