"""Several sequences of effects of one rank beside each other: where one waits for a message, the others go on."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from scaleproof.rank_programs.effects import AwaitAny, AwaitFlag, Effect, Ended, Receive, Send, Start, Started

Flow = Generator[Effect, Any, None]
WINDOW = 4
"""Sends of a flow that are under way at most: enough that its links have always something to send, to every peer."""


@dataclass(eq=False)
class _Line:
    """A flow with what it has under way. `held`: a send that waits until an earlier one has ended."""

    flow: Flow
    lane: int
    sends: int = 0
    held: Send | None = None


_Waiting = dict[int, tuple[_Line, Started, bool]]
"""By number of the started effect: whose it is, and whether it is a send."""


def beside(flows: Sequence[Flow], first_lane: int = 0, window: int = WINDOW) -> Flow:
    """Carries out all flows to their ends. Each flow waits on a lane of its own, from `first_lane` on, and sends on the
    lane of the peer, so that flows share a link; other effects are carried out in the order in which flows come to
    them. A flow does not wait for its sends, but for the oldest where `window` are under way: what it has sent must
    stay as it is until then."""
    waiting: _Waiting = {}
    for number, flow in enumerate(flows):
        yield from _until_it_waits(_Line(flow, first_lane + number), None, window, waiting)
    while waiting:
        ended: Ended = yield AwaitAny(tuple(started for _, started, _ in waiting.values()))
        line, _, sent = waiting.pop(ended.started.number)
        if not sent:
            yield from _until_it_waits(line, ended.value, window, waiting)
            continue
        line.sends -= 1
        if line.held is not None:
            effect, line.held = line.held, None
            yield from _send(line, effect, waiting)
            yield from _until_it_waits(line, None, window, waiting)


def _until_it_waits(line: _Line, value: Any, window: int, waiting: _Waiting) -> Flow:
    while True:
        try:
            effect = line.flow.send(value)
        except StopIteration:
            return
        if isinstance(effect, Receive | AwaitFlag):
            started: Started = yield Start(effect, line.lane)
            waiting[started.number] = line, started, False
            return
        if not isinstance(effect, Send):
            value = yield effect
        elif line.sends == window:
            line.held = effect
            return
        else:
            yield from _send(line, effect, waiting)
            value = None


def _send(line: _Line, effect: Send, waiting: _Waiting) -> Flow:
    started: Started = yield Start(effect, effect.peer)
    waiting[started.number] = line, started, True
    line.sends += 1
