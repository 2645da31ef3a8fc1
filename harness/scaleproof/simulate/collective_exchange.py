"""When collective calls start and end on every rank: in step where no two messages can meet on a link, else by the
fluid engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_schedules import Pattern, Round
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.fluid_calls import FluidCalls
from scaleproof.simulate.link_network import Network


class Exchange:
    """Runs calls over a network. `nodes`: the node of each rank; `free`: when each rank's channels are free, in s.

    `symmetry` False: nothing is shortened, for comparison."""

    def __init__(
        self, network: Network, nodes: Sequence[int], costs: MessageCosts, channels: int = 1, symmetry: bool = True
    ) -> None:
        self.network, self.nodes, self.costs = network, np.array(nodes), costs
        self.symmetry = symmetry
        self.free = np.zeros((channels, len(nodes)))
        alone = channels == 1 and len(set(nodes)) == len(nodes) and network.star is not None
        self._star = tuple(part[self.nodes] for part in network.star) if alone and network.star is not None else None

    def run(self, calls: Sequence[Call]) -> None:
        """Fill in `start` and `end`. Calls of one channel go in the order given; a rank starts one when it is ready and
        its channel is free."""
        if self._star is not None and all(call.pattern.exclusive for call in calls):
            for call in calls:
                call.start = np.maximum(call.ready, self.free[0])
                call.end = self._in_step(call.pattern, call.nbytes, call.start, self._star)
                self.free[0] = call.end
            return
        FluidCalls(self.network, self.nodes, self.costs).run(calls, self.free)

    def _in_step(self, pattern: Pattern, nbytes: float, start: np.ndarray, star: tuple[np.ndarray, ...]) -> np.ndarray:
        """Exact on a star with a rank a node: a message goes when both its ends are in its round, so every link carries
        one at a time."""
        at = start.copy()
        for one, times in pattern.rounds:
            sent, reduced = self._message_s(one, nbytes, star)
            whole = sent + reduced
            together = self.symmetry and at.min() == at.max() and whole.min() == whole.max() and one.symmetric(len(at))
            if together:
                at += times * whole[0]
                continue
            for _ in range(times):
                done = np.maximum(at[one.source], at[one.destination]) + sent
                at[one.source] = done
                at[one.destination] = np.maximum(at[one.destination], done + reduced)
        return at

    def _message_s(self, one: Round, nbytes: float, star: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
        up, down, delay = star
        size = one.share * nbytes
        rate = np.minimum(up[one.source], down[one.destination])
        sent = (
            self.costs.alpha(size)
            + delay[one.source]
            + delay[one.destination]
            + size * np.maximum(self.costs.beta(size), 1 / rate)
        )
        return sent, np.where(one.reduces, self.costs.gamma * size, 0.0)
