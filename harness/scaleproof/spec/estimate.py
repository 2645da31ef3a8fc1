"""What a launch will cost in time and memory: from earlier launches of the same case; of trainings in virtual time from
those of the same network; else by formula with the assumptions stated here."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, prod
from typing import Any

from scaleproof.spec import registry, virtual_gradients
from scaleproof.spec.case import AnyCase, CollectiveCase, OwnCase, TrainCase, TransferCase
from scaleproof.spec.cluster import cluster_of
from scaleproof.spec.emulated import shrunk
from scaleproof.spec.gpu_node import rank_type
from scaleproof.spec.plugins import FrameworkPlugin
from scaleproof.spec.relative_times import relative_times

FLOP_PER_CORE_S = 2e10
"""Float32 training on one core of a small server, well below its peak."""
BYTES_PER_S = 1e9
"""All ranks of a machine together, through any transport; small messages are bound by CALL_S instead."""
CALL_S = 2e-4
SIMULATED_S = 0.1
"""A prediction with its record; of thousands of ranks that are not in step it takes longer."""
IMPORT_S, RESIDENT = 0.5, 100 * 2**20
"""Without a framework: seconds from the start of a process to its first step, which forked ranks pay once and others
each, and its memory in bytes. A framework's descriptor has its own."""
FORKED = 60 * 2**20
"""What a forked rank adds before it has any tensor."""
ASSUMPTIONS = (
    f"{FLOP_PER_CORE_S / 1e9:g} GFLOP/s a core, {BYTES_PER_S / 1e9:g} GB/s between ranks, framework start 1.5 to 6 s"
)


