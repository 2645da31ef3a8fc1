"""Flows of one rank go on beside each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import AwaitAny, Effect, Ended, Receive, Send, Start, Started
from scaleproof.rank_programs.flows import Flow, beside


def waits_for(source: int, log: list[int]) -> Flow:
    value = yield Receive(source)
    log.append(value)
    yield Send(source, np.zeros(1))


def test_a_flow_that_waits_does_not_hold_up_another() -> None:
    log: list[int] = []
    together = beside([waits_for(1, log), waits_for(2, log)], first_lane=5)
    lanes: list[int] = []
    sent: list[int] = []
    effect: Effect = next(together)
    numbers = iter(range(10))
    pending: dict[int, Started] = {}
    ended: list[Started] = []
    while True:
        result: Any = None
        if isinstance(effect, Start):
            lanes.append(effect.lane)
            result = Started(next(numbers))
            if isinstance(effect.effect, Receive):
                pending[effect.effect.source] = result
            else:
                assert isinstance(effect.effect, Send)
                sent.append(effect.effect.peer)
                ended.append(result)
        elif isinstance(effect, AwaitAny):
            if ended:
                result = Ended(ended.pop(), None)
            else:
                source = max(pending)  # what the second flow waits for comes first
                result = Ended(pending.pop(source), source * 10)
        try:
            effect = together.send(result)
        except StopIteration:
            break
    assert lanes == [5, 6, 2, 1], "receives on lanes of their flows, sends on those of peers"
    assert log == [20, 10]
    assert sent == [2, 1]


def sends(count: int, log: list[str]) -> Flow:
    for number in range(count):
        yield Send(number % 2, np.zeros(1))
        log.append(f"sent {number}")


def test_a_flow_goes_on_while_its_sends_are_under_way_up_to_the_window() -> None:
    log: list[str] = []
    together, under_way, most = beside([sends(6, log)], window=3), list[Started](), 0
    effect, numbers = next(together), iter(range(10))
    while True:
        result: Any = None
        if isinstance(effect, Start):
            result = Started(next(numbers))
            under_way.append(result)
            most = max(most, len(under_way))
        elif isinstance(effect, AwaitAny):
            assert [each.number for each in effect.started] == [each.number for each in under_way]
            log.append("ended")
            result = Ended(under_way.pop(0), None)
        try:
            effect = together.send(result)
        except StopIteration:
            break
    assert most == 3 and not under_way, "all have ended when the flow has"
    assert log[:5] == ["sent 0", "sent 1", "sent 2", "ended", "sent 3"]
