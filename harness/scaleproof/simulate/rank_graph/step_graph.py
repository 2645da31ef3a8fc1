"""One step of a training case as a graph of all ranks: what the case's strategy emits."""

from __future__ import annotations

from scaleproof.rank_programs.effects import Compute
from scaleproof.rank_programs.graph.emitted import Program, graph_of_programs
from scaleproof.rank_programs.graph.rank_graph import RankGraph
from scaleproof.simulate.case_patterns import groups_of
from scaleproof.simulate.program import algorithm_of, exchange_plan, step_program
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.launch_kind import calls_from_a_thread
from scaleproof.strategies.parameter_server_step import step_of_rank
from scaleproof.strategies.step_program import Plan
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.profile import Profile

USUAL = {
    "strategy.communication": "thread",
    "strategy.bucket_order": "ready",
    "strategy.forward_waits": "step",
    "strategy.server": "worker",
}
"""The only values of options with which a step is a graph: with others, what goes next depends on times, or a step on
the one before it."""


def step_graph(case: TrainCase, profile: Profile | None, gamma: float = 0.0, handover: float = 0.0) -> RankGraph:
    """The step without dilation and shrink. `gamma`: s in which a server adds up a byte;
    `handover`: s between the main thread and one that makes calls, where there is one. Raises SpecError for a case
    whose step is no graph."""
    if case.value("transport.fusion_mib") is not None:
        raise SpecError(
            f"transport {case.transport!r} fuses tensors as they come (fusion_mib): messages depend on times"
        )
    if beyond := [key for key, usual in USUAL.items() if case.value(key, usual) != usual]:
        raise SpecError(f"{beyond[0]} {case.value(beyond[0])}: a graph cannot express this; leave it out")
    plain = case.model_copy(update={"dilation": 1.0, "shrink": 1.0})
    plan = exchange_plan(plain, network_of(plain))
    programs = [_program(plain, plan, profile, rank) for rank in range(plain.ranks)]
    name = f"case {case.case_id}"
    between = handover if calls_from_a_thread(plain) else 0.0
    return graph_of_programs(programs, groups_of(plain.ranks, plan.groups), algorithm_of(plain), gamma, between, name)


def _program(case: TrainCase, plan: Plan, profile: Profile | None, rank: int) -> Program:
    step = step_program(case, plan, profile)
    if not plan.owners:
        return step
    return step_of_rank(plan, rank, step, Compute(profile.update_s.median if profile else 0.0, event="update"))
