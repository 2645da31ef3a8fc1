"""The training step of a case for the simulator. Each strategy's file defines what it computes and exchanges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scaleproof.collectives.message_schedule import schedule_of
from scaleproof.core.missing_input import MissingInput
from scaleproof.rank_programs.effects import Await, Compute, Effect, Start, Started
from scaleproof.spec import registry
from scaleproof.spec.case import CollectiveCase, TrainCase
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.strategies.step_program import Calls, Passed, Plan, Step, listed, plan_of_buckets
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile

ASSUMED = "ring"
"""The algorithm that stands for a library's own collective, which is unknown."""


def _simulated(case: TrainCase) -> StrategyPlugin:
    """The case's strategy. Raises SpecError if it cannot be simulated."""
    strategy = case.plugin("strategy")
    if strategy.simulated_step is None:
        simulated = registry.with_trait("strategy", "simulated_step")
        raise MissingInput(f"strategy {case.strategy!r} is not simulated", f"{', '.join(simulated)} are")
    return strategy


def algorithm_of(case: TrainCase | CollectiveCase) -> str:
    """The schedule that the case's collectives are simulated with."""
    return ASSUMED if case.collective == NATIVE else schedule_of(case.collective, case.nodes)


def exchange_plan(case: TrainCase, network: Network) -> Plan:
    """What the case's strategy exchanges in a step, with tensors shrunk by the case's factor. Raises SpecError for a
    strategy that cannot be simulated."""
    plan_of: Callable[[TrainCase, Network], Plan] = _simulated(case).simulated_plan or plan_of_buckets
    return plan_of(case, network)


def step_program(case: TrainCase, plan: Plan, profile: Profile | None, earlier: Calls | None = None) -> Step:
    """One step, with times dilated by the case's factor. `earlier`: the calls of the step before it. Raises SpecError
    for a strategy that cannot be simulated."""
    strategy = _simulated(case)
    step = _passes(case, plan, profile, earlier or {})
    return strategy.simulated_passes(case, plan, step) if strategy.simulated_passes else step


@dataclass(frozen=True, slots=True)
class Steps:
    """The effects of the first step, and of any further one. What a step starts is counted from 0; below 0 it is of the
    step before."""

    first: list[Effect]
    further: list[Effect]

    def of(self, number: int) -> list[Effect]:
        """Of a step."""
        return self.further if number else self.first


def steps_of(case: TrainCase, plan: Plan, profile: Profile | None) -> Steps:
    """All steps are alike, but the first has none before it."""
    first, calls = listed(step_program(case, plan, profile))
    count = sum(isinstance(effect, Start) for effect in first)
    earlier = {bucket: Started(call.number - count) for bucket, call in calls.items()}
    return Steps(first, listed(step_program(case, plan, profile, earlier))[0])


def _passes(case: TrainCase, plan: Plan, profile: Profile | None, earlier: Calls) -> Step:
    strategy = _simulated(case)
    assert strategy.simulated_step is not None
    across, scale = case.value("strategy.forward_waits", "step") == "layer", case.dilation
    update = Compute(profile.update_s.median * scale if profile else 0.0, event="update")
    waits = (
        {plan.layers[tensor]: bucket for bucket, tensors in enumerate(plan.members) for tensor in tensors}
        if across
        else {}
    )
    for index, layer in enumerate(profile.layers if profile else ()):
        if index in waits and waits[index] in earlier:
            yield Await(earlier[waits[index]])
        yield Compute(layer.forward_s.median * scale, event="forward")
    calls: Calls = yield from strategy.simulated_step(plan, _backward(profile, scale), update, across)
    return calls


def _backward(profile: Profile | None, scale: float) -> Passed:
    if profile is None:
        return []
    times = [
        (index, layer.weight_s.median * scale, (layer.backward_s.median - layer.weight_s.median) * scale)
        for index, layer in enumerate(profile.layers)
    ]
    return times[::-1]
