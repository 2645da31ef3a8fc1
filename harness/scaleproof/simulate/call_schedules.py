"""The messages of collective calls with what each costs on a network, for the event engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine, Phase
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.link_network import Network


class CallSchedules:
    """Schedules of one engine. `nodes`: the node of each rank; `buffer`: bytes that a socket takes before its receiver
    reads."""

    def __init__(
        self, engine: Engine, network: Network, nodes: Sequence[int], costs: MessageCosts, buffer: float
    ) -> None:
        self._engine, self._network, self._nodes = engine, network, np.array(nodes)
        self._costs, self._buffer = costs, buffer
        self._known: dict[tuple[int, float, int], int] = {}
        self._patterns: list[Pattern] = []  # keeps them, and so their ids, alive
        self._streams: dict[tuple[int, int, int], int] = {}

    def of(self, pattern: Pattern, nbytes: float, channel: int = 0) -> int:
        """The number of the schedule of a call over so many bytes."""
        key = id(pattern), nbytes, channel
        if key not in self._known:
            self._patterns.append(pattern)
            phases = [self._phase(round_, times, nbytes, channel, pattern.ranks) for round_, times in pattern.rounds]
            begin = [self._begin(pattern.ranks)] if self._costs.call else []
            self._known[key] = self._engine.schedule([*begin, *phases])
        return self._known[key]

    def _begin(self, ranks: int) -> Phase:
        """What a call takes of each rank before its first message."""
        nobody, none = np.zeros(ranks, np.int64), np.zeros(0)
        number = none.astype(np.int64)
        return Phase(
            1,
            sends=nobody,
            receives=nobody,
            work=np.full(ranks, self._costs.call),
            destination=number,
            nbytes=none,
            highest=none,
            delay=none,
            route=number,
            stream=number,
            buffer=none,
        )

    def _phase(self, round_: Round, times: int, nbytes: float, channel: int, ranks: int) -> Phase:
        order = np.argsort(round_.source, kind="stable")
        source, destination = round_.source[order], round_.destination[order]
        size = round_.share[order] * nbytes
        pairs = list(zip(source.tolist(), destination.tolist(), strict=True))
        links = [self._network.route(int(self._nodes[one]), int(self._nodes[other])) for one, other in pairs]
        hops = [self._costs.hop(len(route)) for route in links]
        beta = self._costs.beta(size, hops)
        reduced = np.where(round_.reduces[order], self._costs.gamma * size, 0.0)
        return Phase(
            times,
            sends=np.bincount(source, minlength=ranks),
            receives=np.bincount(destination, minlength=ranks),
            work=np.bincount(destination, weights=reduced, minlength=ranks),
            destination=destination,
            nbytes=size,
            highest=np.array([self._network.most(*each) for each in zip(links, beta.tolist(), strict=True)]),
            delay=self._costs.alpha(size, hops) + np.array([self._network.delay_s(route) for route in links]),
            route=np.array([self._engine.route(route) for route in links]),
            stream=np.array([self._stream(channel, *pair) for pair in pairs]),
            buffer=np.full(len(size), self._buffer),
        )

    def _stream(self, channel: int, source: int, destination: int) -> int:
        if not self._buffer:
            return NONE  # each message waits for its receiver: none is behind another
        key = channel, source, destination
        if key not in self._streams:
            self._streams[key] = int(self._engine.streams(1)[0])
        return self._streams[key]
