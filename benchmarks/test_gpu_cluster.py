"""1.58 million jobs of the four clusters of Helios, generated, under four policies of suite helios2021: time, memory,
without LightGBM's training."""

from __future__ import annotations

import gc
import resource
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scaleproof.programs.own import load_entry

PROGRAMS = Path(__file__).parents[1] / "suites" / "helios2021" / "programs"
CLUSTERS = {
    "venus": (125_303, 133, 27),
    "earth": (427_148, 143, 25),
    "saturn": (698_896, 262, 28),
    "uranus": (329_117, 264, 25),
}
"""Jobs on GPUs of six months, nodes, VCs."""
POLICIES = ("fifo", "sjf", "srtf", "qssf")
LOAD = 0.7
MOST_S, MOST_MIB = 180.0, 4096.0


def schedule_all() -> dict[str, float]:
    """Seconds of generating and of each policy, over all clusters."""
    generator, simulation, policies = (load_entry(PROGRAMS, name) for name in ("generator", "simulation", "policies"))
    took = dict.fromkeys(("generating", *POLICIES), 0.0)
    for cluster, (jobs, nodes, vcs) in CLUSTERS.items():
        began = time.perf_counter()
        made = generator.generate(generator.Shape(cluster, jobs, nodes, vcs, LOAD), 1)
        took["generating"] += time.perf_counter() - began
        for policy in POLICIES:
            began = time.perf_counter()
            found = simulation.simulate(made, policies.rule_of(policy, made, 1))
            took[policy] += time.perf_counter() - began
            assert (found.first >= made.submit).all() and found.missed == 0
        gc.collect()
    return took


@pytest.mark.timeout(1800)
def test_four_policies_on_a_million_and_a_half_jobs(benchmark: BenchmarkFixture) -> None:
    load_entry(PROGRAMS, "engine")
    took = benchmark.pedantic(schedule_all, rounds=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    benchmark.extra_info.update({**took, "peak_mib": peak})
    assert sum(took[policy] for policy in POLICIES) < MOST_S and peak < MOST_MIB
