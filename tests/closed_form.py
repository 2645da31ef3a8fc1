"""Closed-form times of collectives, against which tests check the simulator. p: ranks; n: bytes; a: s per message;
b: s per byte sent; g: s per byte reduced.

Sources: comments in MPICH's source (src/mpi/coll), for one message at a time in each direction of every rank's link;
Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH (2005). The formulas are
exact for a star with one rank per node and no other traffic."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, log2


def ring_all_reduce(p: int, n: float, a: float, b: float, g: float) -> float:
    """The sum of a pairwise reduce-scatter and a ring all-gather (MPICH, reduce_scatter and allgather)."""
    return ring_reduce_scatter(p, n, a, b, g) + ring_all_gather(p, n, a, b)


def ring_reduce_scatter(p: int, n: float, a: float, b: float, g: float) -> float:
    """MPICH, reduce_scatter, pairwise exchange: the same number of bytes as in a ring, but other partners."""
    return (p - 1) * a + n * (p - 1) / p * (b + g)


def ring_all_gather(p: int, n: float, a: float, b: float) -> float:
    """MPICH, allgather, ring."""
    return (p - 1) * a + n * (p - 1) / p * b


def ring_broadcast(p: int, n: float, a: float, b: float) -> float:
    """A chain of p - 1 hops, pipelined with p chunks: (hops + chunks - 1) (a + n / chunks b)."""
    return (2 * p - 2) * (a + n / p * b)


def halving_doubling_all_reduce(p: int, n: float, a: float, b: float, g: float) -> float:
    """Rabenseifner (MPICH, allreduce). If p is no power of two, the other ranks send their whole arrays to 2^k ranks
    before and receive the result after. MPICH's comment writes p in the formula; only 2^k ranks take part, so it is 2^k
    here."""
    core = 2 ** floor(log2(p))
    exchange = 2 * log2(core) * a + 2 * n * (core - 1) / core * b + n * (core - 1) / core * g
    return exchange if core == p else exchange + 2 * a + 2 * n * b + n * g


def recursive_doubling_all_reduce(p: int, n: float, a: float, b: float, g: float) -> float:
    """MPICH, allreduce, recursive doubling; ranks beyond a power of two as in Rabenseifner's."""
    core = 2 ** floor(log2(p))
    exchange = log2(core) * (a + n * b + n * g)
    return exchange if core == p else exchange + 2 * a + 2 * n * b + n * g


def halving_reduce_scatter(p: int, n: float, a: float, b: float, g: float) -> float:
    """MPICH, reduce_scatter, recursive halving; p = 2^k."""
    return log2(p) * a + n * (p - 1) / p * (b + g)


def doubling_all_gather(p: int, n: float, a: float, b: float) -> float:
    """MPICH, allgather, recursive doubling; p = 2^k."""
    return log2(p) * a + n * (p - 1) / p * b


def scatter_doubling_broadcast(p: int, n: float, a: float, b: float) -> float:
    """Binomial scatter, then all-gather by recursive doubling (van de Geijn; MPICH, bcast); p = 2^k."""
    return 2 * log2(p) * a + 2 * n * (p - 1) / p * b


def tree_broadcast(p: int, n: float, a: float, b: float) -> float:
    """Binomial: ceil(lg p) messages of the whole array."""
    return ceil(log2(p)) * (a + n * b)


def tree_all_reduce(p: int, n: float, a: float, b: float, g: float) -> float:
    """Binomial reduction to one rank and broadcast from it."""
    return ceil(log2(p)) * (a + n * b + n * g) + tree_broadcast(p, n, a, b)


def hierarchical_all_reduce(
    nodes: int, per_node: int, n: float, inside: tuple[float, float], between: tuple[float, float], g: float
) -> float:
    """Ring reduce-scatter inside nodes, ring all-reduce of that share between ranks with the same local rank, ring
    all-gather inside nodes. `inside`, `between`: (a, b). The `per_node` rings between nodes share every node's
    link."""
    share = n / per_node
    first = ring_reduce_scatter(per_node, n, *inside, g) + ring_all_gather(per_node, n, *inside)
    return first + ring_all_reduce(nodes, share, between[0], between[1] * per_node, g)


def parameter_servers(p: int, k: int, n: float, a: float, b: float, g: float) -> float:
    """n bytes in k equal tensors, one on each of the first k of p ranks; all ranks are workers. Each server receives
    p - 1 gradients, sums them, and sends the new value to p - 1 workers. While k < p the servers' links are the
    bottleneck: a server's link carries n (p - 1) / k bytes, a worker's at most n."""
    if not 0 < k < p:
        raise ValueError(f"{k} servers among {p} ranks: the servers' links bind for 1 to p - 1 of them")
    return 2 * (a + (p - 1) * n / k * b) + (p - 1) * n / k * g


Formula = Callable[[int, float, float, float, float], float]
EXACT: dict[tuple[str, str], Formula] = {
    ("ring", "all_reduce"): ring_all_reduce,
    ("ring", "reduce_scatter"): ring_reduce_scatter,
    ("ring", "all_gather"): lambda p, n, a, b, g: ring_all_gather(p, n, a, b),
    ("ring", "broadcast"): lambda p, n, a, b, g: ring_broadcast(p, n, a, b),
    ("halving_doubling", "all_reduce"): halving_doubling_all_reduce,
    ("halving_doubling", "reduce_scatter"): halving_reduce_scatter,
    ("halving_doubling", "all_gather"): lambda p, n, a, b, g: doubling_all_gather(p, n, a, b),
    ("halving_doubling", "broadcast"): lambda p, n, a, b, g: scatter_doubling_broadcast(p, n, a, b),
    ("recursive_doubling", "all_reduce"): recursive_doubling_all_reduce,
    ("tree", "all_reduce"): tree_all_reduce,
    ("tree", "broadcast"): lambda p, n, a, b, g: tree_broadcast(p, n, a, b),
}
"""Formula by algorithm and operation. Our schedules must take exactly this time."""
EVERY_P = {("ring", operation) for operation in ("all_reduce", "reduce_scatter", "all_gather", "broadcast")} | {
    ("halving_doubling", "all_reduce"),
    ("recursive_doubling", "all_reduce"),
    ("tree", "all_reduce"),
    ("tree", "broadcast"),
}
"""Formulas that hold for any number of ranks; the others hold for powers of two."""
