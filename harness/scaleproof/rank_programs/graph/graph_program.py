"""A graph as a rank program: each rank carries out its nodes as what they wait for ends."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np

from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import (
    AwaitAny,
    AwaitFlag,
    Compute,
    Effect,
    Ended,
    Flag,
    Put,
    Receive,
    Send,
    Start,
    Started,
)
from scaleproof.rank_programs.graph.expanded import expanded
from scaleproof.rank_programs.graph.graph_check import check
from scaleproof.rank_programs.graph.rank_graph import Kind, RankGraph
from scaleproof.rank_programs.graph.rank_part import RankPart
from scaleproof.rank_programs.rank_program import Clock, RankProgram
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.stand_ins import check_stand_in

REGION = "memory"
COMPUTE = "compute"
"""The option of a case in which a burning core stands in for what the graph computes."""
BURNED = 1 << 13
"""Elements of the array that a burning core works on: it stays in the first-level cache."""


class GraphProgram(RankProgram):
    """Runs the graph once per step, with a barrier between steps. Messages hold zeros. Computing sleeps with option
    `slept: 1`, or burns its core with `compute: emulated`. A node of a lane starts when the one before it has ended;
    messages of a connection go one after the other."""

    @classmethod
    @abstractmethod
    def graph_of(cls, case: OwnCase) -> RankGraph:
        """The graph of a case."""

    def __init__(self, case: OwnCase, rank: int, clock: Clock) -> None:
        super().__init__(case, rank, clock)
        name, graph = str(case.options.get("graph", case.entry)), expanded(type(self).graph_of(case))
        if graph.ranks != case.ranks:
            raise SpecError(f"{name}: the graph has {graph.ranks} ranks, the case has {case.ranks}")
        check(graph, name)
        self._graph, self._part = graph, RankPart(graph, rank, name)
        self._burns = not case.slept and not case.plugin("fabric").predicted
        if self._burns and (graph.kind == Kind.COMPUTE).any():
            check_stand_in(case, COMPUTE)
        own, moved = graph.rank == rank, graph.kind != Kind.COMPUTE
        self._zeros = np.zeros(round(graph.amount[own & moved].max(initial=0)), np.uint8)
        to_here = graph.peer == rank
        self._memory = np.zeros(round(graph.amount[to_here & (graph.kind == Kind.PUT)].max(initial=0)), np.uint8)
        self._wanted = int(np.rint(graph.amount[to_here & (graph.kind == Kind.SEND)]).sum())
        self._arrived = self._carried_out = 0

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram."""
        return {REGION: self._memory}

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        for number in self.steps():
            yield from self._once(number)
            self._clock.steps_end()
            yield from barrier(self.rank, self.world_size)

    def _once(self, number: int) -> Generator[Effect, Any, None]:
        part, lanes = self._part.begin(), _Lanes()
        moving = dict[int, tuple[Started, int, tuple[object, ...]]]()
        while True:
            while part.ready:
                node = part.ready.popleft()
                key = self._part.lane_of(node)
                started = yield Start(self._effect(node, number), lanes.take(key))
                moving[started.number] = started, node, key
                part.started(node)
            if not moving:
                return
            ended: Ended = yield AwaitAny(tuple(started for started, _, _ in moving.values()))
            _, node, key = moving.pop(ended.started.number)
            lanes.give_back(key)
            self._carried_out += 1
            if node in self._part.flagged:
                yield Flag(int(self._graph.peer[node]), f"node {node}")
            if isinstance(getattr(ended.value, "value", None), np.ndarray):
                self._arrived += ended.value.value.nbytes
            part.ended(node)

    def _effect(self, node: int, number: int) -> Effect:
        graph, peer = self._graph, int(self._graph.peer[node])
        if graph.rank[node] != self.rank:
            return AwaitFlag(f"node {node}", number + 1)
        kind, amount = Kind(graph.kind[node]), float(graph.amount[node])
        if kind is Kind.COMPUTE:
            return Compute(amount, partial(burn, amount * self.case.dilation) if self._burns else None)
        if kind is Kind.RECEIVE:
            return Receive(peer, int(graph.tag[node]))
        value = self._zeros[: round(amount)]
        return Put(peer, value, REGION) if kind is Kind.PUT else Send(peer, value, int(graph.tag[node]))

    def checks(self) -> list[tuple[str, bool, str]]:
        """All nodes were carried out, and all bytes that the graph sends here have arrived."""
        steps = self.case.warmup + self.case.iterations
        nodes, nbytes = steps * self._part.count, steps * self._wanted
        return [
            ("nodes", self._carried_out == nodes, f"{self._carried_out} of {nodes} were carried out"),
            ("bytes", self._arrived == nbytes, f"{self._arrived} of {nbytes} bytes arrived"),
        ]


class _Lanes:
    """Numbers of lanes: one for all that must go one after the other, used again when nothing is on it."""

    def __init__(self) -> None:
        self._used: dict[object, tuple[int, int]] = {}
        self._free: deque[int] = deque()
        self._count = 0

    def take(self, key: object) -> int:
        """The lane of a key, which something more is on."""
        if key not in self._used:
            if not self._free:
                self._free.append(self._count)
                self._count += 1
            self._used[key] = self._free.popleft(), 0
        number, users = self._used[key]
        self._used[key] = number, users + 1
        return number

    def give_back(self, key: object) -> None:
        """Something on the lane of a key has ended."""
        number, users = self._used[key]
        self._used[key] = number, users - 1
        if users == 1:
            del self._used[key]
            self._free.append(number)


def burn(seconds: float) -> None:
    """Keeps this thread's core busy for so many seconds of its processor time."""
    values, end = np.ones(BURNED), time.thread_time() + seconds
    while time.thread_time() < end:
        np.sqrt(values, out=values)
