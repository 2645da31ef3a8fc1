"""Runs a graph of rank programs in the event engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scaleproof.rank_programs.graph.graph_check import check, deadlock
from scaleproof.rank_programs.graph.rank_graph import Kind, RankGraph
from scaleproof.simulate.call_schedules import CallSchedules
from scaleproof.simulate.collective_schedules import pattern_of
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.tables import CALL, RECEIVE, SEND, TRANSFER, WORK
from scaleproof.simulate.folded_links import UNFOLDED, FoldedLinks
from scaleproof.simulate.link_network import Network

TASK_OF = {Kind.COMPUTE: WORK, Kind.SEND: SEND, Kind.RECEIVE: RECEIVE, Kind.PUT: TRANSFER, Kind.COLLECTIVE: CALL}


@dataclass(frozen=True)
class Ran:
    """When each node started and ended, in s."""

    start: np.ndarray
    end: np.ndarray

    @property
    def seconds(self) -> float:
        """The time of all."""
        return float(self.end.max(initial=0.0))


def run_graph(
    graph: RankGraph,
    network: Network,
    nodes: Sequence[int],
    costs: MessageCosts,
    *,
    buffer: float = 0.0,
    collective_buffer: float | None = None,
    name: str = "graph",
) -> Ran:
    """Runs a graph with one connection between each pair of ranks. `nodes`: the node of each rank; `buffer`: bytes that
    a connection takes before its receiver reads; `collective_buffer`: the same for collectives. Raises SpecError, one
    line that starts with `name`, for a graph that cannot run to its end."""
    check(graph, name)
    engine = Engine(network.capacities)
    columns = Columns(engine, graph, network, np.asarray(nodes), costs, buffer)
    start, end = run_tasks(engine, columns, buffer if collective_buffer is None else collective_buffer)
    if np.isnan(end).any():
        raise deadlock(graph, ~np.isnan(end), ~np.isnan(start), name)
    return Ran(start, end)


def run_tasks(engine: Engine, columns: Columns, collective_buffer: float) -> tuple[np.ndarray, np.ndarray]:
    """When each node starts and ends; NaN: never."""
    graph = columns.graph
    alone, tasks = np.flatnonzero(graph.kind != Kind.COLLECTIVE), np.empty(len(graph), np.int64)
    values = {
        "kind": np.array([TASK_OF[Kind(kind)] for kind in range(len(Kind))])[graph.kind],
        "amount": graph.amount,
        "lane": columns.lanes,
        "box": columns.boxes(),
        "source": np.where(graph.kind == Kind.RECEIVE, graph.peer, columns.senders()),
        **columns.of_messages(),
    }
    tasks[alone] = engine.add(len(alone), **{name: column[alone] for name, column in values.items()})
    columns.add_collectives(tasks, collective_buffer)
    engine.after(tasks[graph.after], tasks[graph.before])
    engine.after_start(tasks[graph.behind], tasks[graph.ahead])
    engine.run()
    return engine.start[tasks].copy(), engine.end[tasks].copy()


class Columns:
    """Values of the engine's tasks for the nodes of a graph."""

    def __init__(
        self,
        engine: Engine,
        graph: RankGraph,
        network: Network,
        nodes: np.ndarray,
        costs: MessageCosts,
        buffer: float,
        links: FoldedLinks = UNFOLDED,
    ) -> None:
        self._engine, self.graph, self._network, self._nodes = engine, graph, network, nodes
        self._costs, self._buffer, self._links = costs, buffer, links

    def receivers(self) -> np.ndarray:
        """The rank in whose box each send puts its message."""
        return self.graph.peer

    def senders(self) -> np.ndarray:
        """The rank that the receiver of each send takes it for."""
        return self.graph.rank

    @cached_property
    def lanes(self) -> np.ndarray:
        """The engine's lane of each node."""
        graph = self.graph
        lanes = np.full(len(graph), NONE)
        on_lane = graph.lane >= 0
        if on_lane.any():
            different, number = _numbered(graph.rank[on_lane], graph.lane[on_lane])
            lanes[on_lane] = self._engine.lanes(len(different))[number]
        return lanes

    def boxes(self) -> np.ndarray:
        """The box of each send and receive: one per rank that receives and tag."""
        graph = self.graph
        boxes = np.full(len(graph), NONE)
        chosen = (graph.kind == Kind.SEND) | (graph.kind == Kind.RECEIVE)
        if chosen.any():
            receiver = np.where(graph.kind == Kind.SEND, self.receivers(), graph.rank)[chosen]
            different, number = _numbered(receiver, graph.tag[chosen])
            boxes[chosen] = self._engine.boxes(len(different))[number]
        return boxes

    def of_messages(self) -> dict[str, np.ndarray]:
        """Route, stream, delay, highest rate and buffer of what each node moves."""
        graph, network = self.graph, self._network
        moves = (graph.kind == Kind.SEND) | (graph.kind == Kind.PUT)
        route, stream = np.zeros(len(graph), np.int64), np.full(len(graph), NONE)
        delay, highest = np.zeros(len(graph)), np.full(len(graph), np.inf)
        if moves.any():
            different, of_pair = _numbered(graph.rank[moves], graph.peer[moves])
            links = [network.route(*self._nodes[list(pair)].tolist()) for pair in different.tolist()]
            streams = self._engine.streams(len(links)) if self._buffer else np.full(len(links), NONE)
            nbytes = graph.amount[moves]
            most = np.array([network.most(each, 0.0) for each in links])[of_pair]
            kinds = np.array([self._costs.hop(len(each)) for each in links])[of_pair]
            beta = self._costs.beta(nbytes, kinds)
            software = np.divide(1.0, beta, out=np.full(len(beta), np.inf), where=beta > 0)
            route[moves] = np.array([self._engine.route(*self._links.way(each)) for each in links])[of_pair]
            stream[moves] = streams[of_pair]
            delay[moves] = (
                self._costs.alpha(nbytes, kinds) + np.array([network.delay_s(each) for each in links])[of_pair]
            )
            highest[moves] = np.minimum(most, software)
        buffer = np.full(len(graph), self._buffer)
        return {"route": route, "stream": stream, "delay": delay, "highest": highest, "buffer": buffer}

    def add_collectives(self, tasks: np.ndarray, buffer: float) -> None:
        """Fills in the tasks of the nodes of collectives."""
        graph = self.graph
        schedules = CallSchedules(self._engine, self._network, self._nodes.tolist(), self._costs, buffer)
        nodes = graph.of_kind(Kind.COLLECTIVE)
        nodes = nodes[np.argsort(graph.peer[nodes], kind="stable")]
        of_nodes = self.lanes
        bounds = np.searchsorted(graph.peer[nodes], np.arange(len(graph.collectives) + 1))
        place = np.empty(graph.ranks, np.int64)
        for number, call in enumerate(graph.collectives):
            count, joined = len(call.members), nodes[bounds[number] : bounds[number + 1]]
            place[list(call.members)] = np.arange(count)
            mine, channel = place[graph.rank[joined]], max(int(graph.lane[joined[0]]), 0)
            lanes = np.full(count, NONE)
            lanes[mine] = of_nodes[joined]
            pattern = pattern_of(call.algorithm, call.operation, count)
            tasks[joined] = self._engine.call(schedules.of(pattern, call.nbytes, channel, call.members), lanes)[mine]


def _numbered(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different pairs of two columns of integers, a row each, and the place of each row's pair among them."""
    order = np.lexsort([other, one])
    pairs = np.stack([one, other], axis=1)[order]
    new = np.ones(len(order), bool)
    new[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    return pairs[new], number
