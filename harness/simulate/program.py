"""One training step as each rank's main thread goes through it: computing, handing calls to the communication thread, waiting for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.spec.case import NATIVE, CollectiveCase, TrainCase
from harness.spec.emulated import shrunk
from harness.spec.errors import SpecError
from harness.strategies import buckets
from harness.strategies.base import MIB
from harness.strategies.buckets import ALIGN, ITEM, Parameter
from harness.workloads.networks import Network
from harness.workloads.profile import Profile

ASSUMED = "ring"
"""What a library's own collective is taken for."""


@dataclass(frozen=True, slots=True)
class Compute:
    """The main thread works for `seconds`; pieces of one event in a row are one."""

    event: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Submit:
    """A bucket is complete: its all-reduce may start. `place`: of its first layer, for an order by priority."""

    number: int
    nbytes: float
    place: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Until all calls so far are done, or one of them by its number."""

    number: int | None = None


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
    """What a step exchanges: bytes of every bucket in the order of calls, the parameters in each, and the layer of each parameter."""

    nbytes: tuple[float, ...]
    members: tuple[tuple[int, ...], ...]
    layers: tuple[int, ...]
    parameters: tuple[float, ...]
    """Bytes of each parameter by itself."""


def algorithm_of(case: TrainCase | CollectiveCase) -> str:
    """The schedule that the case's collectives are simulated with."""
    return ASSUMED if case.collective == NATIVE else case.collective


def exchange_plan(case: TrainCase, network: Network) -> Plan:
    """The buckets that the strategies plan, with the case's shrunken tensors."""
    parameters, layers = [], []
    for place, layer in enumerate(network.layers):
        for variable in layer.variables:
            parameters.append(Parameter(variable.name, shrunk(variable.elements, case.shrink)))
            layers.append(place)
    members = buckets.plan(parameters, 0 if case.fusion_mib is not None else case.bucket_mib * MIB)
    padded = [-(-parameter.elements // ALIGN) * ALIGN * ITEM for parameter in parameters]
    nbytes = tuple(float(sum(padded[index] for index in some)) for some in members)
    return Plan(nbytes, tuple(tuple(some) for some in members), tuple(layers), tuple(float(one.elements * ITEM) for one in parameters))


def step_program(case: TrainCase, plan: Plan, profile: Profile | None, across: bool = False) -> list[Item]:
    """The items of one step, times dilated as the case says. `across`: a layer's forward pass waits for its own gradients of the step before, instead of
    every step for all of its calls. SpecError for a strategy that is not simulated."""
    if case.strategy not in _STRATEGIES:
        raise SpecError(f"strategy {case.strategy!r} is not simulated; {', '.join(_STRATEGIES)} are")
    scale = case.dilation
    update = Compute("update", profile.update_s.median * scale if profile else 0.0)
    waits = {plan.layers[index]: number for number, some in enumerate(plan.members) for index in some} if across else {}
    items: list[Item] = []
    for place, layer in enumerate(profile.layers if profile else ()):
        if place in waits:
            items.append(Wait(waits[place]))
        items.append(Compute("forward", layer.forward_s.median * scale))
    return [*items, *_STRATEGIES[case.strategy](plan, _backward(profile, scale, len(set(plan.layers))), update, across)]


Passed = list[tuple[int, float, float]]
"""Layers from the last to the first: place, s until its parameters' gradients are final, s after that."""


def _backward(profile: Profile | None, scale: float, layers: int) -> Passed:
    if profile is None:
        return []
    times = [(place, layer.weight_s.median * scale, (layer.backward_s.median - layer.weight_s.median) * scale) for place, layer in enumerate(profile.layers)]
    return times[::-1]


def _local_only(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    return [*(Compute("backward", before + after) for _, before, after in passed), update]


def _sync(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    return [*(Compute("backward", before + after) for _, before, after in passed), *_submits(plan), *_end(update, across)]


def _sync_overlap(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    items: list[Item] = []
    submits, done = list(_submits(plan)), set[int]()
    if not passed:
        return [*submits, *_end(update, across)]
    for place, before, after in passed:
        items.append(Compute("backward", before))
        done |= {index for index, layer in enumerate(plan.layers) if layer == place}
        while submits and done.issuperset(plan.members[submits[0].number]):
            items.append(submits.pop(0))
        items.append(Compute("backward", after))
    return [*items, *_end(update, across)]


def _parameter_server(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    items: list[Item] = []
    order = list(reversed(range(len(plan.layers))))
    if not passed:
        items += [Pushed(index) for index in order]
    for place, before, after in passed:
        items.append(Compute("backward", before))
        items += [Pushed(index) for index in order if plan.layers[index] == place]
        items.append(Compute("backward", after))
    return [*items, Served()]


def _submits(plan: Plan) -> Iterator[Submit]:
    for number, (nbytes, some) in enumerate(zip(plan.nbytes, plan.members, strict=True)):
        yield Submit(number, nbytes, min(plan.layers[index] for index in some))


def _end(update: Compute, across: bool) -> Sequence[Item]:
    return (update,) if across else (Wait(), update)


_STRATEGIES = {"local_only": _local_only, "sync": _sync, "sync_overlap": _sync_overlap, "parameter_server": _parameter_server}
