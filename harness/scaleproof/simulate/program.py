"""One training step as each rank's main thread goes through it: computing, handing calls to the communication thread,
waiting for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scaleproof.collectives.schedule import schedule_of
from scaleproof.spec.case import NATIVE, CollectiveCase, Operation, TrainCase
from scaleproof.spec.emulated import shrunk
from scaleproof.spec.errors import SpecError
from scaleproof.strategies import buckets
from scaleproof.strategies.base import MIB
from scaleproof.strategies.buckets import ALIGN, ITEM, Parameter
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile

ASSUMED = "ring"
"""What a library's own collective is taken for."""
BY_CALLER = ("tcp", "mpi", "mpich", "ucx")
"""Transports over sockets that move a message only while a thread of the rank looks at it."""
SOCKET = 4 << 20
"""Bytes that a socket takes at once: Linux's default, which nodes of fabric netns have, over the case's shrink."""


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


def algorithm_of(case: TrainCase | CollectiveCase) -> str:
    """The schedule that the case's collectives are simulated with."""
    return ASSUMED if case.collective == NATIVE else schedule_of(case.collective, case.nodes)


def exchange_plan(case: TrainCase, network: Network) -> Plan:
    """The buckets that the strategies plan, with the case's shrunken tensors."""
    if case.strategy == "hybrid":
        from scaleproof.simulate.divided import exchange_plan as of_hybrid  # it stands on this module

        return of_hybrid(case, network)
    parameters, layers = parameters_of(network, case.shrink)
    members, nbytes = bucketed(
        case, parameters, range(len(parameters)), case.ranks if case.strategy == "distributed_update" else 1
    )
    sizes = tuple(float(one.elements * ITEM) for one in parameters)
    return Plan(nbytes, members, layers, sizes, ranks=case.ranks, late=_late(case, sizes))


def _late(case: TrainCase, sizes: Sequence[float]) -> frozenset[int]:
    """A server's messages are moved by the main thread, which computes: what no socket takes at once waits for the end
    of the backward pass, and behind it what the same server gets after."""
    held, late = set[int](), set[int]()
    for index in reversed(range(len(sizes) if case.transport in BY_CALLER else 0)):
        owner = index % (case.servers or case.ranks)
        if owner in held or sizes[index] > SOCKET / case.shrink:
            held.add(owner)
            late.add(index)
    return frozenset(late)


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
        0 if case.fusion_mib is not None else case.bucket_mib * MIB / case.shrink,
    )
    named = tuple(tuple(chosen[place] for place in some) for some in members)
    elements = [sum(-(-parameters[index].elements // ALIGN) * ALIGN for index in some) for some in named]
    return named, tuple(float(-(-count // parts) * parts * ITEM) for count in elements)


def step_program(case: TrainCase, plan: Plan, profile: Profile | None) -> list[Item]:
    """The items of one step, times dilated as the case says. SpecError for a strategy that is not simulated."""
    if case.strategy not in _STRATEGIES:
        raise SpecError(f"strategy {case.strategy!r} is not simulated; {', '.join(_STRATEGIES)} are")
    across, scale = case.forward_waits == "layer", case.dilation
    update = Compute("update", profile.update_s.median * scale if profile else 0.0)
    waits = {plan.layers[index]: number for number, some in enumerate(plan.members) for index in some} if across else {}
    items: list[Item] = []
    for place, layer in enumerate(profile.layers if profile else ()):
        if place in waits:
            items.append(Wait(waits[place]))
        items.append(Compute("forward", layer.forward_s.median * scale))
    rest = _STRATEGIES[case.strategy](plan, _backward(profile, scale), update, across)
    if case.strategy == "hybrid":
        from scaleproof.simulate.divided import with_activations

        return with_activations(case, plan, [*items, *rest])
    return [*items, *rest]


Passed = list[tuple[int, float, float]]
"""Layers from the last to the first: place, s until its parameters' gradients are final, s after that."""


def _backward(profile: Profile | None, scale: float) -> Passed:
    if profile is None:
        return []
    times = [
        (place, layer.weight_s.median * scale, (layer.backward_s.median - layer.weight_s.median) * scale)
        for place, layer in enumerate(profile.layers)
    ]
    return times[::-1]


def _local_only(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    return [*(Compute("backward", before + after) for _, before, after in passed), update]


def _sync(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    return [
        *(Compute("backward", before + after) for _, before, after in passed),
        *_submits(plan),
        *_end(update, across),
    ]


def _sync_overlap(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    return [*_beside(plan, passed, list(_submits(plan))), *_end(update, across)]


def _distributed_update(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    """Part-reduce beside the backward pass; then each rank steps its part of one bucket while that of the one before is
    part-broadcast."""
    reduces = [replace(one, operation="reduce_scatter", scope=plan.scope(one.number)) for one in _submits(plan)]
    items, count, whole = _beside(plan, passed, list(reduces)), len(reduces), plan.undivided or sum(plan.nbytes)
    for one in reduces:
        items += [Wait(one.number), Compute("update", update.seconds * one.nbytes / whole / plan.sharers(one.number))]
        items.append(replace(one, number=count + one.number, operation="all_gather"))
    own = [Compute("update", update.seconds * plan.alone / whole)] if plan.alone else []
    return [*items, *own, Wait()]


def _beside(plan: Plan, passed: Passed, submits: list[Submit]) -> list[Item]:
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


def _parameter_server(plan: Plan, passed: Passed, update: Compute, across: bool) -> list[Item]:
    items: list[Item] = []
    order = list(reversed(range(len(plan.layers))))
    at_once = [index for index in order if index not in plan.late]
    if not passed:
        items += [Pushed(index) for index in at_once]
    for place, before, after in passed:
        items.append(Compute("backward", before))
        items += [Pushed(index) for index in at_once if plan.layers[index] == place]
        items.append(Compute("backward", after))
    return [*items, *(Pushed(index) for index in order if index in plan.late), Served()]


def _submits(plan: Plan) -> Iterator[Submit]:
    for number, (nbytes, some) in enumerate(zip(plan.nbytes, plan.members, strict=True)):
        yield Submit(number, nbytes, min(plan.layers[index] for index in some))


def _end(update: Compute, across: bool) -> Sequence[Item]:
    return (update,) if across else (Wait(), update)


_STRATEGIES = {
    "local_only": _local_only,
    "sync": _sync,
    "sync_overlap": _sync_overlap,
    "parameter_server": _parameter_server,
    "distributed_update": _distributed_update,
    "hybrid": _distributed_update,
}
