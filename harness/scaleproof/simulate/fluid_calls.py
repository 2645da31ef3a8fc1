"""The general engine of collective calls: each message is a flow that begins when both ends have reached its round."""

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
    """Runs calls to their end. The channels of a rank run concurrently and share its links."""

    def __init__(self, network: Network, nodes: np.ndarray, costs: MessageCosts) -> None:
        self._network, self._nodes, self._costs = network, nodes, costs
        self.flows = Flows(network.capacities)

    def run(self, calls: Sequence[Call], free: np.ndarray) -> None:
        """Fill in the calls' starts and ends, and update `free` (a row per channel, a column per rank)."""
        ranks = free.shape[1]
        queues = [
            [[number for number, call in enumerate(calls) if call.channel == channel] for _ in range(ranks)]
            for channel in range(len(free))
        ]
        runs = [_Run(call, self._messages(call), self._send) for call in calls]

        def start_next(channel: int, rank: int) -> None:
            """The channel is free: its next call starts when the rank is ready."""
            free[channel, rank] = self.flows.now
            if queues[channel][rank]:
                run = runs[queues[channel][rank].pop(0)]
                self.flows.at(float(run.call.ready[rank]), partial(run.enter, rank, partial(start_next, channel, rank)))

        for call in calls:
            call.start, call.end = np.zeros(ranks), np.zeros(ranks)
        for channel in range(len(free)):
            for rank in range(ranks):
                if queues[channel][rank]:
                    self.flows.at(float(free[channel, rank]), partial(start_next, channel, rank))
        self.flows.run()

    def opened(self, call: Call) -> _Run:
        """A call that ranks enter individually while `flows` runs."""
        call.start, call.end = np.zeros(call.pattern.ranks), np.zeros(call.pattern.ranks)
        return _Run(call, self._messages(call), self._send)

    def message(self, source: int, destination: int, nbytes: float, arrived: partial[None]) -> None:
        """Sends a single message now; `arrived` is called at its end."""
        size = np.array([nbytes])
        self._send(
            source, destination, nbytes, float(self._costs.alpha(size)[0]), float(self._costs.beta(size)[0]), arrived
        )

    def _send(
        self, source: int, destination: int, nbytes: float, alpha: float, beta: float, arrived: partial[None]
    ) -> None:
        route = self._network.route(int(self._nodes[source]), int(self._nodes[destination]))
        self.flows.at(
            self.flows.now + alpha + self._network.delay_s(route),
            partial(self.flows.send, nbytes, route, self._network.most(route, beta), arrived),
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
    """A pattern as single messages. `rounds`: per rank, the message numbers of each of its rounds."""

    def __init__(self, pattern: Pattern) -> None:
        rounds = [round_ for round_, times in pattern.rounds for _ in range(times)]
        self.source = np.concatenate([round_.source for round_ in rounds]) if rounds else np.empty(0, np.int64)
        self.destination = (
            np.concatenate([round_.destination for round_ in rounds]) if rounds else np.empty(0, np.int64)
        )
        self.share = np.concatenate([round_.share for round_ in rounds]) if rounds else np.empty(0)
        self.reduces = np.concatenate([round_.reduces for round_ in rounds]) if rounds else np.empty(0, bool)
        self.rounds: list[list[list[int]]] = [[] for _ in range(pattern.ranks)]
        first = 0
        for round_ in rounds:
            inside: dict[int, list[int]] = {}
            for offset, (source, destination) in enumerate(
                zip(round_.source.tolist(), round_.destination.tolist(), strict=True)
            ):
                inside.setdefault(source, []).append(first + offset)
                inside.setdefault(destination, []).append(first + offset)
            for rank, numbers in inside.items():
                self.rounds[rank].append(numbers)
            first += len(round_.source)


@lru_cache(maxsize=16)
def compiled(pattern: Pattern) -> _Plan:
    """The cached plan of a pattern; patterns are compared by identity."""
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
    """A call in progress: the current round of each rank."""

    def __init__(self, call: Call, messages: _Messages, send) -> None:  # type: ignore[no-untyped-def]
        self.call, self._messages, self._send = call, messages, send
        self._ends_ready = [0] * len(messages.size)
        """How many ends of each message have reached its round."""
        self._round = [-1] * call.pattern.ranks
        self._missing = [0] * call.pattern.ranks
        self._callbacks: dict[int, partial[None]] = {}

    def enter(self, rank: int, then: partial[None]) -> None:
        """The rank starts the call; `then` is called when the call ends on it."""
        self.call.start[rank] = self._messages.flows.now
        self._callbacks[rank] = then
        self._next_round(rank)

    def _next_round(self, rank: int) -> None:
        self._round[rank] += 1
        rounds = self._messages.plan.rounds[rank]
        if self._round[rank] == len(rounds):
            self.call.end[rank] = self._messages.flows.now
            self._callbacks.pop(rank)()
            return
        numbers = rounds[self._round[rank]]
        self._missing[rank] = len(numbers)
        for number in numbers:
            self._ends_ready[number] += 1
            if self._ends_ready[number] == 2:
                parts = self._messages
                self._send(
                    parts.source[number],
                    parts.destination[number],
                    parts.size[number],
                    parts.alpha[number],
                    parts.beta[number],
                    partial(self._sent, number),
                )

    def _sent(self, number: int) -> None:
        parts = self._messages
        self._message_ended(parts.source[number])
        if parts.reduce_s[number]:
            parts.flows.at(
                parts.flows.now + parts.reduce_s[number], partial(self._message_ended, parts.destination[number])
            )
        else:
            self._message_ended(parts.destination[number])

    def _message_ended(self, rank: int) -> None:
        self._missing[rank] -= 1
        if not self._missing[rank]:
            self._next_round(rank)
