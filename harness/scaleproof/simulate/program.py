"""The training step of a case for the simulator: each strategy's own file says what it computes and exchanges."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scaleproof.collectives.message_schedule import schedule_of
from scaleproof.core.missing_input import MissingInput
from scaleproof.spec import registry
from scaleproof.spec.case import NATIVE, CollectiveCase, TrainCase
from scaleproof.strategies.step_program import Compute, Item, Passed, Plan, Wait, plan_of_buckets
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile

ASSUMED = "ring"
"""What a library's own collective is taken for."""


@dataclass(frozen=True, slots=True)
class Builder:
    """What a strategy's file says of its simulated step."""

    step: Callable[[Plan, Passed, Compute, bool], list[Item]]
    plan: Callable[[TrainCase, Network], Plan] = plan_of_buckets
    passes: Callable[[TrainCase, Plan, list[Item]], list[Item]] | None = None
    """Adds the calls that the forward and backward passes wait for."""


def _builder(name: str) -> Builder:
    """Of a strategy. SpecError for one that is not simulated."""
    module = _module(name)
    if not hasattr(module, "simulated_step"):
        simulated = [other for other in registry.names("strategy") if hasattr(_module(other), "simulated_step")]
        raise MissingInput(f"strategy {name!r} is not simulated", f"{', '.join(simulated)} are")
    plan = getattr(module, "simulated_plan", plan_of_buckets)
    return Builder(module.simulated_step, plan, getattr(module, "simulated_passes", None))


def _module(name: str) -> Any:
    return importlib.import_module(registry.entry("strategy", name).target.partition(":")[0])


def algorithm_of(case: TrainCase | CollectiveCase) -> str:
    """The schedule that the case's collectives are simulated with."""
    return ASSUMED if case.collective == NATIVE else schedule_of(case.collective, case.nodes)


def exchange_plan(case: TrainCase, network: Network) -> Plan:
    """What the case's strategy exchanges in a step, with the case's shrunken tensors. SpecError for a strategy that is
    not simulated."""
    return _builder(case.strategy).plan(case, network)


def step_program(case: TrainCase, plan: Plan, profile: Profile | None) -> list[Item]:
    """The items of one step, times dilated as the case says. SpecError for a strategy that is not simulated."""
    builder = _builder(case.strategy)
    across, scale = case.forward_waits == "layer", case.dilation
    update = Compute("update", profile.update_s.median * scale if profile else 0.0)
    waits = {plan.layers[index]: number for number, some in enumerate(plan.members) for index in some} if across else {}
    items: list[Item] = []
    for place, layer in enumerate(profile.layers if profile else ()):
        if place in waits:
            items.append(Wait(waits[place]))
        items.append(Compute("forward", layer.forward_s.median * scale))
    items += builder.step(plan, _backward(profile, scale), update, across)
    return builder.passes(case, plan, items) if builder.passes else items


def _backward(profile: Profile | None, scale: float) -> Passed:
    if profile is None:
        return []
    times = [
        (place, layer.weight_s.median * scale, (layer.backward_s.median - layer.weight_s.median) * scale)
        for place, layer in enumerate(profile.layers)
    ]
    return times[::-1]
