"""How long it takes to simulate one step of VGG-A, by number of nodes: with the shortcut for ranks in lockstep, without
it, and in the event engine with every rank by itself, or one for all."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.program import exchange_plan, step_program
from scaleproof.simulate.step_engine import Options, simulate
from scaleproof.spec.case import TrainCase, parse_case
from scaleproof.spec.cluster import cluster_of
from scaleproof.strategies.step_program import collectives, listed
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.jitter_model import Jitter
from scaleproof.workloads.profile import peak_profile

COSTS = MessageCosts((Segment(None, 30e-6, 0.0),), 1e-10, 0.94)
ARMS: dict[str, tuple[str, int, Options, Jitter | None]] = {
    "ring, ranks in step": ("ring", 1, Options(), None),
    "ring, every rank by itself": ("ring", 1, Options(symmetry=False), None),
    "ring, ranks that differ by 2 %": ("ring", 1, Options(), Jitter(step_sigma=0.02)),
    "halving and doubling, ranks that differ by 2 %": ("halving_doubling", 1, Options(), Jitter(step_sigma=0.02)),
    "ring, two channels, event engine": ("ring", 2, Options(symmetry=False), None),
    "ring, two channels, one rank for all": ("ring", 2, Options(), None),
    "halving and doubling, one rank for all": ("halving_doubling", 1, Options(), None),
    "ring, two channels, ranks that differ by 2 %, event engine": ("ring", 2, Options(), Jitter(step_sigma=0.02)),
}
COUNTS = (2, 8, 32, 128, 512, 2048, 4096)
MOST = {"ring, two channels, event engine": 512, "ring, two channels, ranks that differ by 2 %, event engine": 512}
TARGETS = {
    ("ring, ranks in step", 128): 0.05,
    ("ring, ranks in step", 2048): 2.0,
    ("ring, every rank by itself", 2048): 2.0,
    ("ring, two channels, event engine", 128): 0.15,
}
"""s a step; the second of a ring whose ranks are not known to be in step is ours."""
ROUNDS = 5


def case_of(ranks: int, algorithm: str, channels: int) -> TrainCase:
    """VGG-A with collectives."""
    return train_case(
        ranks,
        {
            "transport": "tcp",
            "collective": algorithm,
            "strategy": "sync_overlap",
            "strategy.channels": channels,
            "workload": "vgg_a",
        },
    )


def servers_of(ranks: int) -> TrainCase:
    """Inception-v3 with a server beside each worker, on the node of each."""
    return train_case(
        ranks,
        {
            "transport": "grpc",
            "collective": "ring",
            "strategy": "parameter_server",
            "strategy.servers": ranks,
            "strategy.server": "process",
            "strategy.placement": "bytes",
            "workload": "inception_v3",
        },
    )


def train_case(ranks: int, fields: dict[str, Any]) -> TrainCase:
    """Minibatch 256 or one sample a rank."""
    case = parse_case(
        {
            "program": "train",
            "suite": "bench",
            "experiment": "simulator",
            "arm": "a",
            "fabric": "simulated",
            "fabric.cluster": "ethernet_10g",
            "ranks": ranks,
            "minibatch": max(256, ranks),
            "steps": 1,
            "warmup": 0,
            "compute.profile": "xeon_e5_2698v3_x2",
            "compute.efficiency": 0.5,
            **fields,
        }
    )
    assert isinstance(case, TrainCase)
    return case


def seconds_of(case: TrainCase, options: Options, jitter: Jitter | None) -> list[float]:
    """s of several simulations, after a first one, which compiles the schedule."""
    profile = peak_profile(
        network_of(case),
        case.minibatch // case.ranks,
        str(case.compute_options.profile),
        float(case.compute_options.efficiency or 0),
    )
    cluster, times = cluster_of(case), []
    for _ in range(1 + ROUNDS):
        started = time.perf_counter()
        simulate(case, profile, cluster, COSTS, jitter=jitter, seed=1, options=options)
        times.append(time.perf_counter() - started)
    return times


def show(benchmark: BenchmarkFixture, times: list[float], row: dict[str, Any]) -> None:
    benchmark.extra_info.update(row)
    replayed = iter(times)
    benchmark.pedantic(lambda: time.sleep(next(replayed)), rounds=len(times))


@pytest.mark.parametrize("ranks", COUNTS)
@pytest.mark.parametrize("arm", ARMS)
def test_one_step_of_vgg_a(arm: str, ranks: int, rows: list[dict[str, Any]], benchmark: BenchmarkFixture) -> None:
    """Medians are of the calls after the first."""
    if ranks > MOST.get(arm, ranks):
        pytest.skip("minutes")
    algorithm, channels, options, jitter = ARMS[arm]
    case = case_of(ranks, algorithm, channels)
    first, *times = seconds_of(case, options, jitter)
    plan = exchange_plan(case, network_of(case))
    calls = len(list(collectives(listed(step_program(case, plan, None))[0])))
    events = calls * sum(times for _, times in pattern_of(algorithm, "all_reduce", ranks).rounds)
    median = statistics.median(times)
    target = TARGETS.get((arm, ranks))
    rows.append(
        {
            "arm": arm,
            "ranks": ranks,
            "seconds": round(median, 6),
            "first_seconds": round(first, 6),
            "rounds_of_a_rank": events,
            "ns_a_round_over_n_log_n": round(1e9 * median / events / (ranks * math.log2(ranks)), 3),
            "target_s": target,
            "median_below_target": None if target is None else median < target,
        }
    )
    show(benchmark, times, rows[-1])


@pytest.mark.parametrize("ranks", [32, 128])
def test_one_step_with_as_many_servers_as_workers(
    ranks: int, rows: list[dict[str, Any]], benchmark: BenchmarkFixture
) -> None:
    case = servers_of(ranks)
    first, *times = seconds_of(case, Options(), Jitter(step_sigma=0.02))
    messages = 2 * (ranks - 1) * len(exchange_plan(case, network_of(case)).parameters)
    median = statistics.median(times)
    rows.append(
        {
            "arm": "as many servers as workers, which differ by 2 %",
            "ranks": ranks,
            "messages": messages,
            "seconds": round(median, 6),
            "first_seconds": round(first, 6),
            "messages_per_s": round(messages / median),
        }
    )
    show(benchmark, times, rows[-1])
