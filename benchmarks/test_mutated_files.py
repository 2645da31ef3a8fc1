"""The longest that a user waits for what is wrong with a file, or for a plan of it: the slowest of the mutated files
that the tests make."""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from tools.mutated_files import SEED, TESTED
from tools.mutated_files.commands import workplace
from tools.mutated_files.mutations import mutated


def test_slowest_mutated_file(benchmark: BenchmarkFixture) -> None:
    with workplace() as place:
        outcomes = [place.outcome(mutated(number, SEED)) for number in range(TESTED)]
        slowest = max(outcomes, key=lambda outcome: outcome.seconds).file
        benchmark.extra_info["file"] = f"{slowest.number}: {slowest.source.path.name}"
        benchmark(place.outcome, slowest)
