"""The rows with a formula, beside what the event engine takes for the same messages; and the factors of nccl-tests."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from scaleproof.claims import metrics_sizes
from scaleproof.claims.arithmetic import MOST_WORKERS, Arguments, Published
from scaleproof.claims.metrics import Metric
from scaleproof.simulate.nccl import prediction
from scaleproof.spec.registry import nearest

from .engine import schedule, seconds
from .formulas import ROWS, Costs

POWERS = (2, 4, 8, 64, 4096)
OTHERS = (3, 5, 6, 7, 48, 1000)
RANKS: dict[str, tuple[int, ...]] = {
    "allreduce.rabenseifner.nonpof2": OTHERS,
    "reducescatter.pairwise": (2, 3, 5, 8, 64, 512),
    "allgather.ring": (*POWERS, *OTHERS),
    "allreduce.ring": (*POWERS, *OTHERS),
    "bcast.binomial": (*POWERS, *OTHERS),
    "allreduce.dbtree": (2, 4, 5, 8, 64),
}
"""Numbers of ranks at which a row is looked at; of others the powers of two. Each round of pairwise exchange is another
permutation, and pieces in two trees share links: these are looked at to fewer ranks."""
TERMS = {
    "a": Costs(1e-5, 0.0, 0.0),
    "b": Costs(0.0, 1e-9, 0.0),
    "g": Costs(0.0, 0.0, 1e-9),
    "all": Costs(1e-5, 1e-9, 3e-10),
}
"""Each cost alone, so that no term hides behind another, and all together."""
NBYTES = (4, 16 << 20)
WITHOUT_G = ("allreduce.chimera",)
"""Formulas that leave reducing out."""


def _is_row(name: str) -> str:
    if name not in ROWS:
        raise ValueError(f"unknown formula {name!r}; {nearest(name, list(ROWS))}")
    return name


class RowFormula(Arguments):
    """A formula of the rows."""

    formula: Annotated[
        str, AfterValidator(_is_row), Field(description="End of the row's id, after `collectives.cost.`.")
    ]


class BusFactor(Arguments):
    """A collective of nccl-tests."""

    collective: Literal["allreduce", "reducescatter", "allgather", "broadcast", "reduce", "alltoall"] = Field(
        description="Its name in nccl-tests."
    )


def formula_gap(x: RowFormula, rows: Published) -> float:
    """Largest relative difference between a row's formula and what the event engine takes for the same messages, over
    numbers of ranks to 4,096, over arrays of 4 B and 16 MiB, and over each of its costs alone and all together.

    formula_gap = largest of |engine / formula - 1| over p, n and (a, 0, 0), (0, b, 0), (0, 0, g), (a, b, g)

    The engine knows the messages of the schedule, one switch and one link per rank; it does not know the formula. Up to
    64 ranks every message is an event. A formula with lg p is looked at where p is a power of two, and one of MPICH's
    for other p where it is none. Arithmetic, no launches.
    """
    return max(gap(x.formula, p, n, costs) for p in RANKS.get(x.formula, POWERS) for n in NBYTES for costs in TERMS)


@lru_cache(maxsize=4096)
def gap(row: str, p: int, nbytes: int, term: str) -> float:
    """|engine / formula - 1| with the costs of one entry of TERMS."""
    costs = TERMS[term]
    if row in WITHOUT_G:
        costs = Costs(costs.a, costs.b)
    expected, found = ROWS[row](p, nbytes, costs), seconds(schedule(row, p), nbytes, costs)
    if not expected:
        return abs(found) / costs_scale(costs, nbytes)
    return abs(found / expected - 1)


def costs_scale(costs: Costs, nbytes: int) -> float:
    """What one message and its reduction take, in s; 1 where nothing costs anything."""
    return costs.a + nbytes * (costs.b + costs.g) or 1.0


def bus_factor(x: BusFactor, rows: Published) -> float:
    """busbw over algbw of a collective whose factor does not depend on the number of ranks, as our metrics have it.
    Arithmetic, no launches."""
    return metrics_sizes.bus_factor(x.collective, 8)


def bus_factor_gap(x: BusFactor, rows: Published) -> float:
    """Largest relative difference between the factor busbw / algbw that our code uses and the row's formula.

    bus_factor_gap = largest of |factor / formula - 1| over 2 to 4,096 ranks and over the places of our code that have
    one: the metric [busbw](busbw.md), and the model of NCCL

    Arithmetic, no launches.
    """
    ranks = range(2, MOST_WORKERS + 1)
    formula = (lambda n: 2 * (n - 1) / n) if x.collective == "allreduce" else (lambda n: (n - 1) / n)
    found = [[prediction.bus_factor(x.collective, n) for n in ranks]] if x.collective != "reduce" else []
    if x.collective in OPERATIONS:
        found.append([metrics_sizes.bus_factor(OPERATIONS[x.collective], n) for n in ranks])
    return max(abs(value / formula(n) - 1) for values in found for n, value in zip(ranks, values, strict=True))


OPERATIONS = {"allreduce": "all_reduce", "reducescatter": "reduce_scatter", "allgather": "all_gather"}
"""Our names."""

METRICS = [
    Metric("formula_gap", "fraction", "lower", model=formula_gap, x=RowFormula),
    Metric("bus_factor", "1", None, model=bus_factor, x=BusFactor),
    Metric("bus_factor_gap", "fraction", "lower", model=bus_factor_gap, x=BusFactor),
]
