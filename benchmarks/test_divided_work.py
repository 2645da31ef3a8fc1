"""How long plans take that divide work: schedules of pipelines, packings of trees, frontiers of memory and time; and
how many samples a recommender trains with on one rank."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scaleproof.frontiers.cost_graph import frontier_of
from scaleproof.frontiers.operators import divided
from scaleproof.packed_trees.bounds import best_root
from scaleproof.packed_trees.fewest_trees import few_trees
from scaleproof.packed_trees.link_graph import allocations, machine
from scaleproof.pipelines.configurations import Machine, setting_of
from scaleproof.pipelines.schemes import schedule_of
from scaleproof.pipelines.throughput import Line, iteration_s
from scaleproof.pipelines.timing import PassTimes, timeline
from scaleproof.simulate.nccl.gpu_machine import gpu_machine
from scaleproof.simulate.predict import Predictor
from scaleproof.spec import registry
from scaleproof.spec.case import parse_case
from scaleproof.spec.plan import PlannedLaunch

PROGRAMS = Path(__file__).parents[1] / "suites" / "des2020" / "programs"
ROUNDS = 3
SAMPLES, STEPS = 512, 40
SAMPLES_PER_S = 20_000.0


def schedule() -> None:
    """Chimera with 2,048 workers and 64 micro-batches, and when its passes happen."""
    timeline(schedule_of("chimera", 2048, 64), PassTimes(backward=2.0))


def iteration() -> None:
    """An iteration of GPT-2 on 2,048 nodes by Chimera: 64 pipelines of 32 stages, folded, and their all-reduces."""
    network = registry.load("workload", "gpt2_64")(None, 1.0)
    nodes = Machine(2048, 16e9, 1e-12, 2e-12, Line(1e-6, 1e-9))
    iteration_s(setting_of(network, "chimera", 2048, nodes, stages=32, samples=1, recompute=False))


def trees() -> None:
    """Of all 46 and 14 allocations, for a broadcast and for an all-reduce."""
    for name in ("dgx1v_like", "dgx1p_like"):
        for graph in allocations(machine(name)):
            for root in (best_root(graph)[0], None):
                few_trees(graph, root)


def frontier() -> None:
    """Bert-48, up to 21 ways a layer, on 32 GPUs of four nodes."""
    network = registry.load("workload", "bert48")(None, 1.0)
    made = divided(network, 64, gpu_machine("p3dn", 32), states=4)
    frontier_of(made.graph, error=0.02)


TARGETS_S: dict[Callable[[], None], float] = {schedule: 1.0, iteration: 5.0, trees: 20.0, frontier: 10.0}


@pytest.mark.parametrize("plan", TARGETS_S, ids=lambda plan: plan.__name__)
def test_a_plan_takes(plan: Callable[[], None], benchmark: BenchmarkFixture) -> None:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        plan()
        times.append(time.perf_counter() - started)
    median = statistics.median(times)
    show(
        benchmark,
        times,
        {"arm": plan.__name__, "target_s": TARGETS_S[plan], "median_below_target": median < TARGETS_S[plan]},
    )


@pytest.mark.parametrize("model", ["lr", "fm"])
def test_samples_of_a_recommender_on_one_rank(model: str, tmp_path: Path, benchmark: BenchmarkFixture) -> None:
    options = {"model": model, "way": "substitution", "batch": SAMPLES, "ids": 1_000_000, "slots": 100, "fields": 20}
    case = parse_case(
        {
            "program": "own",
            "entry": "click_training",
            "suite": "des2020",
            "experiment": "bench",
            "arm": model,
            "transport": "tcp",
            "collective": "ring",
            "ranks": 1,
            "iterations": STEPS,
            "warmup": 0,
            "fabric": {"name": "simulated", "link_mbit": None, "costs": "stated"},
            "options": {
                **options,
                "exponent": 1.05,
                "k": 8,
                "rate": 0.5,
                "alone": 0,
                "test_samples": 0,
                "compute_ms": 0,
            },
        }
    )
    predictor, times = Predictor(tmp_path), list[float]()
    for seed in range(ROUNDS):
        started = time.perf_counter()
        predictor.predict(PlannedLaunch(case, 0, seed, 0, programs=str(PROGRAMS)))
        times.append(time.perf_counter() - started)
    rate = SAMPLES * STEPS / statistics.median(times)
    show(benchmark, times, {"arm": model, "samples_per_s": round(rate), "median_above_target": rate > SAMPLES_PER_S})


def show(benchmark: BenchmarkFixture, times: list[float], row: dict[str, Any]) -> None:
    """Times that were taken already, with what they mean."""
    benchmark.extra_info.update(row | {"seconds": round(statistics.median(times), 3)})
    print(json.dumps(benchmark.extra_info))
    replayed = iter(times)
    benchmark.pedantic(lambda: time.sleep(next(replayed)), rounds=len(times))
