"""Whether the replicas that are stated for a graph are equal, and which nodes then stand for which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleproof.rank_programs.graph.rank_graph import Kind, RankGraph
from scaleproof.rank_programs.graph.replicas import Replicas
from scaleproof.spec.errors import SpecError
from scaleproof.transports.mailbox import ANY

MOVING = (Kind.SEND, Kind.RECEIVE, Kind.PUT)


@dataclass(frozen=True, eq=False)
class Places:
    """Nodes by rank and place among those of their rank. `order`: all nodes, rank by rank; `first`: where the nodes of
    each rank begin in it; `place`: of each node."""

    order: np.ndarray
    first: np.ndarray
    place: np.ndarray

    def at(self, ranks: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The nodes of ranks at places."""
        return self.order[self.first[ranks] + places]


def places_of(graph: RankGraph) -> Places:
    """The places of all nodes."""
    order = np.argsort(graph.rank, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(graph.rank, minlength=graph.ranks))])
    place = np.empty(len(graph), np.int64)
    place[order] = np.arange(len(graph)) - first[graph.rank[order]]
    return Places(order, first, place)


def check_equal(graph: RankGraph, replicas: Replicas, places: Places, name: str) -> list[np.ndarray]:
    """Raises SpecError, one line with rank and operation, unless a step along each side of the torus changes nothing
    but the names of ranks. Returns the node that each node becomes by each step. Collectives are compared by what they
    are and by whom; their messages are not looked at."""
    if replicas.ranks.size != graph.ranks:
        raise SpecError(f"{name}: the graph has {graph.ranks} ranks, its replicas have {replicas.ranks.size}")
    taken = np.flatnonzero((graph.kind == Kind.RECEIVE) & (graph.peer == ANY))
    if len(taken):
        raise _unequal(name, f"{graph.name(taken[0])}: which message it takes may differ")
    return [_image(graph, moved, places, name) for moved in replicas.steps()]


def _image(graph: RankGraph, moved: np.ndarray, places: Places, name: str) -> np.ndarray:
    counts = np.diff(places.first)
    wrong = np.flatnonzero(counts != counts[moved])
    if len(wrong):
        rank, other = int(wrong[0]), int(moved[wrong[0]])
        raise _unequal(name, f"rank {rank} has {counts[rank]} nodes, rank {other} has {counts[other]}")
    image = places.at(moved[graph.rank], places.place)
    differs = graph.kind != graph.kind[image]
    for values in (graph.amount, graph.tag, graph.lane):
        differs |= values != values[image]
    moves = np.isin(graph.kind, MOVING)
    peers = np.where(moves, graph.peer, 0)
    differs |= moves & (moved[peers] != graph.peer[image])
    wrong = np.flatnonzero(differs)
    if len(wrong):
        raise _unequal(name, f"{graph.name(wrong[0])}, but {graph.name(image[wrong[0]])}")
    _check_collectives(graph, moved, image, name)
    for early, late in ((graph.before, graph.after), (graph.ahead, graph.behind)):
        _check_waits(graph, early, late, image, name)
    return image


def _check_collectives(graph: RankGraph, moved: np.ndarray, image: np.ndarray, name: str) -> None:
    nodes = graph.of_kind(Kind.COLLECTIVE)
    for one, other in np.unique(np.stack([graph.peer[nodes], graph.peer[image[nodes]]], axis=1), axis=0).tolist():
        call, copy = graph.collectives[one], graph.collectives[other]
        same = (call.operation, call.nbytes, call.algorithm) == (copy.operation, copy.nbytes, copy.algorithm)
        if not same or set(moved[list(call.members)].tolist()) != set(copy.members):
            raise _unequal(name, f"collective {one} ({call.operation} of {call.nbytes:g} B) is not collective {other}")


def _check_waits(graph: RankGraph, early: np.ndarray, late: np.ndarray, image: np.ndarray, name: str) -> None:
    own, moved = early * len(graph) + late, image[early] * len(graph) + image[late]
    if np.array_equal(np.sort(own), np.sort(moved)):
        return
    wrong = np.flatnonzero(~np.isin(moved, own))
    here = int(wrong[0]) if len(wrong) else 0
    node, before, other = (graph.name(int(each)) for each in (late[here], early[here], image[late[here]]))
    raise _unequal(name, f"{node} waits for {before}; {other} waits for no such node, or not as often")


def _unequal(name: str, why: str) -> SpecError:
    return SpecError(f"{name}: its replicas are not equal: {why}")
