"""What the event engine takes for a schedule on one switch whose links are not shared by two messages at once, unless
the schedule makes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_exchange import Exchange
from scaleproof.simulate.collective_schedules import Pattern, Round, pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine_calls import run_calls
from scaleproof.simulate.link_network import MBIT, Network
from scaleproof.spec.cluster import star

from .formulas import Costs

QUEUE_RANKS = 64
"""Up to here every message is an event; beyond, rounds of messages that cannot meet are computed at once."""


def seconds(pattern: Pattern, nbytes: float, costs: Costs, buffer: float = 0.0) -> float:
    """From the call on all ranks to the end of the last one. A link carries 1 / b bytes per s in each direction.
    `buffer`: bytes that a connection takes before its receiver reads."""
    mbit = 1 / costs.b / MBIT if costs.b else None
    network, nodes = Network(star("line", pattern.ranks, mbit, 0.0)), list(range(pattern.ranks))
    message = MessageCosts((Segment(None, costs.a, 0.0),), costs.g)
    call = Call(pattern, nbytes, np.zeros(pattern.ranks))
    if pattern.ranks <= QUEUE_RANKS:
        run_calls(network, nodes, message, [call], np.zeros((1, pattern.ranks)), buffer)
    else:
        Exchange(network, nodes, message, buffer=buffer).run([call])
    return float(call.end.max())


@lru_cache(maxsize=64)
def schedule(row: str, p: int) -> Pattern:
    """The messages behind a formula's row: of our algorithms, and of three that the harness does not have."""
    if row in OURS:
        return pattern_of(*OURS[row], p)  # type: ignore[arg-type]
    return {
        "reducescatter.pairwise": pairwise,
        "bcast.scatter_ringallgather": scatter_ring,
        "gather.binomial": binomial_gather,
    }[row](p)


OURS = {
    "allreduce.rabenseifner.pof2": ("halving_doubling", "all_reduce"),
    "allreduce.rabenseifner.nonpof2": ("halving_doubling", "all_reduce"),
    "allreduce.recdoubling": ("recursive_doubling", "all_reduce"),
    "reducescatter.rechalving": ("halving_doubling", "reduce_scatter"),
    "allgather.recdoubling": ("halving_doubling", "all_gather"),
    "allgather.ring": ("ring", "all_gather"),
    "allreduce.ring": ("ring", "all_reduce"),
    "allreduce.chimera": ("halving_doubling", "all_reduce"),
    "bcast.binomial": ("tree", "broadcast"),
    "allreduce.dbtree": ("double_binary_tree", "all_reduce"),
}
"""Algorithm and operation."""


def pairwise(p: int) -> Pattern:
    """In round k a rank sends the block of the rank k places on to it."""
    ranks = np.arange(p)
    return Pattern(p, tuple((_round(ranks, (ranks + k) % p, np.full(p, 1 / p), True), 1) for k in range(1, p)))


def scatter_ring(p: int) -> Pattern:
    """p a power of two: a binomial scatter from rank 0, then a ring that gathers."""
    scattered = [(_round(*_halves(p, half), False), 1) for half in _powers(p)[::-1]]
    return Pattern(p, (*scattered, *pattern_of("ring", "all_gather", p).rounds))


def binomial_gather(p: int) -> Pattern:
    """p a power of two: the scatter backwards."""
    rounds = []
    for half in _powers(p):
        parents, children, share = _halves(p, half)
        rounds.append((_round(children, parents, share, False), 1))
    return Pattern(p, tuple(rounds))


def _halves(p: int, half: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ranks that hold 2 * half blocks, those that get the upper half of them, and its share of the array."""
    parents = np.arange(0, p, 2 * half)
    return parents, parents + half, np.full(len(parents), half / p)


def _powers(p: int) -> list[int]:
    return [1 << step for step in range(p.bit_length() - 1)]


def _round(source: Sequence[int] | np.ndarray, destination: np.ndarray, share: np.ndarray, reduces: bool) -> Round:
    return Round(np.asarray(source), destination, share, np.full(len(share), reduces))
