"""A rank program as a graph: nodes of all ranks in arrays, and edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from scaleproof.spec.case import Operation
from scaleproof.transports.mailbox import ANY

NONE = -1
"""No lane."""


class Kind(IntEnum):
    """What a node does: the rank computes; sends a message; receives one; writes to a peer that takes no part; takes
    part in a collective."""

    COMPUTE = 0
    SEND = 1
    RECEIVE = 2
    PUT = 3
    COLLECTIVE = 4


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of some ranks, each of which has one node of it."""

    operation: Operation
    nbytes: float
    """Of the whole array."""
    members: tuple[int, ...]
    algorithm: str


@dataclass(frozen=True)
class RankGraph:
    """Nodes in the order in which each rank issues them. Per node: `rank`; `kind`; `amount`: seconds of a computation,
    else bytes; `peer`: the other rank (of a receive also ANY; of a collective its number); `tag`; `lane`: a number of
    the rank's own, one node of a lane at a time (NONE: no lane). Node `after[i]` starts when `before[i]` has ended, and
    `behind[i]` when `ahead[i]` has started."""

    ranks: int
    rank: np.ndarray
    kind: np.ndarray
    amount: np.ndarray
    peer: np.ndarray
    tag: np.ndarray
    lane: np.ndarray
    before: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    after: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    ahead: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    behind: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    collectives: tuple[Collective, ...] = ()

    def __len__(self) -> int:
        return len(self.rank)

    def of_kind(self, kind: Kind) -> np.ndarray:
        """Numbers of the nodes of a kind."""
        return np.flatnonzero(self.kind == kind)

    def name(self, node: int) -> str:
        """A node in a message to the user, as `rank 3, node 17 (send of 1024 B to rank 4, tag 2)`."""
        kind, amount, peer = Kind(self.kind[node]), self.amount[node], self.peer[node]
        other = "any rank" if peer == ANY else f"rank {peer}"
        call = self.collectives[peer].operation if kind is Kind.COLLECTIVE else ""
        what = {
            Kind.COMPUTE: f"computes for {amount:.4g} s",
            Kind.SEND: f"sends {amount:g} B to {other}, tag {self.tag[node]}",
            Kind.RECEIVE: f"receives from {other}, tag {self.tag[node]}",
            Kind.PUT: f"writes {amount:g} B to {other}",
            Kind.COLLECTIVE: f"{call} of {amount:g} B, collective {peer}",
        }[kind]
        return f"rank {self.rank[node]}, node {self.place(node)} ({what})"

    def place(self, node: int) -> int:
        """The number of a node among those of its rank, from 0."""
        return int(np.count_nonzero(self.rank[:node] == self.rank[node]))


class Builder:
    """Builds a graph node by node. Each method returns the number of the new node; `after`: nodes that it waits for."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._nodes: list[tuple[int, int, float, int, int, int]] = []
        self._edges: list[tuple[int, int]] = []
        self._starts: list[tuple[int, int]] = []
        self._collectives: list[Collective] = []

    def compute(self, rank: int, seconds: float, after: Sequence[int] = (), lane: int = 0) -> int:
        """The rank computes, on one of its lanes."""
        return self.add(rank, Kind.COMPUTE, seconds, rank, 0, lane, after)

    def send(
        self, rank: int, peer: int, nbytes: float, after: Sequence[int] = (), tag: int = 0, lane: int = NONE
    ) -> int:
        """The rank sends a message."""
        return self.add(rank, Kind.SEND, nbytes, peer, tag, lane, after)

    def receive(
        self, rank: int, peer: int, nbytes: float, after: Sequence[int] = (), tag: int = 0, lane: int = NONE
    ) -> int:
        """The rank receives a message from `peer` or, with ANY, from any rank."""
        return self.add(rank, Kind.RECEIVE, nbytes, peer, tag, lane, after)

    def put(self, rank: int, peer: int, nbytes: float, after: Sequence[int] = (), lane: int = NONE) -> int:
        """The rank writes to the memory of a peer. Nodes of the peer that wait for it poll a flag."""
        return self.add(rank, Kind.PUT, nbytes, peer, 0, lane, after)

    def collective(self, operation: Operation, nbytes: float, members: Sequence[int], algorithm: str = "ring") -> int:
        """The number of a collective that its members `join`. `nbytes`: of the whole array."""
        self._collectives.append(Collective(operation, nbytes, tuple(members), algorithm))
        return len(self._collectives) - 1

    def join(self, rank: int, collective: int, after: Sequence[int] = (), lane: int = NONE) -> int:
        """The rank takes part in a collective. Messages of different lanes go beside each other."""
        return self.add(rank, Kind.COLLECTIVE, self._collectives[collective].nbytes, collective, 0, lane, after)

    def wait(self, node: int, earlier: int) -> None:
        """`node` starts when `earlier` has ended."""
        self._edges.append((earlier, node))

    def wait_for_start(self, node: int, earlier: int) -> None:
        """`node` starts when `earlier` has started."""
        self._starts.append((earlier, node))

    def graph(self) -> RankGraph:
        """The graph of all nodes so far."""
        columns = list(zip(*self._nodes, strict=True)) or [()] * 6
        kinds = (np.int64, np.int64, np.float64, np.int64, np.int64, np.int64)
        arrays = [np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        rank, node_kind, amount, peer, tag, lane = arrays
        (before, after), (ahead, behind) = _columns(self._edges), _columns(self._starts)
        edges = before, after, ahead, behind
        return RankGraph(self.ranks, rank, node_kind, amount, peer, tag, lane, *edges, tuple(self._collectives))

    def add(
        self, rank: int, kind: Kind, amount: float, peer: int, tag: int, lane: int, after: Sequence[int] = ()
    ) -> int:
        """A node of any kind."""
        node = len(self._nodes)
        self._nodes.append((rank, int(kind), amount, peer, tag, lane))
        self._edges += [(earlier, node) for earlier in after]
        return node


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()
