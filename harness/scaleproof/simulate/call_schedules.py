"""The messages of collective calls with what each costs on a network, for the event engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.phases import Phase, before_messages
from scaleproof.simulate.folded_links import UNFOLDED, FoldedLinks
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.shared_cores import SharedCores

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Ways:
    """Of messages, what does not depend on their bytes: their ranks, links and class of hops, bytes/s of the slowest
    link, delay of the links in s, and the engine's routes and streams."""

    pairs: list[Pair]
    links: list[tuple[int, ...]]
    hops: np.ndarray
    most: np.ndarray
    delay: np.ndarray
    route: np.ndarray
    stream: np.ndarray


class Schedules(Protocol):
    """Schedules of one engine."""

    def of(self, pattern: Pattern, nbytes: float, channel: int = 0) -> int:
        """The number of the schedule of a call over so many bytes."""


class CallSchedules:
    """Schedules with the messages of all ranks. `nodes`: the node of each rank; `buffer`: bytes that a socket takes
    before its receiver reads; `links`: where equal replicas are folded; `cores`: those that messages share with what is
    computed, if they do."""

    def __init__(
        self,
        engine: Engine,
        network: Network,
        nodes: Sequence[int],
        costs: MessageCosts,
        buffer: float,
        links: FoldedLinks = UNFOLDED,
        cores: SharedCores | None = None,
    ) -> None:
        self._engine, self._network, self._nodes, self._links = engine, network, list(nodes), links
        self._cores, self._costs, self._buffer = cores, costs, buffer
        self._known: dict[tuple[int, float, int, tuple[int, ...]], int] = {}
        self._ways: dict[tuple[int, int, tuple[int, ...]], _Ways] = {}
        self._patterns: list[Pattern] = []  # keeps them, and so their ids, alive
        self._streams: dict[tuple[int, Pair], int] = {}

    def of(self, pattern: Pattern, nbytes: float, channel: int = 0, members: tuple[int, ...] = ()) -> int:
        """The number of the schedule of a call over so many bytes. `members`: the ranks that take part; empty: all."""
        key = id(pattern), nbytes, channel, members
        if key not in self._known:
            self._patterns.append(pattern)
            phases = [
                self._phase(round_, times, nbytes, channel, members or range(pattern.ranks))
                for round_, times in pattern.rounds
            ]
            self._known[key] = self._engine.schedule([*self._begin(members or range(pattern.ranks)), *phases])
        return self._known[key]

    def ways(self, source: np.ndarray, destination: np.ndarray, size: np.ndarray, channel: int) -> dict[str, Any]:
        """Of messages between ranks, for a Phase: what each costs, and over what it goes."""
        return self._costed(self._between(source, destination, channel), size)

    def _begin(self, members: Sequence[int]) -> list[Phase]:
        phases, cores = before_messages(len(members), self._costs.call), self._cores
        if cores is None:
            return phases
        return [replace(phase, core=cores.reducing[list(members)], speed=cores.speed) for phase in phases]

    def _phase(self, round_: Round, times: int, nbytes: float, channel: int, members: Sequence[int]) -> Phase:
        order = np.argsort(round_.source, kind="stable")
        source, destination = round_.source[order], round_.destination[order]
        key = id(round_), channel, tuple(members)
        if key not in self._ways:
            ranks = np.array(members)
            self._ways[key] = self._between(ranks[source], ranks[destination], channel)
        size = round_.share[order] * nbytes
        reduced = np.where(round_.reduces[order], self._costs.gamma * size, 0.0)
        phase = Phase(
            times,
            sends=np.bincount(source, minlength=len(members)),
            receives=np.bincount(destination, minlength=len(members)),
            work=np.bincount(destination, weights=reduced, minlength=len(members)),
            destination=destination,
            nbytes=size,
            **self._costed(self._ways[key], size),
        )
        return phase if self._cores is None else self._sharing(phase, self._ways[key], members, self._cores)

    def _sharing(self, phase: Phase, ways: _Ways, members: Sequence[int], cores: SharedCores) -> Phase:
        """The same on cores that are shared."""
        sizes, most, delays = phase.nbytes.tolist(), phase.highest.tolist(), phase.delay.tolist()
        moved = []
        for pair, route, size, highest, before in zip(ways.pairs, ways.links, sizes, most, delays, strict=True):
            delay = self._network.delay_s(route)
            moved.append(cores.message(pair, route, size, highest, before - delay, delay))
        return replace(
            phase,
            highest=np.array([each.highest for each in moved]),
            delay=np.array([each.delay for each in moved]),
            route=np.array([each.route for each in moved]),
            core=cores.reducing[list(members)],
            speed=cores.speed,
        )

    def _between(self, source: np.ndarray, destination: np.ndarray, channel: int) -> _Ways:
        pairs = list(zip(source.tolist(), destination.tolist(), strict=True))
        links = [self._network.route(self._nodes[one], self._nodes[other]) for one, other in pairs]
        return _Ways(
            pairs,
            links,
            hops=np.array([self._costs.hop(len(route)) for route in links]),
            most=np.array([self._network.most(route, 0.0) for route in links]),
            delay=np.array([self._network.delay_s(route) for route in links]),
            route=np.array([self._engine.route(*self._links.way(route)) for route in links]),
            stream=np.array([self._stream(channel, pair) for pair in pairs]),
        )

    def _costed(self, ways: _Ways, size: np.ndarray) -> dict[str, Any]:
        beta = self._costs.beta(size, ways.hops)
        software = np.divide(1.0, beta, out=np.full(len(beta), np.inf), where=beta > 0)
        return {
            "highest": np.minimum(ways.most, software),
            "delay": self._costs.alpha(size, ways.hops) + ways.delay,
            "route": ways.route,
            "stream": ways.stream,
            "buffer": np.full(len(size), self._buffer),
        }

    def _stream(self, channel: int, pair: Pair) -> int:
        if not self._buffer:
            return NONE  # each message waits for its receiver: none is behind another
        key = channel, pair
        if key not in self._streams:
            self._streams[key] = int(self._engine.streams(1)[0])
        return self._streams[key]
