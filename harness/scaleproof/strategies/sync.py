"""Synchronous SGD without overlap: after the backward pass all buckets are all-reduced, one after the other, on several
channels side by side, or all at once if the transport fuses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from time import monotonic_ns as now
from typing import TYPE_CHECKING

from scaleproof.rank_programs.effects import Compute
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.base import Strategy
from scaleproof.strategies.buckets import Parameter
from scaleproof.strategies.channel_threads import ChannelThreads
from scaleproof.strategies.communication_thread import CommunicationThread
from scaleproof.strategies.main_thread_sender import MainThreadSender
from scaleproof.strategies.sender import Exchange
from scaleproof.strategies.step_program import Passed, Plan, Step, calls_of, end_of_step, start_all
from scaleproof.strategies.strategy_options import ExchangeOptions, check_exchange
from scaleproof.transports.contract import Collectives

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class Sync(Strategy):
    """Blocking calls: all communication is exposed. With one channel the main thread makes them, else a thread for each
    channel."""

    def __init__(
        self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float
    ) -> None:
        super().__init__(context, group, parameters, bucket_mib)
        several = len(self.channels) > 1
        self._threads = ChannelThreads([CommunicationThread() for _ in self.channels]) if several else None

    def gradient_ready(self, index: int) -> None:
        """Nothing to do before all gradients are ready."""

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy."""
        assert self.group is not None
        self.context.at(self.step, "all_reduce")
        start = now()
        if self._threads is not None:
            self.exchanges = self._side_by_side(self._threads)
        else:
            self.exchanges = self._all_at_once(self.group) if self.fused else self._one_by_one(self.group, start)
        self.context.recorder.add("wait", self.step, start, max(exchange.end_ns for exchange in self.exchanges))
        self.apply(update)

    def close(self) -> None:
        """See Strategy."""
        if self._threads is not None:
            self._threads.close()
        super().close()

    def _side_by_side(self, threads: ChannelThreads) -> list[Exchange]:
        for number, bucket in enumerate(self.buckets):
            threads.submit(bucket.nbytes, partial(self.all_reduce, number))
        self.context.post.wait()
        return threads.drain()

    def _one_by_one(self, group: Collectives, start: int) -> list[Exchange]:
        moments = [start]
        for bucket in self.buckets:
            group.all_reduce(bucket.buffer).wait()
            moments.append(now())
        return [
            Exchange(start, before, after, bucket.nbytes)
            for bucket, (before, after) in zip(self.buckets, pairwise(moments), strict=True)
        ]

    def _all_at_once(self, group: Collectives) -> list[Exchange]:
        sender = MainThreadSender()
        for bucket in self.buckets:
            sender.submit(bucket.nbytes, partial(group.all_reduce, bucket.buffer))
        return sender.drain()


def simulated_step(plan: Plan, passed: Passed, update: Compute, across: bool) -> Step:
    """All buckets are sent after the backward pass."""
    for _, before, after in passed:
        yield Compute(before + after, event="backward")
    calls = yield from start_all(calls_of(plan))
    return (yield from end_of_step(calls, update, across))


PLUGIN = StrategyPlugin(
    name="sync",
    summary="synchronous all-reduce in buckets after the backward pass",
    implementation=Sync,
    options=ExchangeOptions,
    check=check_exchange,
    simulated_step=simulated_step,
    tags=synchronous_tags("DP", "data"),
)
