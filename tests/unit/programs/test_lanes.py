"""Lanes of a rank in a process: what was awaited is forgotten, what is detached is bounded, and errors surface."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scaleproof.core.transport_errors import TransportError
from scaleproof.programs.lanes import Lanes
from scaleproof.rank_programs.effects import DETACHED, AwaitAny, Cancel, Detach, Effect, Receive, Sleep, Start
from scaleproof.transports.mailbox import Posted


@contextmanager
def lanes_of(carry_out: Any) -> Iterator[Lanes]:
    lanes = Lanes(carry_out, lambda posted: True)
    yield lanes
    lanes.close()


def seconds_of(effect: Effect, posted: Posted) -> float:
    """A result that says which effect it was."""
    assert isinstance(effect, Sleep)
    if effect.seconds < 0:
        raise ArithmeticError("no sum")
    return effect.seconds


def test_results_come_once_and_nothing_is_kept_after_that() -> None:
    with lanes_of(seconds_of) as lanes:
        first, second = (lanes.start(Start(Sleep(float(number)), number)) for number in range(2))
        assert lanes.awaited(second) == 1.0
        assert lanes.await_any(AwaitAny((first,))).value == 0.0
        assert not lanes._started and lanes.cancel(Cancel(first)) is False
        with pytest.raises(TransportError, match="awaited once: number 1 was awaited before"):
            lanes.awaited(second)


def test_only_waits_can_be_cancelled() -> None:
    with lanes_of(lambda effect, posted: None) as lanes:
        assert lanes.cancel(Cancel(lanes.start(Start(Receive(1))))) is True
        with pytest.raises(TransportError, match="not a Sleep"):
            lanes.cancel(Cancel(lanes.start(Start(Sleep(1.0)))))


def test_an_error_of_a_detached_effect_surfaces_at_the_next_one_or_at_the_end() -> None:
    with lanes_of(seconds_of) as lanes, pytest.raises(ArithmeticError, match="no sum"):
        lanes.detach(Detach(Sleep(-1.0)))
        lanes.settle()


def test_more_than_the_bound_waits_for_the_first_of_them() -> None:
    go_on, done = threading.Event(), list[float]()

    def waits(effect: Sleep, posted: Posted) -> None:
        assert go_on.wait(20)
        done.append(effect.seconds)

    with lanes_of(waits) as lanes:
        for number in range(DETACHED):
            lanes.detach(Detach(Sleep(float(number))))
        assert not done
        beyond = threading.Thread(target=lanes.detach, args=(Detach(Sleep(float(DETACHED))),))
        beyond.start()
        beyond.join(0.05)
        assert beyond.is_alive(), "it waits"
        go_on.set()
        beyond.join(20)
        lanes.settle()
        assert done == [float(number) for number in range(DETACHED + 1)] and not lanes._detached
