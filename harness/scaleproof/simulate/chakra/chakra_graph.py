"""Chakra traces as graphs of rank programs, and graphs as traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.rank_programs.graph.graph_check import check
from scaleproof.rank_programs.graph.rank_graph import Builder, Kind, RankGraph
from scaleproof.simulate.chakra.chakra_files import Collective, NodeType
from scaleproof.simulate.chakra.chakra_trace import OPERATIONS, Node, Trace, in_order
from scaleproof.simulate.chakra.matched_collectives import Matching
from scaleproof.spec.errors import SpecError
from scaleproof.transports.mailbox import ANY

OF_OPERATION = {operation: collective for collective, operation in reversed(OPERATIONS.items())}


def graph_of(trace: Trace, algorithm: str, name: str = "trace") -> RankGraph:
    """The nodes of a trace. Each rank's computing is in the order of the file as far as its waits allow. Raises
    SpecError, one line that begins with `name`, for ranks that do not fit each other."""
    builder = Builder(len(trace.ranks))
    try:
        matching = Matching(trace, algorithm)
    except SpecError as error:
        raise SpecError(f"{name}: {error}") from None
    collectives: dict[int, int] = {}
    for rank, nodes in enumerate(trace.ranks):
        numbers, computed = dict[int, int](), list[int]()
        for node in in_order(nodes):
            after = list(dict.fromkeys(numbers[other] for other in node.after))
            if node.type is NodeType.COMM_COLL:
                shared = matching.of[rank, node.id]
                if id(shared) not in collectives:
                    collectives[id(shared)] = builder.collective(
                        shared.operation, shared.nbytes, tuple(shared.nodes), algorithm
                    )
                numbers[node.id] = builder.join(rank, collectives[id(shared)], after)
            elif node.computes:
                after = list(dict.fromkeys([*after, *computed]))
                computed = [numbers.setdefault(node.id, builder.compute(rank, node.seconds, after))]
            else:
                add = builder.send if node.type is NodeType.COMM_SEND else builder.receive
                numbers[node.id] = add(rank, node.peer, node.nbytes, after, tag=node.tag)
    graph = builder.graph()
    check(graph, name)
    return graph


def trace_of(graph: RankGraph, name: str) -> Trace:
    """A graph as a trace. Raises SpecError, one line that begins with `name`, for what Chakra cannot express: other
    lanes than 0, waits for a start or for another rank, one-sided writes, receives from any rank."""
    _refuse(graph, name)
    groups = _groups(graph)
    before: list[list[int]] = [[] for _ in range(len(graph))]
    for early, late in zip(graph.before.tolist(), graph.after.tolist(), strict=True):
        before[late].append(early)
    ranks: list[list[Node]] = [[] for _ in range(graph.ranks)]
    for node in range(len(graph)):
        ranks[graph.rank[node]].append(_node(graph, node, before[node], groups))
    named = {group: members for members, group in groups.items()}
    return Trace(tuple(map(tuple, ranks)), named, {"generator": "scaleproof"})


def _refuse(graph: RankGraph, name: str) -> None:
    wrong = {
        "one-sided writes": graph.kind == Kind.PUT,
        "lanes beside the first": (graph.kind == Kind.COMPUTE) & (graph.lane > 0),
        "receives from any rank": (graph.kind == Kind.RECEIVE) & (graph.peer == ANY),
        "waits for the start of another node": np.isin(np.arange(len(graph)), graph.behind),
        "waits between ranks": np.isin(
            np.arange(len(graph)), graph.after[graph.rank[graph.after] != graph.rank[graph.before]]
        ),
    }
    for what, nodes in wrong.items():
        if nodes.any():
            raise SpecError(f"{name}: {graph.name(int(np.flatnonzero(nodes)[0]))}: a Chakra trace has no {what}")


def _groups(graph: RankGraph) -> dict[tuple[int, ...], str]:
    """Names of groups of ranks that have collectives of their own."""
    every = tuple(range(graph.ranks))
    parts = sorted({call.members for call in graph.collectives} - {every})
    return {members: str(number) for number, members in enumerate(parts, 1)}


def _node(graph: RankGraph, node: int, after: Sequence[int], groups: dict[tuple[int, ...], str]) -> Node:
    kind, amount, peer, tag = Kind(graph.kind[node]), graph.amount[node], int(graph.peer[node]), int(graph.tag[node])
    if kind is Kind.COMPUTE:
        return Node(node, "compute", NodeType.COMP, tuple(after), seconds=float(amount))
    if kind is Kind.COLLECTIVE:
        call = graph.collectives[peer]
        share = len(call.members) if call.operation == "all_gather" else 1
        return Node(
            node,
            call.operation,
            NodeType.COMM_COLL,
            tuple(after),
            nbytes=round(amount / share),
            operation=Collective(OF_OPERATION[call.operation]),
            group=groups.get(call.members),
        )
    way, words = (NodeType.COMM_SEND, "send to") if kind is Kind.SEND else (NodeType.COMM_RECV, "receive from")
    return Node(node, f"{words} rank {peer}", way, tuple(after), nbytes=round(amount), peer=peer, tag=tag)
