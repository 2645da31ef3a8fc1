"""Push-sum (Kempe, Dobra, Gehrke 2003; for training: Assran et al. 2019): a rank sends half of its sum and half of its
weight to a random peer. Sums and weights of all ranks together never change, so that sum over weight of every rank goes
to the average, which a push of parameters alone does not keep. A rank that is killed and a push that is lost take their
sum and weight with them: what is left goes to the average of what is left. A successor gets half of a peer's."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import Call, Charge, Detach, Effect, Gradient, Update
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.gossip import BORNE, NOTHING
from scaleproof.strategies.replica import Replica, check_peers
from scaleproof.strategies.strategy_options import PeriodOptions
from scaleproof.transports.mailbox import Lost


class PushSum(Replica):
    """`x` is sum over weight: the parameters at which gradients are taken."""

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram; also what peers meet before the first step."""
        self.weight = 0.0 if self.is_successor else 1.0
        self.arrived = np.zeros(len(self.x) + 1, np.float64)
        self.lock = threading.Lock()
        return {}

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        tau = self.case.options_of(PeriodOptions).tau
        yield from self._start_successor()
        for step in self.steps():
            yield Gradient(step)
            yield Update()
            if (step + 1) % tau == 0:
                yield from self._exchange()

    def _start_successor(self) -> Generator[Effect, Any, None]:
        """A successor begins with half of what a peer has; where none is left, with the weight of one rank."""
        if not self.is_successor:
            return
        while (peer := self.random_peer()) != self.rank:
            half = yield Call(peer, NOTHING, "halve")
            if not isinstance(half, Lost):
                self.weight = float(half[0])
                self.x[:] = half[1:] / self.weight
                return
        self.weight = 1.0

    def _exchange(self) -> Generator[Effect, Any, None]:
        self._take_arrived()
        if (peer := self.random_peer()) != self.rank:
            half = np.concatenate([[self.weight], self._sum]) / 2
            self.weight /= 2
            yield Detach(Call(peer, half, "push"))
        yield Charge(4 * self.x.nbytes)

    @property
    def _sum(self) -> np.ndarray:
        total: np.ndarray = np.multiply(self.x, self.weight, dtype=np.float64)
        return total

    def _take_arrived(self) -> None:
        with self.lock:
            arrived, self.arrived = self.arrived, np.zeros_like(self.arrived)
        if arrived[0]:
            weight = self.weight + arrived[0]
            self.x[:] = (self._sum + arrived[1:]) / weight
            self.weight = weight

    def end(self) -> None:
        """See Replica."""
        self._take_arrived()
        self.note("weight", self.weight)

    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
        """See RankProgram."""
        if name == "halve":
            self.weight /= 2
            return np.concatenate([[self.weight], self.x * self.weight])
        with self.lock:
            self.arrived += value
        self.charge(value.nbytes)
        return NOTHING


PLUGIN = StrategyPlugin(
    name="push_sum",
    summary="asynchronous: halves of sums and weights are pushed to a random peer",
    implementation=PushSum,
    options=PeriodOptions,
    check=check_peers,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="own", end="apart", evaluated="average", bears=BORNE),
    tags=asynchronous_tags("decentralized", "asynchronous", "p2p-mesh"),
)
