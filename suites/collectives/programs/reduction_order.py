"""The same random numbers summed by several all-reduce algorithms over one transport, element by element beside NumPy's
sum in the order of ranks."""

from __future__ import annotations

from typing import cast

import numpy as np

from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_region
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase
from scaleproof.transports._buffers import memory_of
from scaleproof.transports.contract import PointToPoint

LARGEST = 1 << 40
"""Integers are smaller, so that no sum overflows."""
DTYPES = ("int64", "float32")


def run(context: RankContext) -> None:
    """Facts `order`: of each algorithm and element type the elements that differ from NumPy's sum, bit by bit. An event
    `all_reduce` for each; `step` is the algorithm's place."""
    case = context.case
    assert isinstance(case, OwnCase)
    elements, algorithms = int(case.options["elements"]), str(case.options["algorithms"]).split()
    transport = cast(PointToPoint, registry.load("transport", str(case.transport)).connect(context))
    inputs = {dtype: [_numbers(context.seed, rank, elements, dtype) for rank in range(case.ranks)] for dtype in DTYPES}
    facts: dict[str, dict[str, dict[str, int]]] = {}
    with timed_region(context, transport):
        for number, algorithm in enumerate(algorithms):
            context.at(0, algorithm)
            group = Group(transport, algorithm, context.post, None, memory_of(case.buffers, transport))
            facts[algorithm] = {}
            for dtype, of_ranks in inputs.items():
                buffer = group.allocate(of_ranks[0].nbytes).view(dtype)
                buffer[:] = of_ranks[context.rank]
                start = now()
                group.all_reduce(buffer).wait()
                context.recorder.add("all_reduce", number, start, now(), buffer.nbytes)
                facts[algorithm][dtype] = _compared(buffer, of_ranks)
    context.facts["order"] = facts


def _numbers(seed: int, rank: int, elements: int, dtype: str) -> np.ndarray:
    generator = np.random.default_rng([seed, rank])
    if dtype == "int64":
        return generator.integers(-LARGEST, LARGEST, elements)
    return generator.standard_normal(elements, np.float32)


def _compared(sums: np.ndarray, of_ranks: list[np.ndarray]) -> dict[str, int]:
    expected = of_ranks[0].copy()
    for other in of_ranks[1:]:
        expected += other
    word = f"u{sums.itemsize}"
    return {"differ": int(np.count_nonzero(sums.view(word) != expected.view(word))), "elements": len(sums)}
