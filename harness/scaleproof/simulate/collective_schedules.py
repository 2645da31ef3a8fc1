"""Collectives as rounds of messages, in NumPy arrays: the schedules of our own collectives, with parts of equal
size."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from scaleproof.collectives.message_schedule import Action, messages
from scaleproof.spec import registry
from scaleproof.spec.case import Operation

PROBE = 1 << 10
"""Elements per rank of the schedule that is compiled. All parts count as equal; in an array that does not divide
evenly they differ by one element."""


@dataclass(frozen=True, eq=False)
class Round:
    """Messages sent at the same time. Each has a source rank, a destination rank, a share of the array, and whether the
    receiver reduces it."""

    source: np.ndarray
    destination: np.ndarray
    share: np.ndarray
    reduces: np.ndarray

    @cached_property
    def exclusive(self) -> bool:
        """No rank sends or receives two messages."""
        return len(np.unique(self.source)) == len(self.source) and len(np.unique(self.destination)) == len(
            self.destination
        )

    def symmetric(self, ranks: int) -> bool:
        """Every rank sends one message and receives one, all of the same size, and all or none are reduced."""
        return (
            self.exclusive
            and len(self.source) == ranks
            and bool((self.share == self.share[0]).all() and (self.reduces == self.reduces[0]).all())
        )


@dataclass(frozen=True, eq=False)
class Pattern:
    """A collective over `ranks`: its rounds in order, each with the number of times it is repeated."""

    ranks: int
    rounds: tuple[tuple[Round, int], ...]

    @property
    def exclusive(self) -> bool:
        """No rank ever sends or receives two messages in a round."""
        return all(round_.exclusive for round_, _ in self.rounds)

    @cached_property
    def receivers(self) -> np.ndarray | None:
        """The rank that each rank sends all its messages to (-1: it sends none); None where one has several."""
        found = np.full(self.ranks, -1)
        for round_, _ in self.rounds:
            before = found[round_.source]
            if not round_.exclusive or ((before >= 0) & (before != round_.destination)).any():
                return None
            found[round_.source] = round_.destination
        return found

    @property
    def sent(self) -> float:
        """Bytes that all ranks send for an array of one byte."""
        return float(sum(round_.share.sum() * times for round_, times in self.rounds))


@lru_cache(maxsize=256)
def pattern_of(algorithm: str, operation: Operation, ranks: int) -> Pattern:
    """Compiled from the generator that our collectives execute. Rounds that are alike are built directly: a ring has
    2 (p - 1) p messages."""
    name, _, nodes = algorithm.partition("/")
    if registry.get("collective", name).rounds_are_alike and operation != "broadcast" and ranks > 1:
        return _ring(operation, ranks)
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
    """The same collective in several groups of ranks at the same time; every group has `pattern.ranks` members."""
    members = np.array(groups)
    if members.shape[1:] != (pattern.ranks,):
        raise ValueError(f"every group must have {pattern.ranks} ranks")
    rounds = [
        (
            Round(
                members[:, round_.source].ravel(),
                members[:, round_.destination].ravel(),
                np.tile(round_.share, len(groups)),
                np.tile(round_.reduces, len(groups)),
            ),
            times,
        )
        for round_, times in pattern.rounds
    ]
    return Pattern(ranks, tuple(rounds))


@lru_cache(maxsize=64)
def hierarchical(algorithm: str, ranks: int, per_node: int) -> Pattern:
    """An all-reduce in three parts: reduce-scatter inside each node, all-reduce of that share by `algorithm` between
    ranks with the same local rank, all-gather inside each node. Raises ValueError when the ranks do not fill nodes of
    `per_node`."""
    if ranks % per_node:
        raise ValueError(f"{ranks} ranks do not fill nodes of {per_node}")
    if per_node == 1 or per_node == ranks:
        return pattern_of(algorithm, "all_reduce", ranks)
    nodes = tuple(tuple(range(first, first + per_node)) for first in range(0, ranks, per_node))
    peers = tuple(tuple(range(local_rank, ranks, per_node)) for local_rank in range(per_node))
    inside = [
        grouped(pattern_of("ring", operation, per_node), nodes, ranks).rounds
        for operation in ("reduce_scatter", "all_gather")
    ]  # type: ignore[arg-type]
    between = grouped(pattern_of(algorithm, "all_reduce", ranks // per_node), peers, ranks).rounds
    scaled = [
        (Round(round_.source, round_.destination, round_.share / per_node, round_.reduces), times)
        for round_, times in between
    ]
    return Pattern(ranks, (*inside[0], *scaled, *inside[1]))


def _ring(operation: Operation, ranks: int) -> Pattern:
    """In every round each rank sends 1/p of the array to the next rank. The first p - 1 rounds of an all-reduce
    reduce."""
    source = np.arange(ranks)
    reducing, copying = (
        (Round(source, (source + 1) % ranks, np.full(ranks, 1 / ranks), np.full(ranks, reduces)), ranks - 1)
        for reduces in (True, False)
    )
    return Pattern(
        ranks, {"all_reduce": (reducing, copying), "reduce_scatter": (reducing,), "all_gather": (copying,)}[operation]
    )


def _round(moves: list[tuple[int, int, float, bool]]) -> Round:
    source, destination, share, reduces = zip(*moves, strict=True)
    return Round(np.array(source), np.array(destination), np.array(share), np.array(reduces))
