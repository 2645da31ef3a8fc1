"""Cores that the computing and the communication of a node's ranks share, as links of the event engine: what messages
take of a core makes what is computed at the same time longer, and the other way round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.core.missing_input import MissingInput
from scaleproof.record.host import usable_cores
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.spec.case import AnyCase
from scaleproof.spec.launch_kind import communication_threads


def shared_cores(case: AnyCase) -> float | None:
    """Cores of a node; None unless the case says how many there are, and computing and communication threads of a
    node's ranks are more. Raises MissingInput where this machine has fewer than compute threads."""
    stated = case.value("fabric.cores")
    if stated is None:
        return None
    cores, ranks = usable_cores() if stated == "machine" else float(stated), -(-case.ranks // case.nodes)
    if ranks * case.threads_per_rank > cores:
        threads = f"{ranks * case.threads_per_rank} compute threads on a node, and this machine has {cores:g} cores"
        raise MissingInput(threads, "say how many the node has: fabric.cores")
    return cores if ranks * (case.threads_per_rank + communication_threads(case)) > cores else None


@dataclass(frozen=True, slots=True)
class Moved:
    """How a message moves: the engine's route, at most so many bytes/s, after a delay in s."""

    route: int
    highest: float
    delay: float


class SharedCores:
    """A link a node, behind the first `links` of the engine, with as many seconds of a core a second as it has cores.

    Seconds of computing move like bytes, `speed` to the second, so that where a core is short, a computing thread and
    one that sends and receives large messages get equal parts of it."""

    def __init__(self, engine: Engine, links: int, nodes: Sequence[int], threads: int, costs: MessageCosts) -> None:
        self._engine, self._costs = engine, costs
        self.of_rank = [links + node for node in nodes]
        """The link of each rank's node."""
        byte = max(
            own.sending.byte + own.receiving.byte for own in (costs.on("one_link"), *dict(costs.others).values())
        )
        self.speed = 1 / (byte or 1e-9)  # where bytes take nothing, any number does
        weights = [(count / self.speed,) for count in (threads, 1)]
        self.computing, self.reducing = (
            np.array([engine.route((link,), weight) for link in self.of_rank]) for weight in weights
        )
        """Routes of each rank's computing, on all its threads, and of what its communication thread reduces."""

    @staticmethod
    def capacities(nodes: Sequence[int], cores: float) -> np.ndarray:
        """Of the links that it adds."""
        return np.full(max(nodes) + 1, cores)

    def compute(self, seconds: np.ndarray) -> np.ndarray:
        """A task per rank that computes so long where nothing takes its cores."""
        return self._engine.transfer(self.computing, seconds * self.speed, count=len(seconds), highest=self.speed)

    def message(
        self, pair: tuple[int, int], links: tuple[int, ...], nbytes: float, highest: float, alpha: float, delay: float
    ) -> Moved:
        """A message of a rank to another one. Alone, it takes what alpha and beta say. A rank's thread, which sends one
        and receives one at a time, is busy for no longer than that."""
        costs = self._costs.on(self._costs.hop(len(links)))
        sending, receiving = costs.sending.seconds(nbytes), costs.receiving.seconds(nbytes)
        both, moving = sending + receiving, nbytes / highest
        if not both or not nbytes or not alpha + moving:
            return Moved(self._engine.route(links), highest, alpha + delay)
        busy = min(both, alpha + moving) / both
        weights = dict.fromkeys(links, 1.0)
        for rank, seconds in zip(pair, (sending, receiving), strict=True):
            core = self.of_rank[rank]
            weights[core] = weights.get(core, 0.0) + busy * seconds / nbytes
        longest = max(moving, busy * both)
        route = self._engine.route(tuple(weights), tuple(weights.values()))
        return Moved(route, nbytes / longest, max(alpha - (longest - moving), 0.0) + delay)
