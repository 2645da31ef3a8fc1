"""When collective calls start and end on every rank: computed round by round if no two messages can share a link,
otherwise in the event engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine_calls import run_calls
from scaleproof.simulate.link_network import Network


class Exchange:
    """Runs calls over a network. `nodes`: the node of each rank; `free`: when each rank's channels are free, in s.

    `symmetry` False: symmetric rounds are computed one by one, to check the shortcut."""

    def __init__(
        self, network: Network, nodes: Sequence[int], costs: MessageCosts, channels: int = 1, symmetry: bool = True
    ) -> None:
        self.network, self.nodes, self.costs = network, np.array(nodes), costs
        self.symmetry = symmetry
        self.free = np.zeros((channels, len(nodes)))
        alone = channels == 1 and len(set(nodes)) == len(nodes) and network.star is not None
        self._star = tuple(part[self.nodes] for part in network.star) if alone and network.star is not None else None

    def run(self, calls: Sequence[Call]) -> None:
        """Fill in `start` and `end`. Calls of one channel run in the order of `calls`. A rank starts a call when its
        input is ready and its channel is free."""
        if self._star is not None and self.exact([call.pattern for call in calls]):
            for call in calls:
                call.start = np.maximum(call.ready, self.free[0])
                call.end = self._in_step(call.pattern, call.nbytes, call.start, self._star)
                self.free[0] = call.end
            return
        run_calls(self.network, self.nodes.tolist(), self.costs, calls, self.free)

    def exact(self, patterns: Iterable[Pattern]) -> bool:
        """Whether no two messages of such calls can share a link."""
        return self._star is not None and all(pattern.exclusive for pattern in patterns)

    def _in_step(self, pattern: Pattern, nbytes: float, start: np.ndarray, star: tuple[np.ndarray, ...]) -> np.ndarray:
        """Exact on a star with one rank per node: a message starts when both its ends have reached its round, so every
        link carries one message at a time."""
        at = start.copy()
        for round_, times in pattern.rounds:
            sent, reduced = self._message_s(round_, nbytes, star)
            duration = sent + reduced
            together = (
                self.symmetry
                and at.min() == at.max()
                and duration.min() == duration.max()
                and round_.symmetric(len(at))
            )
            if together:
                at += times * duration[0]
                continue
            for _ in range(times):
                arrived = np.maximum(at[round_.source], at[round_.destination]) + sent
                at[round_.source] = arrived
                at[round_.destination] = np.maximum(at[round_.destination], arrived + reduced)
        return at

    def _message_s(self, round_: Round, nbytes: float, star: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
        up, down, delay = star
        size = round_.share * nbytes
        rate = np.minimum(up[round_.source], down[round_.destination])
        sent = (
            self.costs.alpha(size)
            + delay[round_.source]
            + delay[round_.destination]
            + size * np.maximum(self.costs.beta(size), 1 / rate)
        )
        return sent, np.where(round_.reduces, self.costs.gamma * size, 0.0)