@dataclass(frozen=True, slots=True)
class Earlier:
    """Finished launches: `seconds`: of wall time, by case id; `gradients`: wall seconds over the number of gradients of
    trainings in virtual time on this machine, by kind (virtual_gradients.py)."""

    seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    gradients: Mapping[tuple[Any, ...], Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes of one launch. `launches`: earlier ones behind the seconds (0: by formula), of the same case or
    `of_network`. `at_least`: the formula leaves out something that may take longer than all that it has."""

    seconds: float
    nbytes: int
    launches: int
    of_network: bool = False
    at_least: bool = False


def estimate(case: AnyCase, earlier: Earlier | None = None, cores: int | None = None) -> Estimate:
    """One launch of a case."""
    earlier, cores = earlier or Earlier(), cores or os.cpu_count() or 1
    seconds = earlier.seconds.get(case.case_id, ())
    predicted = case.plugin("fabric").predicted
    nbytes = RESIDENT if predicted else _memory(case)
    if seconds:
        return Estimate(statistics.median(seconds), nbytes, len(seconds))
    if isinstance(case, TrainCase) and virtual_gradients.computes(case):
        return _in_virtual_time(case, earlier, cores)
    if predicted:
        return Estimate(SIMULATED_S, nbytes, 0)
    return Estimate(_start(case, cores) + _work(case, cores), nbytes, 0)


def _in_virtual_time(case: TrainCase, earlier: Earlier, cores: int) -> Estimate:
    """A training whose gradients are computed: from others of the same network, else at least their arithmetic."""
    alike = earlier.gradients.get(virtual_gradients.kind(case), ())
    if alike:
        return Estimate(statistics.median(alike) * virtual_gradients.count(case), RESIDENT, len(alike), of_network=True)
    flop = virtual_gradients.count(case) * case.batch * _network(case).train_flop
    return Estimate(SIMULATED_S + flop / (FLOP_PER_CORE_S * cores), RESIDENT, 0, at_least=True)


def _framework(case: AnyCase) -> FrameworkPlugin | None:
    """What a rank imports: the case's framework, or the one that the transport's library is built on."""
    if isinstance(case, TrainCase) and case.compute != "replay":
        return case.plugin("framework")
    needed = case.plugin("transport").needs_framework if case.transport else None
    return registry.get("framework", needed) if needed else None


def _resident(case: AnyCase) -> int:
    framework = _framework(case)
    return framework.resident_bytes if framework else RESIDENT


def _start(case: AnyCase, cores: int) -> float:
    imports = ceil(case.ranks / cores) if case.plugin("launcher").process_per_rank else 1
    framework = _framework(case)
    return (framework.import_s if framework else IMPORT_S) * imports + 0.1 * case.ranks


def _work(case: AnyCase, cores: int) -> float:
    if isinstance(case, TransferCase):
        return 2 * sum(_rounds(case, nbytes) * (CALL_S + nbytes / BYTES_PER_S) for nbytes in case.sizes)
    if not isinstance(case, TrainCase):
        return sum(
            _rounds(case, nbytes) * (CALL_S * case.ranks + _reduced_bytes(case, nbytes) / BYTES_PER_S)
            for nbytes in case.value("sizes", ())
        )
    network = _network(case)
    # Ranks that sleep are not in each other's way.
    at_once = case.ranks / case.dilation if case.compute == "replay" else min(cores, case.ranks * case.threads_per_rank)
    node, efficiency = case.compute_options.profile, case.compute_options.efficiency
    rate = rank_type(node).peak_flops * efficiency if node and efficiency else FLOP_PER_CORE_S
    compute = case.minibatch * network.train_flop / (rate * at_once) * max(relative_times(case), default=1.0)
    exchange = (
        _reduced_bytes(case, shrunk(4 * network.parameters, case.shrink)) / BYTES_PER_S if case.transport else 0.0
    )
    exchange = max(exchange, _over_links(case, 4 * network.parameters))
    return (case.steps + case.warmup) * (compute + exchange + CALL_S * case.ranks)


def _network(case: TrainCase) -> Any:
    network_of = case.plugin("program").network
    assert network_of is not None
    return network_of(case)


def _over_links(case: TrainCase, nbytes: int) -> float:
    """What the slowest link of an emulated cluster needs for its part of an exchange, dilated: an optimal all-reduce,
    or the way to and from servers."""
    if not case.plugin("fabric").slows_links or case.transport is None or case.ranks < 2:
        return 0.0
    slowest = min((link.mbit for link in cluster_of(case).links if link.mbit), default=None)
    if slowest is None:
        return 0.0
    receivers = case.ranks
    if case.plugin("strategy").has_servers:
        receivers = min(case.value("strategy.servers"), case.ranks) or case.ranks
    passes = 2 * (case.ranks - 1) / receivers
    return case.dilation * passes * nbytes * 8 / (slowest * 1e6)


def _rounds(case: TransferCase | CollectiveCase | OwnCase, nbytes: int) -> float:
    """Iterations of a size with the warm-up; a budget of bytes leaves fewer to large ones."""
    affordable = inf if case.budget_mib is None or not nbytes else max(1, case.budget_mib * 2**20 / nbytes)
    return case.warmup + min(case.iterations, affordable)


def _reduced_bytes(case: AnyCase, nbytes: int) -> int:
    """What all ranks together send in an all-reduce that is optimal in bytes: 2 (n - 1) times the array."""
    return 2 * (case.ranks - 1) * nbytes


def _memory(case: AnyCase) -> int:
    """All ranks together: the framework (shared after a fork), parameters with gradients, momentum and two buffers,
    activations there and back."""
    resident = _resident(case)
    processes = resident * case.ranks
    if not case.plugin("launcher").process_per_rank:
        processes = resident + FORKED * case.ranks
    if not isinstance(case, TrainCase):
        return processes + 3 * case.ranks * max(case.value("sizes", ()), default=0)
    network = _network(case)
    if case.compute == "replay":  # gradients, and what their exchange needs; the zeros of parameters are never written
        return processes + 4 * 3 * case.ranks * shrunk(network.parameters, case.shrink)
    copies = 2 + (case.momentum > 0) + (2 if case.transport else 0)
    activations = 2 * (prod(network.input_shape) + sum(prod(layer.output_shape) for layer in network.layers))
    return processes + 4 * (copies * case.ranks * network.parameters + case.minibatch * activations)
