"""A graph with the messages of its collectives in their place."""

from __future__ import annotations

from dataclasses import dataclass, field

from scaleproof.collectives.message_engine import rounds
from scaleproof.collectives.message_schedule import Action
from scaleproof.rank_programs.graph.rank_graph import Builder, Kind, RankGraph


def expanded(graph: RankGraph, gamma: float = 0.0, call_s: float = 0.0) -> RankGraph:
    """Each rank enters a round of a collective when its messages of the round before are done, and what it has reduced
    then, at `gamma` s a byte; the first after `call_s`. Tags of rounds are above all others."""
    if not len(graph.of_kind(Kind.COLLECTIVE)):
        return graph
    first_tag, builder, places = int(graph.tag.max(initial=0)) + 1, Builder(graph.ranks), _Places()
    for node in range(len(graph)):
        rank, kind, peer = int(graph.rank[node]), Kind(graph.kind[node]), int(graph.peer[node])
        if kind is Kind.COLLECTIVE:
            begins = builder.compute(rank, call_s, lane=int(graph.lane[node]))
            places.first.append(begins)
            places.last.append(_rounds(builder, graph, node, begins, first_tag, gamma))
            continue
        amount, tag, lane = float(graph.amount[node]), int(graph.tag[node]), int(graph.lane[node])
        places.both(builder.add(rank, kind, amount, peer, tag, lane))
    for before, after in zip(graph.before.tolist(), graph.after.tolist(), strict=True):
        builder.wait(places.first[after], places.last[before])
    for ahead, behind in zip(graph.ahead.tolist(), graph.behind.tolist(), strict=True):
        builder.wait_for_start(places.first[behind], places.first[ahead])
    return builder.graph()


@dataclass(slots=True)
class _Places:
    """The first and the last node that stand for each node of the graph."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)

    def both(self, node: int) -> None:
        self.first.append(node)
        self.last.append(node)


def _rounds(builder: Builder, graph: RankGraph, node: int, begins: int, first_tag: int, gamma: float) -> int:
    """The messages of the rank of a node; returns the node that ends with the last of them."""
    rank, number, lane = int(graph.rank[node]), int(graph.peer[node]), int(graph.lane[node])
    call, waits = graph.collectives[number], [begins]
    member = call.members.index(rank)
    plan = rounds(call.algorithm, call.operation, len(call.members), round(call.nbytes), 0, member)
    for messages in plan:
        following, reduced = list[int](), 0
        for message in messages:
            tag, nbytes = first_tag + number + message.round * len(graph.collectives), message.stop - message.start
            sends = message.source == member
            peer = call.members[message.destination if sends else message.source]
            add = builder.send if sends else builder.receive
            following.append(add(rank, peer, nbytes, waits, tag=tag))
            reduced += 0 if sends or message.action is Action.COPY else nbytes
        waits = [builder.compute(rank, gamma * reduced, following, lane)] if gamma and reduced else following
    return builder.compute(rank, 0.0, waits, lane)
