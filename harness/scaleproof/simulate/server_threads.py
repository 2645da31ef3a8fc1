"""The threads with which a process sends and receives, as links of the event engine: a byte that moves takes time of
a core on both sides, and messages that a process handles at one time share its threads."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from scaleproof.simulate.cost_model import HopCosts, MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.hop_classes import Hop
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.shared_cores import Moved, SharedCores


class Threads:
    """The way of messages of some costs over a network whose links come first in the engine; a link a rank follows,
    where messages take cores. `shared`: the cores on which these threads run, where others do too."""

    def __init__(
        self, engine: Engine, network: Network, costs: MessageCosts, shared: SharedCores | None = None
    ) -> None:
        self._engine, self._network, self._costs, self._shared = engine, network, costs, shared
        self._first = len(network.capacities)

    @staticmethod
    def capacities(network: Network, costs: MessageCosts, ranks: int) -> np.ndarray:
        """Of all links: bytes/s of the network's, then, of every rank, seconds of cores a second."""
        own = np.full(ranks if costs.take_cores else 0, float(costs.threads))
        return np.concatenate([network.capacities, own])

    def move(self, source: int, destination: int, nodes: tuple[int, int], nbytes: float) -> Moved:
        """A message from rank to rank, at these nodes. Alone, it takes what alpha and beta say: they were measured with
        the time of both cores in them. So what its cores need beyond the time of its bytes is taken off alpha."""
        links = self._network.route(*nodes)
        costs, alpha, beta = self._software(self._costs.hop(len(links)), nbytes)
        highest, delay = self._network.most(links, beta), self._network.delay_s(links)
        if not self._take_cores or not nbytes:
            return Moved(self._engine.route(links), highest, alpha + delay)
        sending, receiving = costs.sending.seconds(nbytes), costs.receiving.seconds(nbytes)
        busiest = max(sending, receiving)
        weights = dict.fromkeys(links, 1.0)
        for rank, seconds in ((source, sending), (destination, receiving)):
            if seconds:
                weights[self._first + rank] = seconds / nbytes
        if self._shared is not None:
            for rank, seconds in ((source, sending), (destination, receiving)):
                core = self._shared.of_rank[rank]
                weights[core] = weights.get(core, 0.0) + seconds / nbytes
        route = self._engine.route(tuple(weights), tuple(weights.values()))
        rest = max(alpha - max(busiest - nbytes / highest, 0.0), 0.0)
        return Moved(route, min(highest, nbytes / busiest) if busiest else highest, rest + delay)

    def _software(self, hop: Hop, nbytes: float) -> tuple[HopCosts, float, float]:
        """Costs on a class of hops; alpha and beta of a message: those of many ranks have the same bytes."""
        if (hop, nbytes) not in self._known:
            costs, size = self._costs.on(hop), np.array([nbytes])
            self._known[hop, nbytes] = costs, float(costs.alpha(size)[0]), float(costs.beta(size)[0])
        return self._known[hop, nbytes]

    @cached_property
    def _known(self) -> dict[tuple[Hop, float], tuple[HopCosts, float, float]]:
        return {}

    @cached_property
    def _take_cores(self) -> bool:
        return self._costs.take_cores

    def inside(self, nbytes: float) -> float:
        """Time in s of a message from a rank to itself; none where its costs are not known."""
        costs = dict(self._costs.others).get("same_process")
        if costs is None:
            return 0.0
        size = np.array([nbytes])
        return float(costs.alpha(size)[0] + costs.beta(size)[0] * nbytes)
