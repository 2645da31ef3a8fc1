"""Simulates a training case with every rank by itself, or with some for all that do the same: ranks, calls and servers
in one event engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scaleproof.simulate.call_coordinator import Coordinator
from scaleproof.simulate.call_schedules import CallSchedules, Schedules
from scaleproof.simulate.case_patterns import Patterns
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.folded_calls import FoldedSchedules
from scaleproof.simulate.folded_links import UNFOLDED
from scaleproof.simulate.folded_training import folding_of
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.program import exchange_plan, steps_of
from scaleproof.simulate.server_threads import Threads
from scaleproof.simulate.shared_cores import SharedCores, shared_cores
from scaleproof.simulate.simulated_spans import Prediction
from scaleproof.simulate.tensor_servers import Serving, Tensor
from scaleproof.simulate.training_run import TrainingRun
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import Cluster, slowed
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.launch_kind import calls_from_a_thread
from scaleproof.strategies.base import MIB
from scaleproof.strategies.step_program import Plan
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.jitter_model import Variation
from scaleproof.workloads.networks import Network as LayerTable
from scaleproof.workloads.profile import Profile


def simulate_each_rank(
    case: TrainCase,
    profile: Profile | None,
    cluster: Cluster,
    costs: MessageCosts,
    *,
    buffer: float = 0.0,
    jitter: Variation | None = None,
    seed: int = 0,
    layers: LayerTable | None = None,
    fold: bool = False,
) -> Prediction:
    """Simulates every step. `buffer`: bytes that a connection takes before its receiver reads; `fold`: some ranks
    stand for all that do the same. Raises SpecError for a strategy that cannot be simulated."""
    network = Network(slowed(cluster, case.dilation, case.shrink), costs.goodput)
    nodes = [rank * case.nodes // case.ranks for rank in range(case.ranks)]
    plan = exchange_plan(case, layers or network_of(case))
    steps = steps_of(case, plan, profile)
    engine, cores = _engine(case, network, nodes, costs)
    alike = fold and jitter is None and cores is None
    folding = folding_of(case, plan, steps, network, nodes) if alike else None
    ranks = case.ranks if folding is None else folding.replicas.ranks.shape[1]
    every = CallSchedules(engine, network, nodes, costs, buffer, folding.links if folding else UNFOLDED, cores)
    calls = FoldedSchedules(engine, every, folding.replicas, costs.gamma, costs.call) if folding else every
    run = TrainingRun(
        engine,
        ranks,
        Patterns(case, plan.groups),
        calls,
        plan.channels,
        case.value("strategy.communication", "thread") == "main" and case.collective != NATIVE,
        _serving(case, engine, network, costs, _tensors(plan), _update_s(case, profile), cores),
        _coordinator(case, engine, calls, ranks),
        cores,
        costs.handover if calls_from_a_thread(case) else 0.0,
    )
    began = run.main
    for step in range(case.warmup + case.steps):
        if step == case.warmup:
            run.barrier()
            began = run.main
        factors = jitter.factors(ranks, seed, step) if jitter else np.ones(ranks)
        run.step(step, steps.of(step), factors)
    run.barrier()
    spans = [replace(span, warmup=span.step < case.warmup) for span in run.run()]
    prediction = Prediction(case, spans, engine.end[began].copy(), engine.end[run.main].copy())
    return _of_all(prediction, folding.replicas.place) if folding else prediction


def _of_all(some: Prediction, stands: np.ndarray) -> Prediction:
    """The times of all ranks. `stands`: the rank that stands for each."""
    spans = [replace(span, start=span.start[stands], end=span.end[stands]) for span in some.spans]
    return Prediction(some.case, spans, some.start[stands], some.end[stands])


def _engine(
    case: TrainCase, network: Network, nodes: list[int], costs: MessageCosts
) -> tuple[Engine, SharedCores | None]:
    """With links for the network, the threads of messages, and cores where computing shares them."""
    capacities = Threads.capacities(network, costs, case.ranks)
    if (cores := shared_cores(case)) is None:
        return Engine(capacities), None
    engine = Engine(np.concatenate([capacities, SharedCores.capacities(nodes, cores)]))
    return engine, SharedCores(engine, len(capacities), nodes, case.threads_per_rank, costs)


def _coordinator(case: TrainCase, engine: Engine, calls: Schedules, ranks: int) -> Coordinator | None:
    fusion_mib = case.value("transport.fusion_mib")
    if fusion_mib is None and case.value("strategy.bucket_order", "ready") == "ready":
        return None
    return Coordinator(engine, ranks, calls, None if fusion_mib is None else fusion_mib * MIB / case.shrink)


def _serving(
    case: TrainCase,
    engine: Engine,
    network: Network,
    costs: MessageCosts,
    tensors: list[Tensor],
    update_s: float,
    cores: SharedCores | None,
) -> Serving:
    nodes = [rank * case.nodes // case.ranks for rank in range(case.ranks)]
    own_process = case.value("strategy.server") == "process"
    return Serving(engine, network, nodes, costs, tensors, update_s, own_process, cores)


def _tensors(plan: Plan) -> list[Tensor]:
    """None without servers."""
    return [Tensor(*each) for each in zip(plan.parameters, plan.owners, strict=True)] if plan.owners else []


def _update_s(case: TrainCase, profile: Profile | None) -> float:
    return profile.update_s.median * case.dilation if profile else 0.0
