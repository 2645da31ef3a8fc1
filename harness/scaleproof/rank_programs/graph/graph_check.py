"""What is wrong with a graph before it runs, and what it waits for where it stops."""

from __future__ import annotations

from collections import Counter

import networkx
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from scaleproof.rank_programs.graph.rank_graph import Kind, RankGraph
from scaleproof.spec.errors import SpecError
from scaleproof.transports.mailbox import ANY

SHOWN = 6
"""Most nodes of a circle that a message names."""


def check(graph: RankGraph, name: str) -> None:
    """Raises SpecError, one line with rank and operation, for a graph that cannot run. `name`: the file, or what made
    it."""
    _check_nodes(graph, name)
    _check_messages(graph, name)
    _check_collectives(graph, name)
    _check_order(graph, name)


def _check_nodes(graph: RankGraph, name: str) -> None:
    wrong = np.flatnonzero((graph.rank < 0) | (graph.rank >= graph.ranks))
    if len(wrong):
        raise SpecError(f"{name}: a node of rank {graph.rank[wrong[0]]}; there are {graph.ranks} ranks, from 0")
    takes_any = (graph.kind == Kind.RECEIVE) & (graph.peer == ANY)
    joins = graph.kind == Kind.COLLECTIVE
    wrong = np.flatnonzero(((graph.peer < 0) | (graph.peer >= graph.ranks)) & ~takes_any & ~joins)
    if len(wrong):
        raise SpecError(f"{name}: {graph.name(wrong[0])}: there are {graph.ranks} ranks, from 0")
    wrong = np.flatnonzero(~np.isfinite(graph.amount) | (graph.amount < 0))
    if len(wrong):
        raise SpecError(f"{name}: {graph.name(wrong[0])}: {graph.amount[wrong[0]]:g} is no amount")


def _check_messages(graph: RankGraph, name: str) -> None:
    """Every message has a receive, and every receive a message."""
    sends, receives = graph.of_kind(Kind.SEND), graph.of_kind(Kind.RECEIVE)
    sent_to, received = (
        np.stack(columns)[:, np.lexsort(columns)]
        for columns in (
            (graph.peer[sends], graph.tag[sends], graph.rank[sends]),
            (graph.rank[receives], graph.tag[receives], graph.peer[receives]),
        )
    )
    if np.array_equal(sent_to, received):
        return
    sent: Counter[tuple[int, int, int]] = Counter()
    for node in sends.tolist():
        sent[int(graph.peer[node]), int(graph.tag[node]), int(graph.rank[node])] += 1
    wanted: Counter[tuple[int, int]] = Counter()
    for node in receives.tolist():
        box, source = (int(graph.rank[node]), int(graph.tag[node])), int(graph.peer[node])
        if source == ANY:
            wanted[box] += 1
            continue
        sent[*box, source] -= 1
        if sent[*box, source] < 0:
            raise SpecError(f"{name}: {graph.name(node)}: rank {source} sends no such message")
    left: Counter[tuple[int, int]] = Counter()
    for (rank, tag, _), count in sent.items():
        left[rank, tag] += count
    for box in sorted(left.keys() | wanted.keys()):
        if left[box] != wanted[box]:
            rank, tag = box
            raise SpecError(
                f"{name}: rank {rank} is sent {left[box]} messages with tag {tag} that no receive of its source takes, "
                f"and receives {wanted[box]} from any rank"
            )


def _check_collectives(graph: RankGraph, name: str) -> None:
    """Every member of a collective takes part once, and nobody else does."""
    joined: dict[int, Counter[int]] = {number: Counter() for number in range(len(graph.collectives))}
    for node in graph.of_kind(Kind.COLLECTIVE).tolist():
        joined[int(graph.peer[node])][int(graph.rank[node])] += 1
    for number, call in enumerate(graph.collectives):
        what = f"{call.operation} of {call.nbytes:g} B, collective {number}"
        wrong = next((rank for rank in sorted({*call.members, *joined[number]}) if joined[number][rank] != 1), None)
        if wrong is not None:
            raise SpecError(f"{name}: rank {wrong} takes part {joined[number][wrong]} times in {what}; others once")
        if outside := joined[number].keys() - set(call.members):
            raise SpecError(f"{name}: rank {min(outside)} takes part in {what}, to which it does not belong")


