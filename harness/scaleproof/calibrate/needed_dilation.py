"""The smallest dilation and shrink of a replayed case with which the machine can carry the traffic of its ranks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from scaleproof.calibrate.cluster_capacity import Capacity, messages_in
from scaleproof.calibrate.replica_traffic import traffic_of
from scaleproof.rank_programs.effects import Send, Start
from scaleproof.record.host import memory_mib
from scaleproof.simulate.case_patterns import Patterns
from scaleproof.simulate.cost_model import FREE
from scaleproof.simulate.program import exchange_plan, step_program
from scaleproof.simulate.step_engine import simulate
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.cluster import Cluster, cluster_of
from scaleproof.spec.errors import SpecError
from scaleproof.spec.estimate import estimate
from scaleproof.spec.launch_kind import sleeps
from scaleproof.strategies.step_program import collectives, listed
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import LayerTimes, Profile, Spread, profile_of

LOAD = 0.5
"""Share of the machine's capacity with idle cores (`paced`) that a case may need while its links are busy."""
MESSAGES = 0.05
"""Share of that time for which the cores may be busy with messages alone: this work is not hidden behind the links, and
does not exist on the emulated cluster."""
SHARE = 0.05
"""Share of a step for which the cores may be busy with messages and bytes, whatever the links do: this work cannot
lengthen the step by more, and two dilations may differ by so much."""
MOST_DILATION, MOST_SHRINK = 64, 1024
LEAST_MESSAGE = 16 << 10
"""Smallest mean message size in bytes after the shrink: smaller messages are mostly headers."""
MEMORY = 0.8
"""Share of the machine's memory that a launch may use."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The traffic of one step of a case before dilation and shrink: bytes and messages of all ranks, the time in s for
    which the links are busy, and the time of the step. Of a strategy whose ranks go at their own pace: of all steps."""

    nbytes: float
    messages: float
    link_s: float
    step_s: float

    @property
    def busy(self) -> float:
        """Share of the step for which the links are busy."""
        return self.link_s / self.step_s if self.step_s else 1.0


@dataclass(frozen=True, slots=True)
class Knobs:
    """A dilation and a shrink, and the load of the machine with them while links are busy. `load` and `messages`: bytes
    with messages, and messages alone, as shares of the capacity with idle cores; `most`: both as a share of the full
    capacity; `busy`: share of the step for which links are busy."""

    dilation: float
    shrink: float
    load: float
    messages: float
    most: float = 0.0
    busy: float = 1.0

    @property
    def carried(self) -> bool:
        """Whether both shares are within their limits, or too small a part of the step to matter."""
        return (self.load <= LOAD and self.messages <= MESSAGES) or self.load * self.busy <= SHARE


def concerns(case: AnyCase) -> TypeGuard[TrainCase]:
    """Whether a case emulates links that the machine must carry."""
    fabric = case.plugin("fabric")
    emulated = fabric.makes_nodes and fabric.slows_links
    return isinstance(case, TrainCase) and sleeps(case) and emulated and case.transport is not None


