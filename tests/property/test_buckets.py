"""Buckets hold every gradient once; strategies exchange each bucket once, complete, and in the same order on every
rank."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.core.board import LINE, Post
from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import PeerLost
from scaleproof.strategies.buckets import ALIGN, ITEM, Parameter, allocate, plan
from scaleproof.strategies.channel_threads import ChannelThreads
from scaleproof.strategies.communication_thread import CommunicationThread
from scaleproof.strategies.local_only import LocalOnly
from scaleproof.strategies.main_thread_sender import MainThreadSender
from scaleproof.strategies.sync import Sync
from scaleproof.strategies.sync_overlap import SyncOverlap
from scaleproof.transports.contract import Collectives, Done
from tests.short_form import case_from

CASE = {
    "program": "train",
    "suite": "s",
    "experiment": "e",
    "arm": "a",
    "transport": "tcp",
    "collective": "ring",
    "strategy": "sync",
    "workload": "dnn_digits",
    "steps": 1,
}
SIZES = st.lists(st.integers(1, 5000), min_size=1, max_size=12)
LIMIT = st.floats(1, 40_000)


def parameters_of(sizes: list[int]) -> list[Parameter]:
    return [Parameter(f"p{number}", size) for number, size in enumerate(sizes)]


def plain(nbytes: int) -> np.ndarray:
    return np.full(nbytes, 255, np.uint8)


class FakeRecorder:
    """A recorder that keeps only the names of events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def add(self, event: str, *_: Any, **__: Any) -> None:
        self.events.append(event)

    @contextlib.contextmanager
    def span(self, event: str, *_: Any) -> Iterator[None]:
        yield
        self.events.append(event)


class FakeContext:
    """The part of a RankContext that strategies use."""

    def __init__(self, world_size: int = 2) -> None:
        self.world_size, self.recorder = world_size, FakeRecorder()
        self.post = Post(memoryview(bytearray(LINE)).cast("q"))
        self.case = case_from({**CASE, "ranks": world_size, "minibatch": world_size})
        self.rank, self.facts = 0, dict[str, Any]()

    def at(self, *_: Any) -> None:
        """A heartbeat that does nothing."""


class DoublingGroup:
    """A transport of two ranks with equal contributions, so that a sum doubles. Remembers the reduced arrays."""

    def __init__(self, fail_at: int = -1) -> None:
        self.reduced: list[np.ndarray] = []
        self._fail_at = fail_at

    def allocate(self, nbytes: int) -> np.ndarray:
        return plain(nbytes)

    def all_reduce(self, buffer: np.ndarray) -> Done:
        if len(self.reduced) == self._fail_at:
            raise PeerLost(1, "rank 1 is gone")
        self.reduced.append(buffer.copy())
        buffer *= 2
        return Done()


def make(
    kind: type[Sync] | type[SyncOverlap], sizes: list[int], limit: float, group: DoublingGroup
) -> Sync | SyncOverlap:
    return kind(cast(RankContext, FakeContext()), cast(Collectives, group), parameters_of(sizes), limit / (1 << 20))


@given(SIZES, LIMIT)
def test_every_parameter_is_in_one_bucket_in_backward_order(sizes: list[int], limit: float) -> None:
    groups = plan(parameters_of(sizes), limit)
    assert [index for group in groups for index in group] == list(reversed(range(len(sizes))))