def _check_order(graph: RankGraph, name: str) -> None:
    """No node waits for itself."""
    early, late = np.concatenate([graph.before, graph.ahead]), np.concatenate([graph.after, graph.behind])
    if circle := _circle(len(graph), early, late):
        raise SpecError(f"{name}: nodes wait for each other in a circle: {_names(graph, circle)}")


def deadlock(graph: RankGraph, ended: np.ndarray, started: np.ndarray, name: str) -> SpecError:
    """The mistake of a graph that has stopped: the circle in which its nodes wait. `ended`, `started`: per node."""
    early, late = _waits(graph, ended, started)
    circle = _circle(len(graph), early, late)
    if circle:
        return SpecError(f"{name}: ranks wait for each other for ever: {_names(graph, circle)}")
    stuck = int(np.flatnonzero(~ended)[0])
    return SpecError(f"{name}: {graph.name(stuck)} never ends, nor do {np.count_nonzero(~ended) - 1} other nodes")


def _waits(graph: RankGraph, ended: np.ndarray, started: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges from what has not happened to what waits for it: along the graph, and between the ends of a message."""
    open_ends, open_starts = (
        ~ended[graph.before] & ~started[graph.after],
        ~started[graph.ahead] & ~started[graph.behind],
    )
    pairs = list(zip(graph.before[open_ends], graph.after[open_ends], strict=True))
    pairs += zip(graph.ahead[open_starts], graph.behind[open_starts], strict=True)
    sends = [node for node in graph.of_kind(Kind.SEND).tolist() if not ended[node]]
    for receive in graph.of_kind(Kind.RECEIVE).tolist():
        if ended[receive]:
            continue
        for send in sends:
            if (graph.peer[send], graph.tag[send]) == (graph.rank[receive], graph.tag[receive]) and graph.peer[
                receive
            ] in (ANY, graph.rank[send]):
                pairs += [(send, receive)] if started[receive] else []
                pairs += [(receive, send)] if started[send] else []
    pairs += _behind_on_lanes(graph, ended, started)
    pairs += _behind_members(graph, ended, started)
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def _behind_on_lanes(graph: RankGraph, ended: np.ndarray, started: np.ndarray) -> list[tuple[int, int]]:
    """A node that could start waits for the one that keeps its lane."""
    keeper = {
        (int(graph.rank[node]), int(graph.lane[node])): int(node)
        for node in np.flatnonzero(started & ~ended & (graph.lane >= 0))
    }
    waiting = np.flatnonzero(~started & (graph.lane >= 0)).tolist()
    return [
        (keeper[key], node) for node in waiting if (key := (int(graph.rank[node]), int(graph.lane[node]))) in keeper
    ]


def _behind_members(graph: RankGraph, ended: np.ndarray, started: np.ndarray) -> list[tuple[int, int]]:
    """A rank that is in a collective waits for members that are not."""
    nodes = graph.of_kind(Kind.COLLECTIVE)
    inside, outside = nodes[started[nodes] & ~ended[nodes]].tolist(), nodes[~started[nodes]].tolist()
    return [(late, node) for node in inside for late in outside if graph.peer[late] == graph.peer[node]]


def _circle(nodes: int, early: np.ndarray, late: np.ndarray) -> list[int]:
    """Nodes of one circle of edges, in their order; empty where there is none."""
    if not len(early):
        return []
    edges = coo_array((np.ones(len(early)), (early, late)), shape=(nodes, nodes))
    _, label = connected_components(edges, directed=True, connection="strong")
    itself = early == late
    inside = (np.bincount(label)[label[early]] > 1) & (label[early] == label[late]) | itself
    if not inside.any():
        return []
    chosen = label[early[inside][0]]
    members = inside & (label[early] == chosen)
    found = networkx.DiGraph(zip(early[members].tolist(), late[members].tolist(), strict=True))
    return [node for node, _ in networkx.find_cycle(found)]


def _names(graph: RankGraph, circle: list[int]) -> str:
    named = [graph.name(node) for node in circle[:SHOWN]]
    more = f", and {len(circle) - SHOWN} more" if len(circle) > SHOWN else ""
    return "; then ".join(named) + more
