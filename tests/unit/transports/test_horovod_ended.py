"""What a call does that Horovod never completes, and how the end of Horovod's threads is seen."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from scaleproof.core.transport_errors import PeerLost
from scaleproof.transports.horovod import framework_bindings
from scaleproof.transports.horovod.framework_bindings import TASKS, _TorchCall, started_threads


def call_of(polls: list[bool], ended: bool) -> tuple[_TorchCall, list[float]]:
    """A call that polls as told, the last answer for ever, and what it got as its result."""
    answers = iter(polls)
    hvd = SimpleNamespace(
        poll=lambda handle: next(answers, polls[-1]),
        synchronize=lambda handle: SimpleNamespace(numpy=lambda: np.ones(1)),
    )
    results: list[float] = []
    return _TorchCall(Mock(), hvd, 0, lambda array: results.append(array[0]), lambda: ended), results


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework_bindings, "LOOK_S", -1.0)


def test_a_call_that_horovod_left_behind_is_a_lost_peer() -> None:
    call, _ = call_of([False], ended=True)
    with pytest.raises(PeerLost, match="while this call was submitted"):
        call.wait()


def test_a_call_that_was_completed_just_before_the_end_has_its_result() -> None:
    call, results = call_of([False, True], ended=True)
    call.wait()
    assert results == [1.0]


def test_a_slow_call_is_waited_for() -> None:
    call, results = call_of([False] * 20 + [True], ended=False)
    call.wait()
    assert results == [1.0]


def test_threads_that_a_call_starts_are_seen_until_they_end() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    before = (TASKS / str(threading.get_native_id()) / "comm").read_text()
    tasks = started_threads(thread.start, "started-here")
    assert tasks == [str(thread.native_id)]
    assert (TASKS / str(threading.get_native_id()) / "comm").read_text() == before
    stop.set()
    thread.join()
    until = time.monotonic() + 5
    while (TASKS / tasks[0]).exists():
        assert time.monotonic() < until
        time.sleep(0.01)
