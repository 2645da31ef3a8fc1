"""Collectives as rounds of messages, in arrays: the schedules that the engine executes, with parts of equal size."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from scaleproof.collectives.message_schedule import Action, messages
from scaleproof.spec.case import Operation

PROBE = 1 << 10
"""Elements per rank of the schedule that is compiled. Parts are taken as equal: an array that does not divide has parts
that differ by one element."""


@dataclass(frozen=True, eq=False)
class Round:
    """Messages that go at once: who sends to whom, which share of the array, and whether the receiver reduces it."""

    source: np.ndarray
    destination: np.ndarray
    share: np.ndarray
    reduces: np.ndarray

    @cached_property
    def exclusive(self) -> bool:
        """No rank sends two messages, none receives two."""
        return len(np.unique(self.source)) == len(self.source) and len(np.unique(self.destination)) == len(
            self.destination
        )

    def symmetric(self, ranks: int) -> bool:
        """Every rank sends one message and receives one, all of one size and alike reduced."""
        return (
            self.exclusive
            and len(self.source) == ranks
            and bool((self.share == self.share[0]).all() and (self.reduces == self.reduces[0]).all())
        )


@dataclass(frozen=True, eq=False)
class Pattern:
    """A collective over `ranks`: rounds in order, each with how many times in a row it happens."""

    ranks: int
    rounds: tuple[tuple[Round, int], ...]

    @property
    def exclusive(self) -> bool:
        """No rank ever sends or receives two messages in a round."""
        return all(one.exclusive for one, _ in self.rounds)

    @property
    def sent(self) -> float:
        """Bytes that all ranks send for an array of one byte."""
        return float(sum(one.share.sum() * times for one, times in self.rounds))


@lru_cache(maxsize=256)
def pattern_of(algorithm: str, operation: Operation, ranks: int) -> Pattern:
    """Compiled from the generator that our engine executes; rings from their rule, since they have 2 (p - 1) p
    messages."""
    if algorithm == "ring" and operation != "broadcast" and ranks > 1:
        return _ring(operation, ranks)
    name, _, nodes = algorithm.partition("/")
    if nodes and operation == "all_reduce":
        return hierarchical("ring", ranks, ranks // int(nodes or 1))
    count = PROBE * ranks
    rounds = defaultdict(list)
    for message in messages(algorithm, operation, ranks, count):
        rounds[message.round].append(
            (
                message.source,
                message.destination,
                (message.stop - message.start) / count,
                message.action is Action.REDUCE,
            )
        )
    return Pattern(ranks, tuple((_round(rounds[number]), 1) for number in sorted(rounds)))


def grouped(pattern: Pattern, groups: tuple[tuple[int, ...], ...], ranks: int) -> Pattern:
    """The same collective in several groups of ranks at once, each of as many as the pattern has."""
    places = np.array(groups)
    if places.shape[1:] != (pattern.ranks,):
        raise ValueError(f"groups of {pattern.ranks} ranks are asked for")
    rounds = [
        (
            Round(
                places[:, one.source].ravel(),
                places[:, one.destination].ravel(),
                np.tile(one.share, len(groups)),
                np.tile(one.reduces, len(groups)),
            ),
            times,
        )
        for one, times in pattern.rounds
    ]
    return Pattern(ranks, tuple(rounds))


@lru_cache(maxsize=64)
def hierarchical(algorithm: str, ranks: int, per_node: int) -> Pattern:
    """An all-reduce in three parts: reduce-scatter inside each node, `algorithm` between equal places of all nodes on
    that share, all-gather inside.

    ValueError when the ranks do not fill nodes of `per_node`."""
    if ranks % per_node:
        raise ValueError(f"{ranks} ranks do not fill nodes of {per_node}")
    if per_node == 1 or per_node == ranks:
        return pattern_of(algorithm, "all_reduce", ranks)
    nodes = tuple(tuple(range(first, first + per_node)) for first in range(0, ranks, per_node))
    places = tuple(tuple(range(place, ranks, per_node)) for place in range(per_node))
    inside = [
        grouped(pattern_of("ring", operation, per_node), nodes, ranks).rounds
        for operation in ("reduce_scatter", "all_gather")
    ]  # type: ignore[arg-type]
    between = grouped(pattern_of(algorithm, "all_reduce", ranks // per_node), places, ranks).rounds
    scaled = [(Round(one.source, one.destination, one.share / per_node, one.reduces), times) for one, times in between]
    return Pattern(ranks, (*inside[0], *scaled, *inside[1]))


def _ring(operation: Operation, ranks: int) -> Pattern:
    """Every round each rank sends 1/p to the next one; the first p - 1 rounds of an all-reduce reduce."""
    source = np.arange(ranks)
    reducing, copying = (
        (Round(source, (source + 1) % ranks, np.full(ranks, 1 / ranks), np.full(ranks, reduces)), ranks - 1)
        for reduces in (True, False)
    )
    return Pattern(
        ranks, {"all_reduce": (reducing, copying), "reduce_scatter": (reducing,), "all_gather": (copying,)}[operation]
    )


def _round(found: list[tuple[int, int, float, bool]]) -> Round:
    source, destination, share, reduces = zip(*found, strict=True)
    return Round(np.array(source), np.array(destination), np.array(share), np.array(reduces))