def offer_of(case: TrainCase, machine: Path) -> Offer:
    """The traffic of a case, from the schedules that the engine executes, the cluster's links and the profile.
    `machine`: the folder of this machine's profiles; without a profile the links count as always busy. SpecError where
    a link has no rate: then a slow machine looks like a slow link."""
    cluster = cluster_of(case)
    if any(link.mbit is None for link in cluster.links):
        raise SpecError("its links have no rate, so that the machine itself is the link: give link_mbit or a cluster")
    if case.replicas is not None:
        return _of_replicas(case, cluster, machine)
    # The first step has none before it whose exchange it could wait for.
    true = case.model_copy(update={"dilation": 1.0, "shrink": 1.0, "steps": 2, "warmup": 1})
    network = network_of(true)
    plan, nothing = exchange_plan(true, network), timeless(network, case.minibatch // case.ranks)
    patterns, nbytes, messages = Patterns(true, plan.groups), 0.0, 0.0
    effects, _ = listed(step_program(true, plan, nothing))
    for call in collectives(effects):
        pattern = patterns.of(call)
        nbytes, messages = nbytes + pattern.sent * call.nbytes, messages + messages_in(pattern)
    for effect in effects:
        if isinstance(effect, Start) and isinstance(effect.effect, Send):  # to a server, and its parameter comes back
            nbytes += 2 * (case.ranks - 1) * effect.effect.value.nbytes
            messages += 2 * (case.ranks - 1)
    profile = _known_profile(true, machine)
    link_s = simulate(true, nothing, cluster, FREE).step_s
    return Offer(nbytes, messages, link_s, simulate(true, profile, cluster, FREE).step_s if profile else link_s)


def _known_profile(case: TrainCase, machine: Path) -> Profile | None:
    try:
        return profile_of(case, machine)
    except SpecError:
        return None


def _of_replicas(case: TrainCase, cluster: Cluster, machine: Path) -> Offer:
    """Each case is simulated once: a run asks before each of its launches."""
    profile = _known_profile(case, machine)
    key = case.case_id, profile.step_s if profile else None
    if key not in _OFFERS:
        traffic = traffic_of(case, cluster, profile)
        step_s = traffic.run_s if profile else traffic.link_s
        _OFFERS[key] = Offer(traffic.nbytes, traffic.messages, traffic.link_s, step_s)
    return _OFFERS[key]


_OFFERS: dict[tuple[str, float | None], Offer] = {}


def timeless(network: Network, batch: int) -> Profile:
    """The profile of a node that computes in no time, so that only the exchanges between layers remain."""
    none = Spread(median=0.0)
    layers = tuple(
        LayerTimes(name=layer.name, mac=layer.mac, forward_s=none, backward_s=none, weight_s=none)
        for layer in network.layers
    )
    return Profile(
        workload=network.name,
        batch=batch,
        framework="peak",
        threads=1,
        node="no machine",
        taken="no time",
        layers=layers,
        update_s=none,
    )


def load_of(offer: Offer, capacity: Capacity, dilation: float, shrink: float) -> Knobs:
    """The load of the machine with this dilation and shrink; 0 where links are never busy."""
    span = dilation * offer.link_s
    if not span:
        return Knobs(dilation, shrink, 0.0, 0.0)
    messages = offer.messages / capacity.messages.median / span
    load, most = (offer.nbytes / shrink / rate.median / span + messages for rate in (capacity.paced, capacity.bulk))
    return Knobs(dilation, shrink, load, messages, most, offer.busy)


def too_much(case: AnyCase, capacity: Capacity | None, machine: Path) -> tuple[str, str] | None:
    """Why this machine cannot carry a case as it is written, and advice; None where it can, or where its capacity was
    never measured."""
    if capacity is None or not isinstance(case, TrainCase) or not concerns(case):
        return None
    try:
        knobs = load_of(offer_of(case, machine), capacity, case.dilation, case.shrink)
    except SpecError:
        return None  # a link has no rate, so that the load is not known
    if knobs.most * knobs.busy <= 1:
        return None
    return (
        f"its ranks need {knobs.most * knobs.busy:.0%} of what this machine carries",
        f"`scaleproof dilate {case.suite} {case.experiment}` says which dilation would do",
    )


def choose(case: TrainCase, offer: Offer, capacity: Capacity) -> Knobs:
    """Powers of two: the smallest dilation, since it costs time, and with it the smallest shrink, since it makes the
    launch less like the original. SpecError where no pair is enough."""
    mean = offer.nbytes / offer.messages if offer.messages else 0.0
    dilation = 1
    while dilation <= MOST_DILATION:
        shrink = 1
        while shrink == 1 or (shrink <= MOST_SHRINK and mean / shrink >= LEAST_MESSAGE):
            knobs = load_of(offer, capacity, dilation, shrink)
            if knobs.carried and _fits(case, shrink):
                return knobs
            shrink *= 2
        dilation *= 2
    least = load_of(offer, capacity, MOST_DILATION, shrink / 2)
    why = (
        f"even with dilation {MOST_DILATION} and shrink {shrink // 2} the ranks need {least.load:.0%} of what this "
        f"machine carries ({LOAD:.0%} allowed), "
        f"{least.messages:.0%} of it for messages ({MESSAGES:.0%})"
    )
    raise SpecError(
        f"{why}{'' if _fits(case, shrink // 2) else ', and do not fit its memory'}; take fewer ranks, slower links, "
        "or fabric: simulated"
    )


def _fits(case: TrainCase, shrink: int) -> bool:
    return estimate(case.model_copy(update={"shrink": float(shrink)})).nbytes <= MEMORY * (memory_mib() << 20)
