"""Runs one of the equal replicas of a graph in the event engine, in place of all: each of its messages stands for those
that the others send at the same time, and each link for those that these use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from scaleproof.rank_programs.graph.equal_replicas import MOVING, Places, check_equal, places_of
from scaleproof.rank_programs.graph.graph_check import check, deadlock
from scaleproof.rank_programs.graph.rank_graph import Collective, Kind, RankGraph
from scaleproof.rank_programs.graph.replicas import Replicas
from scaleproof.simulate.call_schedules import CallSchedules
from scaleproof.simulate.collective_schedules import Pattern, pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.folded_calls import Participant, schedule, unchanged
from scaleproof.simulate.folded_links import FoldedLinks, Pair, folded_links
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.rank_graph.graph_run import Columns, Ran, run_graph, run_tasks
from scaleproof.spec.errors import SpecError


def run_folded(
    graph: RankGraph,
    replicas: Replicas,
    network: Network,
    nodes: Sequence[int],
    costs: MessageCosts,
    *,
    buffer: float = 0.0,
    collective_buffer: float | None = None,
    name: str = "graph",
) -> Ran:
    """As run_graph, with the same times (tested), computed for one replica. Raises SpecError, one line that starts with
    `name`, also where the replicas are not equal, or their links or the algorithms of their collectives are not."""
    if replicas.count == 1:
        return run_graph(graph, network, nodes, costs, buffer=buffer, collective_buffer=collective_buffer, name=name)
    check(graph, name)
    places = places_of(graph)
    images = check_equal(graph, replicas, places, name)
    for image in images:
        _check_messages(graph, replicas, image, name)
    pairs = set(_pairs(graph))
    links = folded_links(network, nodes, pairs, replicas.steps(), replicas.count, name)
    folded = _Folded(graph, replicas, places)
    engine = Engine(network.capacities)
    columns = _FoldedColumns(engine, folded, network, np.asarray(nodes), costs, buffer, links)
    start, end = run_tasks(engine, columns, buffer if collective_buffer is None else collective_buffer)
    start, end = start[folded.stands], end[folded.stands]
    if np.isnan(end).any():
        raise deadlock(graph, ~np.isnan(end), ~np.isnan(start), name)
    return Ran(start, end)


def _pattern(call: Collective) -> Pattern:
    return pattern_of(call.algorithm, call.operation, len(call.members))


def _pairs(graph: RankGraph) -> Iterator[Pair]:
    """Ranks between which something moves."""
    moves = np.isin(graph.kind, (Kind.SEND, Kind.PUT))
    yield from zip(graph.rank[moves].tolist(), graph.peer[moves].tolist(), strict=True)
    for call in {(call.algorithm, call.operation, call.members): call for call in graph.collectives}.values():
        members = np.array(call.members)
        for round_, _ in _pattern(call).rounds:
            yield from zip(members[round_.source].tolist(), members[round_.destination].tolist(), strict=True)


def _check_messages(graph: RankGraph, replicas: Replicas, image: np.ndarray, name: str) -> None:
    """Raises SpecError for a collective whose messages are others when its ranks are renamed."""
    nodes, known = graph.of_kind(Kind.COLLECTIVE), set[tuple[object, ...]]()
    numbers: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for node, other in zip(nodes.tolist(), image[nodes].tolist(), strict=True):
        key = int(graph.peer[node]), int(graph.peer[other])
        numbers.setdefault(key, []).append((int(graph.rank[node]), int(graph.rank[other])))
    for (one, another), renamed in numbers.items():
        call, copy, ranks = graph.collectives[one], graph.collectives[another], dict(renamed)
        place = {rank: number for number, rank in enumerate(copy.members)}
        members = tuple(place[ranks[rank]] for rank in call.members)
        if (call.algorithm, call.operation, members) in known:
            continue
        known.add((call.algorithm, call.operation, members))
        if not unchanged(_pattern(call), np.array(members)):
            torus = " x ".join(map(str, replicas.shape))
            raise SpecError(
                f"{name}: cannot be folded: {call.operation} by {call.algorithm} treats replicas on a torus of {torus} "
                "differently"
            )


class _Folded:
    """The nodes of replica 0. `graph`: these alone, with ranks and peers as they are in the whole; `stands`: for each
    node of the whole, the one of them that stands for it."""

    def __init__(self, whole: RankGraph, replicas: Replicas, places: Places) -> None:
        self.whole, self.replicas = whole, replicas
        self.chosen = np.flatnonzero(replicas.replica[whole.rank] == 0)
        number = np.full(len(whole), NONE)
        number[self.chosen] = np.arange(len(self.chosen))
        self.stands = number[places.at(replicas.ranks[0][replicas.place[whole.rank]], places.place)]
        columns = ("rank", "kind", "amount", "peer", "tag", "lane")
        changed: dict[str, Any] = {name: getattr(whole, name)[self.chosen] for name in columns}
        for early, late in (("before", "after"), ("ahead", "behind")):
            of_first = replicas.replica[whole.rank[getattr(whole, late)]] == 0
            changed |= {side: self.stands[getattr(whole, side)[of_first]] for side in (early, late)}
        self.graph = replace(whole, **changed)


class _FoldedColumns(Columns):
    """Values of the engine's tasks for the nodes of replica 0."""

    def __init__(
        self,
        engine: Engine,
        folded: _Folded,
        network: Network,
        nodes: np.ndarray,
        costs: MessageCosts,
        buffer: float,
        links: FoldedLinks,
    ) -> None:
        super().__init__(engine, folded.graph, network, nodes, costs, buffer, links)
        self._folded = folded
        self._moves = np.isin(folded.graph.kind, MOVING)

    def receivers(self) -> np.ndarray:
        """See Columns: the rank of replica 0 that does what the peer does."""
        replicas = self._folded.replicas
        return np.where(self._moves, replicas.ranks[0][replicas.place[self._peers]], self.graph.peer)

    def senders(self) -> np.ndarray:
        """See Columns: as the peer sees this rank, so does this replica's receiver see the rank that sends to it."""
        replicas, peers = self._folded.replicas, self._peers
        seen = replicas.seen_from(replicas.replica[self.graph.rank], replicas.replica[peers])
        return np.where(self._moves, replicas.ranks[seen, replicas.place[self.graph.rank]], self.graph.rank)

    @property
    def _peers(self) -> np.ndarray:
        return np.where(self._moves, self.graph.peer, self.graph.rank)

    def add_collectives(self, tasks: np.ndarray, buffer: float) -> None:
        """See Columns. Calls of which replica 0 has a node become one where one is the image of the other."""
        whole, ways, of_nodes = self._folded.whole, self._ways(buffer), self.lanes
        for nodes in self._calls():
            people, number = list[Participant](), {node: place for place, node in enumerate(nodes)}
            for node in nodes:
                collective = int(self.graph.peer[node])
                members = whole.collectives[collective].members
                joined = self._joined[collective]
                stands = [number[int(self._folded.stands[joined[rank]])] for rank in members]
                place = members.index(int(self.graph.rank[node]))
                people.append(Participant(place, np.array(members), np.array(stands)))
            call = whole.collectives[int(self.graph.peer[nodes[0]])]
            made = schedule(
                self._engine,
                ways,
                _pattern(call),
                call.nbytes,
                people,
                channel=max(int(self.graph.lane[nodes[0]]), 0),
                gamma=self._costs.gamma,
                call_s=self._costs.call,
            )
            tasks[nodes] = self._engine.call(made, of_nodes[nodes])

    def _ways(self, buffer: float) -> CallSchedules:
        return CallSchedules(self._engine, self._network, self._nodes.tolist(), self._costs, buffer, self._links)

    def _calls(self) -> list[list[int]]:
        """Nodes of replica 0 that take part in one call, or in calls that are images of each other."""
        whole, stands = self._folded.whole, self._folded.stands
        joins = whole.of_kind(Kind.COLLECTIVE).tolist()
        self._joined: dict[int, dict[int, int]] = {}
        for node in joins:
            self._joined.setdefault(int(whole.peer[node]), {})[int(whole.rank[node])] = node
        found, seen = [], set[int]()
        for node in self.graph.of_kind(Kind.COLLECTIVE).tolist():
            together = {int(stands[each]) for each in self._joined[int(self.graph.peer[node])].values()}
            if node not in seen:
                found.append(sorted(together))
            seen |= together
        return found
