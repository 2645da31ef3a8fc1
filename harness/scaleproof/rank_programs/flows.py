"""Several sequences of effects of one rank beside each other: where one waits for a message, the others go on."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from scaleproof.rank_programs.effects import AwaitAny, AwaitFlag, Effect, Ended, Receive, Send, Start, Started

Flow = Generator[Effect, Any, None]


def beside(flows: Sequence[Flow], first_lane: int = 0) -> Flow:
    """Carries out all flows to their ends. Each flow waits on a lane of its own, from `first_lane` on, and sends on the
    lane of the peer, so that flows share a link; other effects are carried out in the order in which flows come to
    them."""
    waiting: dict[int, tuple[int, Started]] = {}
    for number, flow in enumerate(flows):
        yield from _until_it_waits(flow, None, number, first_lane, waiting)
    while waiting:
        ended: Ended = yield AwaitAny(tuple(started for _, started in waiting.values()))
        number, _ = waiting.pop(ended.started.number)
        yield from _until_it_waits(flows[number], ended.value, number, first_lane, waiting)


def _until_it_waits(
    flow: Flow, value: Any, number: int, first_lane: int, waiting: dict[int, tuple[int, Started]]
) -> Flow:
    while True:
        try:
            effect = flow.send(value)
        except StopIteration:
            return
        if isinstance(effect, Receive | AwaitFlag | Send):
            lane = effect.peer if isinstance(effect, Send) else first_lane + number
            started: Started = yield Start(effect, lane)
            waiting[started.number] = number, started
            return
        value = yield effect
