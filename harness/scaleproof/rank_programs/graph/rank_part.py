"""One rank's part of a graph: its nodes, what each waits for, and which are ready."""

from __future__ import annotations

from collections import deque

import numpy as np

from scaleproof.rank_programs.graph.rank_graph import Kind, RankGraph
from scaleproof.spec.errors import SpecError


class RankPart:
    """The nodes of a rank, and writes of peers that nodes of it wait for. Raises SpecError for a node that waits for
    anything else of another rank. `flagged`: writes of this rank that nodes of a peer wait for."""

    def __init__(self, graph: RankGraph, rank: int, name: str) -> None:
        self._graph, self._rank = graph, rank
        own = graph.rank == rank
        polled = np.unique(graph.before[own[graph.after] & ~own[graph.before]]).tolist()
        for node in [*polled, *graph.ahead[own[graph.behind] & ~own[graph.ahead]].tolist()]:
            if graph.kind[node] != Kind.PUT or graph.peer[node] != rank or node not in polled:
                raise SpecError(
                    f"{name}: a node of rank {rank} waits for {graph.name(node)}: in processes a rank sees only what "
                    "others send and write to it"
                )
        self.nodes = [*np.flatnonzero(own).tolist(), *polled]
        self.flagged = set(np.unique(graph.before[own[graph.before] & ~own[graph.after]]).tolist())
        self.after_end, self.after_start = dict[int, list[int]](), dict[int, list[int]]()
        self.missing = dict.fromkeys(self.nodes, 0)
        for table, early, late in (
            (self.after_end, graph.before, graph.after),
            (self.after_start, graph.ahead, graph.behind),
        ):
            for before, after in zip(early[own[late]].tolist(), late[own[late]].tolist(), strict=True):
                table.setdefault(before, []).append(after)
                self.missing[after] += 1

    @property
    def count(self) -> int:
        """Nodes that are carried out."""
        return len(self.nodes)

    def begin(self) -> Progress:
        """Nothing has been done."""
        return Progress(self)

    def lane_of(self, node: int) -> tuple[object, ...]:
        """Nodes with the same go one after the other, in the order in which they start."""
        graph = self._graph
        kind, peer = Kind(graph.kind[node]), int(graph.peer[node])
        if graph.rank[node] != self._rank:
            return "flag", node
        if kind is Kind.COMPUTE:
            return ("computes", int(graph.lane[node])) if graph.lane[node] >= 0 else ("node", node)
        return ("from", peer, int(graph.tag[node])) if kind is Kind.RECEIVE else ("to", peer)


class Progress:
    """What of a rank's part has been done. `ready`: nodes that may start now."""

    def __init__(self, part: RankPart) -> None:
        self._part, self._missing = part, dict(part.missing)
        self._busy = dict[object, deque[int]]()
        self.ready = deque[int]()
        for node in part.nodes:
            if not self._missing[node]:
                self._may_start(node)

    def started(self, node: int) -> None:
        """Nodes that wait for its start go on."""
        self._one_less(self._part.after_start.get(node, ()))

    def ended(self, node: int) -> None:
        """The next on its lane, and nodes that wait for its end, go on."""
        key = self._part.lane_of(node)
        if key in self._busy:
            waiting = self._busy[key]
            if waiting:
                self.ready.append(waiting.popleft())
            else:
                del self._busy[key]
        self._one_less(self._part.after_end.get(node, ()))

    def _one_less(self, nodes: list[int] | tuple[()]) -> None:
        for node in nodes:
            self._missing[node] -= 1
            if not self._missing[node]:
                self._may_start(node)

    def _may_start(self, node: int) -> None:
        key = self._part.lane_of(node)
        if key[0] != "computes":
            self.ready.append(node)
        elif key in self._busy:
            self._busy[key].append(node)
        else:
            self._busy[key] = deque()
            self.ready.append(node)
