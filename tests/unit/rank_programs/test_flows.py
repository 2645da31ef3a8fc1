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
    while True:
        result: Any = None
        if isinstance(effect, Start):
            assert isinstance(effect.effect, Receive)
            lanes.append(effect.lane)
            result = Started(next(numbers))
            pending[effect.effect.source] = result
        elif isinstance(effect, AwaitAny):
            source = max(pending)  # what the second flow waits for comes first
            result = Ended(pending.pop(source), source * 10)
        elif isinstance(effect, Send):
            sent.append(effect.peer)
        try:
            effect = together.send(result)
        except StopIteration:
            break
    assert lanes == [5, 6]
    assert log == [20, 10]
    assert sent == [2, 1]
