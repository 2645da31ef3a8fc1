"""The messages of collective calls with what each costs on a network, for the event engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.flow_network import NONE
from scaleproof.simulate.engine.phases import Phase
from scaleproof.simulate.folded_links import UNFOLDED, FoldedLinks
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.shared_cores import SharedCores


class CallSchedules:
    """Schedules of one engine. `nodes`: the node of each rank; `buffer`: bytes that a socket takes before its receiver
    reads; `links`: where equal replicas are folded; `cores`: those that messages share with what is computed, if they
    do."""

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
        self._engine, self._network, self._nodes, self._links = engine, network, np.array(nodes), links
        self._cores = cores
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
        reduced = np.where(round_.reduces[order], self._costs.gamma * size, 0.0)
        phase = Phase(
            times,
            sends=np.bincount(source, minlength=ranks),
            receives=np.bincount(destination, minlength=ranks),
            work=np.bincount(destination, weights=reduced, minlength=ranks),
            destination=destination,
            nbytes=size,
            **self.ways(source, destination, size, channel),
        )
        return phase if self._cores is None else self._sharing(phase, source, destination, self._cores)

    def _sharing(self, phase: Phase, source: np.ndarray, destination: np.ndarray, cores: SharedCores) -> Phase:
        """The same on cores that are shared."""
        pairs = list(zip(source.tolist(), destination.tolist(), strict=True))
        links = [self._network.route(int(self._nodes[one]), int(self._nodes[other])) for one, other in pairs]
        sizes, most, delays = phase.nbytes.tolist(), phase.highest.tolist(), phase.delay.tolist()
        moved = []
        for pair, route, size, highest, before in zip(pairs, links, sizes, most, delays, strict=True):
            delay = self._network.delay_s(route)
            moved.append(cores.message(pair, route, size, highest, before - delay, delay))
        return replace(
            phase,
            highest=np.array([each.highest for each in moved]),
            delay=np.array([each.delay for each in moved]),
            route=np.array([each.route for each in moved]),
            core=cores.reducing,
            speed=cores.speed,
        )

    def ways(self, source: np.ndarray, destination: np.ndarray, size: np.ndarray, channel: int) -> dict[str, Any]:
        """Of messages between ranks, for a Phase: what each costs, and over what it goes."""
        pairs = list(zip(source.tolist(), destination.tolist(), strict=True))
        links = [self._network.route(int(self._nodes[one]), int(self._nodes[other])) for one, other in pairs]
        hops = [self._costs.hop(len(route)) for route in links]
        beta = self._costs.beta(size, hops)
        return {
            "highest": np.array([self._network.most(*each) for each in zip(links, beta.tolist(), strict=True)]),
            "delay": self._costs.alpha(size, hops) + np.array([self._network.delay_s(route) for route in links]),
            "route": np.array([self._engine.route(*self._links.way(route)) for route in links]),
            "stream": np.array([self._stream(channel, *pair) for pair in pairs]),
            "buffer": np.full(len(size), self._buffer),
        }

    def _stream(self, channel: int, source: int, destination: int) -> int:
        if not self._buffer:
            return NONE  # each message waits for its receiver: none is behind another
        key = channel, source, destination
        if key not in self._streams:
            self._streams[key] = int(self._engine.streams(1)[0])
        return self._streams[key]
