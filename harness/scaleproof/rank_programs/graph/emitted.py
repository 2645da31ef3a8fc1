"""Rank programs as a graph: what their effects do becomes nodes. Values and times decide nothing in it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from scaleproof.rank_programs.effect_events import described
from scaleproof.rank_programs.effects import (
    ALL,
    Await,
    AwaitAll,
    Charge,
    Collective,
    Compute,
    Effect,
    Receive,
    Send,
    Sleep,
    Start,
    Started,
)
from scaleproof.rank_programs.graph.rank_graph import NONE, Builder, Kind, RankGraph
from scaleproof.spec.errors import SpecError

Program = Generator[Effect, Any, Any]
Groups = Mapping[str, Sequence[Sequence[int]]]
MAIN = 0
"""Lane of computing; effects on other lanes of the program are one higher."""


def graph_of_programs(
    programs: Sequence[Program],
    groups: Groups,
    algorithm: str,
    gamma: float = 0.0,
    handover: float = 0.0,
    name: str = "programs",
) -> RankGraph:
    """The graph of all ranks. `groups`: of ranks, by name; `algorithm`: of collectives; `gamma`: s of a byte that is
    charged; `handover`: s from a program to the thread that makes its collectives, and back. What a program receives is
    None to it. Raises SpecError, one line with rank and effect, where what comes next depends on a peer: calls, gets
    and flags."""
    builder = Builder(len(programs))
    calls = _Calls(builder, groups, algorithm)
    for rank, program in enumerate(programs):
        _Rank(builder, rank, calls, (gamma, handover), name).run(program)
    return _with_sizes(builder.graph())


class _Calls:
    """Collectives by members, tag and use."""

    def __init__(self, builder: Builder, groups: Groups, algorithm: str) -> None:
        self._builder, self._algorithm, self._groups = builder, algorithm, {ALL: [range(builder.ranks)], **groups}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._used = Counter[tuple[object, ...]]()

    def of(self, rank: int, effect: Collective) -> int | None:
        """The number of a rank's next collective with this group and tag; None for a group of one."""
        members = next((tuple(part) for part in self._groups[effect.group] if rank in part), ())
        if len(members) < 2:
            return None
        use = rank, effect.group, effect.tag
        key = members, effect.tag, self._used[use]
        self._used[use] += 1
        if key not in self._numbers:
            self._numbers[key] = self._builder.collective(effect.operation, effect.nbytes, members, self._algorithm)
        return self._numbers[key]


class _Rank:
    """Nodes of one rank. `_stream`: what its next effect waits for."""

    def __init__(
        self, builder: Builder, rank: int, calls: _Calls, gamma_handover: tuple[float, float], name: str
    ) -> None:
        self._builder, self._rank, self._calls, self._name = builder, rank, calls, name
        gamma, self._handover = gamma_handover
        self._stream: list[int] = []
        self._started: list[list[int]] = []
        self._last: dict[int, list[int]] = {}
        self._nodes: dict[type, Callable[[Any, list[int], int], list[int]]] = {
            Compute: lambda effect, after, lane: [builder.compute(rank, effect.seconds, after, lane)],
            Charge: lambda effect, after, lane: [builder.compute(rank, gamma * effect.nbytes, after, lane)],
            Sleep: lambda effect, after, lane: [builder.compute(rank, effect.seconds, after, NONE)],
            Send: lambda effect, after, lane: [builder.send(rank, effect.peer, effect.value.nbytes, after, effect.tag)],
            Receive: lambda effect, after, lane: [builder.receive(rank, effect.source, 0.0, after, effect.tag)],
            Collective: self._join,
        }

    def run(self, program: Program) -> None:
        """All effects of the program."""
        result: Any = None
        while True:
            try:
                effect = program.send(result)
            except StopIteration:
                return
            result = self._take(effect)

    def _take(self, effect: Effect) -> Any:
        if isinstance(effect, Start):
            other = isinstance(effect.effect, Collective) and self._handover > 0
            since = self._handed_over(self._stream) if other else self._stream
            after = list(dict.fromkeys([*since, *self._last.get(effect.lane, ())]))
            nodes = self._carry_out(effect.effect, after, effect.lane + 1)
            self._last[effect.lane] = nodes or self._last.get(effect.lane, [])
            self._started.append(self._handed_over(nodes) if other and nodes else nodes)
            return Started(len(self._started) - 1)
        if isinstance(effect, Await | AwaitAll):
            awaited = [effect.started] if isinstance(effect, Await) else effect.started
            nodes = [node for each in awaited for node in self._started[each.number]]
            self._stream = list(dict.fromkeys([*self._stream, *nodes]))
            return None
        self._stream = self._carry_out(effect, self._stream, MAIN) or self._stream
        return None

    def _handed_over(self, nodes: list[int]) -> list[int]:
        return [self._builder.compute(self._rank, self._handover, nodes, NONE)]

    def _carry_out(self, effect: Effect, after: list[int], lane: int) -> list[int]:
        if type(effect) not in self._nodes:
            raise SpecError(f"{self._name}: rank {self._rank} {described(effect)}: a graph cannot express this")
        return self._nodes[type(effect)](effect, after, lane)

    def _join(self, effect: Collective, after: list[int], lane: int) -> list[int]:
        number = self._calls.of(self._rank, effect)
        return [] if number is None else [self._builder.join(self._rank, number, after, lane)]


def _with_sizes(graph: RankGraph) -> RankGraph:
    """Receives with the bytes of their messages, where those are sent."""
    sizes: dict[tuple[int, int, int], deque[float]] = {}
    for node in graph.of_kind(Kind.SEND).tolist():
        key = int(graph.peer[node]), int(graph.tag[node]), int(graph.rank[node])
        sizes.setdefault(key, deque()).append(float(graph.amount[node]))
    amount: np.ndarray = graph.amount.copy()
    for node in graph.of_kind(Kind.RECEIVE).tolist():
        left = sizes.get((int(graph.rank[node]), int(graph.tag[node]), int(graph.peer[node])))
        if left:
            amount[node] = left.popleft()
    return replace(graph, amount=amount)
