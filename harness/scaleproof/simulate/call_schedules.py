"""The messages of collective calls with what each costs on a network, for the event engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine, Phase
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.link_network import Network


@dataclass(frozen=True, slots=True)
class _Ways:
    """The messages of a round in the `order` of their senders, as far as their bytes do not matter: ranks in the
    pattern, class of hops, bytes/s of the slowest link, delay of the links in s, the engine's routes and streams."""

    order: np.ndarray
    source: np.ndarray
    destination: np.ndarray
    hops: np.ndarray
    most: np.ndarray
    delay: np.ndarray
    route: np.ndarray
    stream: np.ndarray


class CallSchedules:
    """Schedules of one engine. `nodes`: the node of each rank; `buffer`: bytes that a socket takes before its receiver
    reads."""

    def __init__(
        self, engine: Engine, network: Network, nodes: Sequence[int], costs: MessageCosts, buffer: float
    ) -> None:
        self._engine, self._network, self._nodes = engine, network, list(nodes)
        self._costs, self._buffer = costs, buffer
        self._known: dict[tuple[int, float, int, tuple[int, ...]], int] = {}
        self._ways: dict[tuple[int, int, tuple[int, ...]], _Ways] = {}
        self._patterns: list[Pattern] = []  # keeps them, and so their ids, alive
        self._streams: dict[tuple[int, int, int], int] = {}

    def of(self, pattern: Pattern, nbytes: float, channel: int = 0, members: tuple[int, ...] = ()) -> int:
        """The number of the schedule of a call over so many bytes. `members`: the ranks that take part; empty: all."""
        key = id(pattern), nbytes, channel, members
        if key not in self._known:
            self._patterns.append(pattern)
            phases = [
                self._phase(self._ways_of(round_, channel, members), round_, times, nbytes, pattern.ranks)
                for round_, times in pattern.rounds
            ]
            self._known[key] = self._engine.schedule(phases)
        return self._known[key]

    def _phase(self, ways: _Ways, round_: Round, times: int, nbytes: float, ranks: int) -> Phase:
        size = round_.share[ways.order] * nbytes
        beta = self._costs.beta(size, ways.hops)
        software = np.divide(1.0, beta, out=np.full(len(beta), np.inf), where=beta > 0)
        reduced = np.where(round_.reduces[ways.order], self._costs.gamma * size, 0.0)
        return Phase(
            times,
            sends=np.bincount(ways.source, minlength=ranks),
            receives=np.bincount(ways.destination, minlength=ranks),
            work=np.bincount(ways.destination, weights=reduced, minlength=ranks),
            destination=ways.destination,
            nbytes=size,
            highest=np.minimum(ways.most, software),
            delay=self._costs.alpha(size, ways.hops) + ways.delay,
            route=ways.route,
            stream=ways.stream,
            buffer=np.full(len(size), self._buffer),
        )

    def _ways_of(self, round_: Round, channel: int, members: tuple[int, ...]) -> _Ways:
        key = id(round_), channel, members
        if key not in self._ways:
            self._ways[key] = self._new_ways(round_, channel, members)
        return self._ways[key]

    def _new_ways(self, round_: Round, channel: int, members: tuple[int, ...]) -> _Ways:
        order, network, nodes = np.argsort(round_.source, kind="stable"), self._network, self._nodes
        source, destination = round_.source[order], round_.destination[order]
        ranks = np.array(members) if members else np.arange(len(nodes))
        pairs = list(zip(ranks[source].tolist(), ranks[destination].tolist(), strict=True))
        links = [network.route(nodes[one], nodes[other]) for one, other in pairs]
        return _Ways(
            order,
            source,
            destination,
            hops=np.array([self._costs.hop(len(route)) for route in links]),
            most=np.array([network.most(route, 0.0) for route in links]),
            delay=np.array([network.delay_s(route) for route in links]),
            route=np.array([self._engine.route(route) for route in links]),
            stream=np.array([self._stream(channel, *pair) for pair in pairs]),
        )

    def _stream(self, channel: int, source: int, destination: int) -> int:
        if not self._buffer:
            return NONE  # each message waits for its receiver: none is behind another
        key = channel, source, destination
        if key not in self._streams:
            self._streams[key] = int(self._engine.streams(1)[0])
        return self._streams[key]
