"""Searches the frontier of a chain of operators, a search a step: by dynamic programming or by elimination."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.frontiers.cost_graph import CostGraph, Costs, Method, frontier_of
from scaleproof.rank_programs.effects import Compute, Effect, Settle
from scaleproof.rank_programs.rank_program import Clock, RankProgram
from scaleproof.spec.case import OwnCase
from scaleproof.spec.program_options import choice

LEVELS = 8
"""Different costs of a configuration: frontiers stay short beside the number of strategies."""
METHODS: dict[str, Method] = {"dynamic": "dynamic", "elimination": "elimination"}


def chain(operators: int, configurations: int, seed: int) -> CostGraph:
    """Whole numbers as costs."""
    random = np.random.default_rng([seed, configurations])

    def costs(*shape: int) -> Costs:
        return Costs(*(random.integers(1, LEVELS, shape).astype(float) for _ in range(2)))

    names = [f"op{number}" for number in range(operators)]
    pairs = list(zip(names, names[1:], strict=False))
    return CostGraph(
        {name: costs(configurations) for name in names}, {pair: costs(configurations, configurations) for pair in pairs}
    )


class FrontierSearch(RankProgram):
    """Options: `method` (dynamic, elimination), `operators`, `configurations` of each, `seed`. Event `points`: those of
    the frontier."""

    def __init__(self, case: OwnCase, rank: int, clock: Clock) -> None:
        super().__init__(case, rank, clock)
        of = case.options
        self.method = METHODS[choice(of, "method", METHODS)]
        self.graph = chain(int(of["operators"]), int(of["configurations"]), int(of["seed"]))

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram. One thread: threads hide how work grows."""
        for _ in self.steps():
            points = yield Compute(0.0, lambda: len(frontier_of(self.graph, method=self.method, threads=1)), "search")
            self._clock.note("points", float(points))
            yield Settle()


PROGRAM = FrontierSearch