@given(SIZES, LIMIT)
def test_a_bucket_is_closed_when_it_holds_the_limit(sizes: list[int], limit: float) -> None:
    def nbytes(members: list[int]) -> int:
        return sum(-(-sizes[index] // ALIGN) * ALIGN * ITEM for index in members)

    groups = plan(parameters_of(sizes), limit)
    assert all(nbytes(group) >= limit for group in groups[:-1])
    assert all(nbytes(group[:-1]) < limit for group in groups)


@given(SIZES, LIMIT, st.integers(1, 7))
def test_buckets_divide_into_equal_parts(sizes: list[int], limit: float, parts: int) -> None:
    buckets, views = allocate(parameters_of(sizes), limit, plain, parts)
    assert all(bucket.buffer.size % parts == 0 for bucket in buckets)
    assert sum(bucket.buffer.size for bucket in buckets) < sum(
        -(-view.size // ALIGN) * ALIGN for view in views
    ) + parts * len(buckets)


@given(SIZES, LIMIT)
def test_views_are_aligned_apart_and_part_of_their_bucket(sizes: list[int], limit: float) -> None:
    buckets, views = allocate(parameters_of(sizes), limit, plain)
    assert all(not bucket.buffer.any() for bucket in buckets)
    for index, view in enumerate(views):
        assert view.size == sizes[index]
        assert not view.any()
        view[:] = index + 1
    for bucket in buckets:
        for index in bucket.members:
            assert (views[index].ctypes.data - bucket.buffer.ctypes.data) % (ALIGN * ITEM) == 0
            assert np.count_nonzero(bucket.buffer == index + 1) == sizes[index]


@pytest.mark.parametrize("kind", [Sync, SyncOverlap])
@given(SIZES, LIMIT, st.randoms(use_true_random=False))
def test_each_bucket_leaves_once_complete_and_in_order_for_any_order_of_gradients(
    kind: type[Sync] | type[SyncOverlap], sizes: list[int], limit: float, random: Any
) -> None:
    group = DoublingGroup()
    strategy = make(kind, sizes, limit, group)
    stepped: list[bool] = []
    for step in range(2):
        strategy.begin(step)
        order = list(range(len(sizes)))
        random.shuffle(order)
        for index in order:
            strategy.gradients[index][:] = index + 1
            strategy.gradient_ready(index)
        strategy.finish(lambda: stepped.append(True))
        assert all((view == 2 * (index + 1)).all() for index, view in enumerate(strategy.gradients))
    members = [bucket.members for bucket in strategy.buckets]
    assert [set(np.unique(buffer)) - {0} for buffer in group.reduced] == [
        {index + 1 for index in group_members} for group_members in members * 2
    ]
    assert len(stepped) == 2
    strategy.close()


@given(SIZES)
def test_the_sum_of_scaled_gradients_is_the_gradient_of_the_global_mean(sizes: list[int]) -> None:
    strategy = make(Sync, sizes, 1e6, DoublingGroup())
    assert strategy.gradient_scale * 2 == 1.0
    assert LocalOnly(cast(RankContext, FakeContext()), None, parameters_of(sizes), 1.0).gradient_scale == 1.0


def test_an_error_of_the_communication_thread_is_raised_in_finish_before_any_step() -> None:
    strategy = make(SyncOverlap, [100, 100, 100], 1, DoublingGroup(fail_at=1))
    strategy.begin(0)
    for index in (2, 1, 0):
        strategy.gradient_ready(index)
    stepped: list[bool] = []
    with pytest.raises(PeerLost, match="rank 1 is gone"):
        strategy.finish(lambda: stepped.append(True))
    assert not stepped
    strategy.close()


def test_a_backward_pass_that_forgets_a_gradient_is_an_error() -> None:
    strategy = make(SyncOverlap, [100, 100], 1, DoublingGroup())
    strategy.begin(0)
    strategy.gradient_ready(1)
    with pytest.raises(RuntimeError, match="1 of 2 buckets incomplete"):
        strategy.finish(lambda: None)
    strategy.close()


@pytest.mark.parametrize("kind", [Sync, SyncOverlap])
def test_every_exchange_is_recorded_after_the_step_and_the_update_comes_last_in_it(
    kind: type[Sync] | type[SyncOverlap],
) -> None:
    strategy = make(kind, [100, 100, 100], 1, DoublingGroup())
    strategy.begin(0)
    for index in (2, 1, 0):
        strategy.gradient_ready(index)
    strategy.finish(lambda: None)
    events = cast(FakeContext, strategy.context).recorder.events
    assert events == ["wait", "update"]
    strategy.report()
    strategy.report()
    assert events[2:] == ["queue", "communication"] * 3
    strategy.close()


class Slow:
    """A call that is completed after a number of tests."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def test(self) -> bool:
        self.looks -= 1
        return self.looks <= 0

    def wait(self) -> None:
        self.looks = 0

    def itself(self) -> Slow:
        return self


def test_the_main_thread_moves_its_calls_when_it_looks_again_between_layers() -> None:
    sender, calls = MainThreadSender(polls=True), [Slow(2), Slow(1), Slow(3)]
    numbers = [sender.submit(8 * index, cast(Any, call).itself) for index, call in enumerate(calls)]
    sender.poll()
    assert [call.looks for call in calls] == [1, 1, 3], "the second call is behind the first"
    sender.poll()
    assert [call.looks for call in calls] == [0, 0, 2]
    sender.wait(numbers[1])
    assert calls[2].looks == 2
    completed = sender.drain()
    assert [exchange.nbytes for exchange in completed] == [0, 8, 16] and calls[2].looks == 0
    assert sender.submit(0, lambda: Slow(1)) == 0


def test_a_strategy_that_does_not_poll_leaves_calls_to_the_transport() -> None:
    sender, call = MainThreadSender(), Slow(5)
    sender.submit(0, lambda: call)
    sender.poll()
    assert call.looks == 5
    sender.drain()


def test_the_communication_thread_makes_calls_in_order_and_waits_for_one_of_them() -> None:
    made: list[int] = []

    def call(number: int) -> Done:
        made.append(number)
        return Done()

    sender = CommunicationThread()
    numbers = [sender.submit(number, lambda number=number: call(number)) for number in range(5)]  # type: ignore[misc]
    sender.wait(numbers[2])
    assert made[:3] == [0, 1, 2]
    assert [exchange.nbytes for exchange in sender.drain()] == made == [0, 1, 2, 3, 4]
    sender.close()


def test_threads_of_channels_make_calls_at_the_same_time_and_return_their_times_in_order() -> None:
    second_runs = threading.Event()

    def call(number: int) -> Done:
        if number == 1:
            second_runs.set()
        assert number or second_runs.wait(30), "the first call runs until the second one does"
        return Done()

    sender = ChannelThreads([CommunicationThread(), CommunicationThread()])
    for _ in range(2):
        numbers = [sender.submit(number, partial(call, number)) for number in range(5)]
        sender.wait(numbers[3])
        assert [exchange.nbytes for exchange in sender.drain()] == numbers == [0, 1, 2, 3, 4]
        second_runs.clear()
    sender.close()
