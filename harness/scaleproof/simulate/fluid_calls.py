"""The general engine of collective calls: each message is a flow that begins when both its ends are in its round."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from scaleproof.simulate.collective_call import Call
from scaleproof.simulate.collective_schedules import Pattern
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.fluid_flows import Flows
from scaleproof.simulate.link_network import Network


class FluidCalls:
    """Runs calls to their end. Several channels of a rank work side by side and share its links."""

    def __init__(self, network: Network, nodes: np.ndarray, costs: MessageCosts) -> None:
        self._network, self._nodes, self._costs = network, nodes, costs
        self.flows = Flows(network.capacities)

    def run(self, calls: Sequence[Call], free: np.ndarray) -> None:
        """Fill in the calls' starts and ends; `free` (a row per channel, a column per rank) is brought up to date."""
        ranks = free.shape[1]
        queues = [
            [[number for number, call in enumerate(calls) if call.channel == channel] for _ in range(ranks)]
            for channel in range(len(free))
        ]
        runs = [_Run(call, self._messages(call), self._send) for call in calls]

        def go_on(channel: int, rank: int) -> None:
            """The channel is free: its next call starts when the rank is ready."""
            free[channel, rank] = self.flows.now
            if queues[channel][rank]:
                one = runs[queues[channel][rank].pop(0)]
                self.flows.at(float(one.call.ready[rank]), partial(one.enter, rank, partial(go_on, channel, rank)))

        for call in calls:
            call.start, call.end = np.zeros(ranks), np.zeros(ranks)
        for channel in range(len(free)):
            for rank in range(ranks):
                if queues[channel][rank]:
                    self.flows.at(float(free[channel, rank]), partial(go_on, channel, rank))
        self.flows.run()

    def opened(self, call: Call) -> _Run:
        """A call that ranks enter one by one while `flows` runs."""
        call.start, call.end = np.zeros(call.pattern.ranks), np.zeros(call.pattern.ranks)
        return _Run(call, self._messages(call), self._send)

    def message(self, source: int, destination: int, nbytes: float, done: partial[None]) -> None:
        """One by itself, from now on."""
        size = np.array([nbytes])
        self._send(
            source, destination, nbytes, float(self._costs.alpha(size)[0]), float(self._costs.beta(size)[0]), done
        )

    def _send(
        self, source: int, destination: int, nbytes: float, alpha: float, beta: float, done: partial[None]
    ) -> None:
        route = self._network.route(int(self._nodes[source]), int(self._nodes[destination]))
        self.flows.at(
            self.flows.now + alpha + self._network.delay_s(route),
            partial(self.flows.send, nbytes, route, self._network.most(route, beta), done),
        )

    def _messages(self, call: Call) -> _Messages:
        plan = compiled(call.pattern)
        size = plan.share * call.nbytes
        return _Messages(
            plan,
            size,
            self._costs.alpha(size),
            self._costs.beta(size),
            np.where(plan.reduces, self._costs.gamma * size, 0.0),
            self.flows,
        )


class _Plan:
    """A pattern message by message; `rounds`: per rank, the numbers of its messages in each of its rounds."""

    def __init__(self, pattern: Pattern) -> None:
        parts = [one for one, times in pattern.rounds for _ in range(times)]
        self.source = np.concatenate([one.source for one in parts]) if parts else np.empty(0, np.int64)
        self.destination = np.concatenate([one.destination for one in parts]) if parts else np.empty(0, np.int64)
        self.share = np.concatenate([one.share for one in parts]) if parts else np.empty(0)
        self.reduces = np.concatenate([one.reduces for one in parts]) if parts else np.empty(0, bool)
        self.rounds: list[list[list[int]]] = [[] for _ in range(pattern.ranks)]
        first = 0
        for one in parts:
            inside: dict[int, list[int]] = {}
            for offset, (source, destination) in enumerate(
                zip(one.source.tolist(), one.destination.tolist(), strict=True)
            ):
                inside.setdefault(source, []).append(first + offset)
                inside.setdefault(destination, []).append(first + offset)
            for rank, numbers in inside.items():
                self.rounds[rank].append(numbers)
            first += len(one.source)


@lru_cache(maxsize=16)
def compiled(pattern: Pattern) -> _Plan:
    """The plan of a pattern, kept; patterns are told apart by identity."""
    return _Plan(pattern)


class _Messages:
    """The messages of one call with their costs, in s."""

    def __init__(
        self, plan: _Plan, size: np.ndarray, alpha: np.ndarray, beta: np.ndarray, reduce_s: np.ndarray, flows: Flows
    ) -> None:
        self.plan, self.flows = plan, flows
        self.source, self.destination = plan.source.tolist(), plan.destination.tolist()
        self.size, self.alpha, self.beta, self.reduce_s = (
            size.tolist(),
            alpha.tolist(),
            beta.tolist(),
            reduce_s.tolist(),
        )


class _Run:
    """One call under way: where each rank stands in its rounds."""

    def __init__(self, call: Call, messages: _Messages, send) -> None:  # type: ignore[no-untyped-def]
        self.call, self._messages, self._send = call, messages, send
        self._here = [0] * len(messages.size)
        """How many ends of each message are in its round."""
        self._round = [-1] * call.pattern.ranks
        self._missing = [0] * call.pattern.ranks
        self._then: dict[int, partial[None]] = {}

    def enter(self, rank: int, then: partial[None]) -> None:
        """The rank starts the call; `then` is called at its end."""
        self.call.start[rank] = self._messages.flows.now
        self._then[rank] = then
        self._next_round(rank)

    def _next_round(self, rank: int) -> None:
        self._round[rank] += 1
        rounds = self._messages.plan.rounds[rank]
        if self._round[rank] == len(rounds):
            self.call.end[rank] = self._messages.flows.now
            self._then.pop(rank)()
            return
        numbers = rounds[self._round[rank]]
        self._missing[rank] = len(numbers)
        for number in numbers:
            self._here[number] += 1
            if self._here[number] == 2:
                parts = self._messages
                self._send(
                    parts.source[number],
                    parts.destination[number],
                    parts.size[number],
                    parts.alpha[number],
                    parts.beta[number],
                    partial(self._over, number),
                )

    def _over(self, number: int) -> None:
        parts = self._messages
        self._got(parts.source[number])
        if parts.reduce_s[number]:
            parts.flows.at(parts.flows.now + parts.reduce_s[number], partial(self._got, parts.destination[number]))
        else:
            self._got(parts.destination[number])

    def _got(self, rank: int) -> None:
        self._missing[rank] -= 1
        if not self._missing[rank]:
            self._next_round(rank)
