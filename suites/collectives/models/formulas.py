"""The formulas of published.yaml: s of one call of n bytes on p ranks, with latency a in s, b in s per byte moved and g
in s per byte reduced."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """Of a message: `a` in s, `b` in s per byte; `g`: of a reduction, in s per byte."""

    a: float
    b: float
    g: float = 0.0


Formula = Callable[[int, float, Costs], float]
"""Of p, n and costs."""


def is_power_of_2(p: int) -> bool:
    """Whether lg p is a whole number."""
    return p & (p - 1) == 0


def rabenseifner(p: int, n: float, c: Costs) -> float:
    """p a power of two."""
    return 2 * math.log2(p) * c.a + 2 * n * ((p - 1) / p) * c.b + n * ((p - 1) / p) * c.g


def rabenseifner_nonpof2(p: int, n: float, c: Costs) -> float:
    """p no power of two."""
    share = (p - 1) / p
    return (2 * math.floor(math.log2(p)) + 2) * c.a + (2 * share + 2) * n * c.b + n * (1 + share) * c.g


def recursive_doubling(p: int, n: float, c: Costs) -> float:
    """p a power of two."""
    return math.log2(p) * (c.a + n * c.b + n * c.g)


def recursive_doubling_nonpof2(p: int, n: float, c: Costs) -> float:
    """Not a row: MPICH's treatment of other p (even ranks below 2 rem send to rank + 1 and sit out) adds a round
    before, which reduces, and one after."""
    rounds = math.floor(math.log2(p))
    return (rounds + 2) * (c.a + n * c.b) + (rounds + 1) * n * c.g


def reduce_scatter_halving(p: int, n: float, c: Costs) -> float:
    """p a power of two."""
    return math.log2(p) * c.a + n * ((p - 1) / p) * (c.b + c.g)


def reduce_scatter_pairwise(p: int, n: float, c: Costs) -> float:
    """Any p."""
    return (p - 1) * c.a + n * ((p - 1) / p) * (c.b + c.g)


def all_gather_doubling(p: int, n: float, c: Costs) -> float:
    """p a power of two."""
    return math.log2(p) * c.a + n * ((p - 1) / p) * c.b


def all_gather_ring(p: int, n: float, c: Costs) -> float:
    """Any p."""
    return (p - 1) * c.a + n * ((p - 1) / p) * c.b


def broadcast_scatter_ring(p: int, n: float, c: Costs) -> float:
    """p a power of two."""
    return (math.log2(p) + p - 1) * c.a + 2 * n * ((p - 1) / p) * c.b


def ring(p: int, n: float, c: Costs) -> float:
    """Any p."""
    return 2 * (p - 1) * c.a + 2 * n * ((p - 1) / p) * c.b + n * ((p - 1) / p) * c.g


def chimera(p: int, n: float, c: Costs) -> float:
    """p a power of two; no reduction."""
    return 2 * math.log2(p) * c.a + 2 * (p - 1) * c.b * n / p


def broadcast_binomial(p: int, n: float, c: Costs) -> float:
    """Any p; from memory."""
    return math.ceil(math.log2(p)) * (c.a + n * c.b)


def binomial_all_reduce(p: int, n: float, c: Costs) -> float:
    """Not a row: a binomial reduction, which is that broadcast backwards, and the broadcast."""
    return 2 * broadcast_binomial(p, n, c) + math.ceil(math.log2(p)) * n * c.g


def pipelined_chain(p: int, n: float, c: Costs, pieces: int = 8) -> float:
    """From memory, with the pieces of our algorithm: 2 (p - 1) hops."""
    return (2 * (p - 1) + pieces - 1) * (c.a + n / pieces * c.b)


def double_binary_tree(p: int, n: float, c: Costs) -> float:
    """Any p; from memory, with the best number of pieces."""
    return 2 * (2 * math.log2(p) * c.a) + 2 * n * c.b


ROWS: dict[str, Formula] = {
    "allreduce.rabenseifner.pof2": rabenseifner,
    "allreduce.rabenseifner.nonpof2": rabenseifner_nonpof2,
    "allreduce.recdoubling": recursive_doubling,
    "reducescatter.rechalving": reduce_scatter_halving,
    "reducescatter.pairwise": reduce_scatter_pairwise,
    "allgather.recdoubling": all_gather_doubling,
    "allgather.ring": all_gather_ring,
    "bcast.scatter_ringallgather": broadcast_scatter_ring,
    "gather.binomial": all_gather_doubling,
    "allreduce.ring": ring,
    "allreduce.chimera": chimera,
    "bcast.binomial": broadcast_binomial,
    "allreduce.dbtree": double_binary_tree,
}
"""By the end of the row's id, after `collectives.cost.`."""


def of_call(collective: str, p: int) -> Formula:
    """The formula of an all-reduce by one of our algorithms."""
    whole = is_power_of_2(p)
    return {
        "ring": ring,
        "halving_doubling": rabenseifner if whole else rabenseifner_nonpof2,
        "recursive_doubling": recursive_doubling if whole else recursive_doubling_nonpof2,
        "tree": binomial_all_reduce,
        "chain": pipelined_chain,
        "double_binary_tree": double_binary_tree,
    }[collective]
