"""What collectives over trees and rings take: a model of chunks, for sizes from kilobytes to gigabytes, and the other
forms of blink2020: two channels, one-hop trees behind a switch, several servers.

Rates are in bytes/s, latencies in s for each chunk on each link."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from math import ceil, log2

SMALLEST, LARGEST = 4 << 10, 16 << 20
"""Chunks that are tried, bytes."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A tree with its depth in links, and the rate of its share of each link."""

    depth: int
    rate: float


def chunked(nbytes: float, links: int, rate: float, latency: float, chunk: float) -> float:
    """Through so many links, chunk after chunk: (links + chunks - 1) (latency + chunk / rate)."""
    pieces = max(1, ceil(nbytes / chunk))
    return (links + pieces - 1) * (latency + min(chunk, nbytes) / rate)


def over_trees(nbytes: float, trees: Sequence[Branch], latency: float, chunk: float, *, reduces: bool) -> float:
    """A broadcast, or an all-reduce (`reduces`), which goes up and down: the slowest of the trees, each with a share in
    proportion to its rate."""
    total = sum(tree.rate for tree in trees)
    ways = 2 if reduces else 1
    return max(chunked(nbytes * tree.rate / total, ways * tree.depth, tree.rate, latency, chunk) for tree in trees)


def ring_all_reduce(nbytes: float, devices: int, rings: int, rate: float, latency: float) -> float:
    """Reduce-scatter and all-gather around so many rings, each in both directions."""
    return 2 * (devices - 1) * (latency + nbytes / (2 * rings) / devices / rate)


def ring_broadcast(nbytes: float, devices: int, rings: int, rate: float, latency: float, chunk: float) -> float:
    """Along so many rings, each in both directions."""
    return chunked(nbytes / (2 * rings), devices - 1, rate, latency, chunk)


def best_chunk(taken: Callable[[float], float]) -> float:
    """Of all powers of two."""
    sizes = [float(1 << power) for power in range(SMALLEST.bit_length() - 1, LARGEST.bit_length())]
    return min(sizes, key=taken)


def adapting(start: float = SMALLEST, largest: float = LARGEST) -> Generator[float, float, None]:
    """Multiplicative increase and additive decrease: yields the chunk to try next, and is sent the time that it took.
    Twice as large while that is faster, then smaller by a tenth of the last while that is faster."""
    chunk, time = start, (yield start)
    while 2 * chunk <= largest and (larger := (yield 2 * chunk)) < time:
        chunk, time = 2 * chunk, larger
    step = chunk / 10
    while chunk - step >= start and (smaller := (yield chunk - step)) < time:
        chunk, time = chunk - step, smaller


def next_of(search: Generator[float, float, None], taken: float) -> float | None:
    """The chunk to try next; None where the search has ended."""
    try:
        return search.send(taken)
    except StopIteration:
        return None


def adapted_chunk(taken: Callable[[float], float], start: float = SMALLEST) -> float:
    """The fastest chunk of such a search where a chunk takes so long."""
    search, tried = adapting(start), dict[float, float]()
    following: float | None = next(search)
    while following is not None:
        tried[following] = taken(following)
        following = next_of(search, tried[following])
    return min(tried, key=lambda chunk: tried[chunk])


def slow_share(nbytes: float, slow: float, fast: float, switch_s: float = 0.0) -> float:
    """Bytes for the slower of two channels with separate trees, so that both end together: PCI Express beside NVLinks,
    where switching to it takes `switch_s`. None where that takes longer than all over the faster one."""
    share = nbytes * slow / (slow + fast) - switch_s * slow * fast / (slow + fast)
    return max(0.0, share)


def both_channels(nbytes: float, slow_nbytes: float, slow: float, fast: float, switch_s: float = 0.0) -> float:
    """Time of a split."""
    over_slow = switch_s + slow_nbytes / slow if slow_nbytes else 0.0
    return max(over_slow, (nbytes - slow_nbytes) / fast)


def one_hop_all_reduce(nbytes: float, devices: int, rate: float, latency: float) -> float:
    """Behind a switch each device is the root of a tree of one hop for its part: all send it theirs, it sends the sum
    back. `rate`: of a device's links together."""
    return 2 * (latency + nbytes * (devices - 1) / devices / rate)


def double_tree_all_reduce(nbytes: float, devices: int, rate: float, latency: float) -> float:
    """Two binary trees with half of the data each, up and down (Sanders, Speck, Traeff 2009)."""
    return 2 * log2(devices) * latency + 2 * nbytes / rate


def three_phases(nbytes: float, local: Sequence[float], network: float) -> float:
    """An all-reduce over servers: reduced in each over its trees (`local`: their rates), exchanged between the servers'
    roots of each part, and broadcast in each. With one root a part, a server sends and receives all of the data."""
    inside = max(nbytes / rate for rate in local)
    between = 2 * (len(local) - 1) / len(local) * nbytes / network
    return 2 * inside + between


def flat_ring(nbytes: float, devices: int, slowest: float) -> float:
    """One ring through all devices of all servers, at the rate of its slowest link."""
    return 2 * (devices - 1) / devices * nbytes / slowest
