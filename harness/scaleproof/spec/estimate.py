"""What a launch will cost in time and memory: from earlier launches of the same case, else by formula with the
assumptions stated here."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, prod

from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, CollectiveCase, OwnCase, TrainCase, TransferCase
from scaleproof.spec.cluster import cluster_of, node_type
from scaleproof.spec.emulated import shrunk

FLOP_PER_CORE_S = 2e10
"""Float32 training on one core of a small server, well below its peak."""
BYTES_PER_S = 1e9
"""All ranks of a machine together, through any transport; small messages are bound by CALL_S instead."""
CALL_S = 2e-4
SIMULATED_S = 0.1
"""A prediction with its record; of thousands of ranks that are not in step it takes longer."""
IMPORT_S = {"none": 0.5, "torch": 1.5, "tensorflow": 6.0}
"""From the start of a process to its first step; forked ranks pay it once, ranks under mpirun each."""
RESIDENT = {"none": 100 * 2**20, "torch": 350 * 2**20, "tensorflow": 650 * 2**20}
FORKED = 60 * 2**20
"""What a forked rank adds before it has any tensor."""
ASSUMPTIONS = f"{FLOP_PER_CORE_S / 1e9:g} GFLOP/s a core, {BYTES_PER_S / 1e9:g} GB/s between ranks, framework start {IMPORT_S['torch']:g} to {IMPORT_S['tensorflow']:g} s"


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes of one launch; `launches` earlier ones stand behind the seconds (0: by formula)."""

    seconds: float
    nbytes: int
    launches: int


def estimate(case: AnyCase, earlier: Mapping[str, Sequence[float]], cores: int | None = None) -> Estimate:
    """One launch of a case. `earlier`: case id to the wall seconds of its finished launches."""
    if case.fabric == "simulated":
        return Estimate(SIMULATED_S, RESIDENT["none"], len(earlier.get(case.case_id, ())))
    seconds = earlier.get(case.case_id, ())
    if seconds:
        return Estimate(statistics.median(seconds), _memory(case), len(seconds))
    cores = cores or os.cpu_count() or 1
    return Estimate(_start(case, cores) + _work(case, cores), _memory(case), 0)


def _framework(case: AnyCase) -> str:
    """What a rank imports: the case's framework, or torch where the transport stands on it."""
    if isinstance(case, TrainCase) and case.compute != "replay":
        return case.framework
    needed = registry.entry("transport", case.transport).requires if case.transport else ()
    return "torch" if {"torch", "horovod"} & set(needed) else "none"


def _start(case: AnyCase, cores: int) -> float:
    imports = ceil(case.ranks / cores) if case.launcher != "local" else 1
    return IMPORT_S[_framework(case)] * imports + 0.1 * case.ranks


def _work(case: AnyCase, cores: int) -> float:
    if isinstance(case, TransferCase):
        return 2 * sum(_rounds(case, nbytes) * (CALL_S + nbytes / BYTES_PER_S) for nbytes in case.sizes)
    if not isinstance(case, TrainCase):
        return sum(
            _rounds(case, nbytes) * (CALL_S * case.ranks + _reduced_bytes(case, nbytes) / BYTES_PER_S)
            for nbytes in case.sizes
        )
    from scaleproof.workloads.case_network import network_of

    network = network_of(case)
    # Ranks that sleep are not in each other's way.
    at_once = case.ranks / case.dilation if case.compute == "replay" else min(cores, case.ranks * case.threads_per_rank)
    rate = node_type(case.profile).peak_flops * case.efficiency if case.profile and case.efficiency else FLOP_PER_CORE_S
    compute = case.minibatch * network.train_flop / (rate * at_once)
    exchange = (
        _reduced_bytes(case, shrunk(4 * network.parameters, case.shrink)) / BYTES_PER_S if case.transport else 0.0
    )
    exchange = max(exchange, _over_links(case, 4 * network.parameters))
    return (case.steps + case.warmup) * (compute + exchange + CALL_S * case.ranks)


def _over_links(case: TrainCase, nbytes: int) -> float:
    """What the slowest link of an emulated cluster needs for its part of an exchange, dilated: an optimal all-reduce,
    or the way to and from servers."""
    if case.fabric != "netns" or case.transport is None or case.ranks < 2:
        return 0.0
    slowest = min((link.mbit for link in cluster_of(case).links if link.mbit), default=None)
    if slowest is None:
        return 0.0
    passes = (
        2
        * (case.ranks - 1)
        / (min(case.servers, case.ranks) or case.ranks if case.strategy.endswith("parameter_server") else case.ranks)
    )
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
    framework = _framework(case)
    processes = (
        RESIDENT[framework] + FORKED * case.ranks if case.launcher == "local" else RESIDENT[framework] * case.ranks
    )
    if not isinstance(case, TrainCase):
        return processes + 3 * case.ranks * max(case.sizes, default=0)
    from scaleproof.workloads.case_network import network_of

    network = network_of(case)
    if case.compute == "replay":  # gradients, and what their exchange needs; the zeros of parameters are never written
        return processes + 4 * 3 * case.ranks * shrunk(network.parameters, case.shrink)
    copies = 2 + (case.momentum > 0) + (2 if case.transport else 0)
    activations = 2 * (prod(network.input_shape) + sum(prod(layer.output_shape) for layer in network.layers))
    return processes + 4 * (copies * case.ranks * network.parameters + case.minibatch * activations)
