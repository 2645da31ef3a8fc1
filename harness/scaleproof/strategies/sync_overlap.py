"""Synchronous SGD with overlap: a bucket is exchanged during the backward pass, as soon as its last gradient is
ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from scaleproof.rank_programs.effects import Compute
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.affinity import neighbours, split_cores
from scaleproof.strategies.base import Strategy
from scaleproof.strategies.buckets import Parameter
from scaleproof.strategies.channel_threads import ChannelThreads
from scaleproof.strategies.communication_thread import CommunicationThread
from scaleproof.strategies.main_thread_sender import MainThreadSender
from scaleproof.strategies.sender import Sender
from scaleproof.strategies.step_program import Passed, Plan, Step, beside_backward, calls_of, end_of_step
from scaleproof.strategies.strategy_options import ExchangeOptions, OverlapOptions, check_exchange, check_overlap
from scaleproof.transports.contract import Collectives, Handle

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class SyncOverlap(Strategy):
    """Buckets are sent in bucket order on every rank, whatever the order of their gradients, so that all ranks make
    their calls in the same order."""

    def __init__(
        self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float
    ) -> None:
        super().__init__(context, group, parameters, bucket_mib)
        assert group is not None
        self._allowed = os.sched_getaffinity(0)
        self._sender = self._open_sender()
        self._bucket_of = {index: number for number, bucket in enumerate(self.buckets) for index in bucket.members}
        self._missing: list[int] = []
        self._next = 0

    def begin(self, step: int) -> None:
        """See Strategy."""
        super().begin(step)
        self._missing = [len(bucket.members) for bucket in self.buckets]
        self._next = 0

    def gradient_ready(self, index: int) -> None:
        """See Strategy."""
        self._missing[self._bucket_of[index]] -= 1
        while self._next < len(self.buckets) and self._missing[self._next] == 0:
            self.send_bucket(self._next)
            self._next += 1
        self._sender.poll()

    def send_bucket(self, number: int) -> None:
        """Submit the exchange of a bucket; it and all earlier buckets are complete."""
        self._sender.submit(self.buckets[number].nbytes, partial(self._exchange, number))

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy."""
        self.expect_all()
        self.context.at(self.step, "all_reduce")
        with self.context.recorder.span("wait", self.step):
            # The communication thread reports which peer it waits for; from here on the whole rank waits.
            self.context.post.wait()
            self.exchanges = self._sender.drain()
        self.apply(update)

    def expect_all(self) -> None:
        """Raises RuntimeError unless every bucket was sent."""
        if self._next < len(self.buckets):
            raise RuntimeError(
                f"the backward pass ended with {len(self.buckets) - self._next} of {len(self.buckets)} buckets "
                "incomplete"
            )

    def close(self) -> None:
        """See Strategy."""
        self._sender.close()
        os.sched_setaffinity(0, self._allowed)
        super().close()

    def _exchange(self, number: int) -> Handle:
        return self.all_reduce(number)

    def _open_sender(self) -> Sender:
        """The sender that the case selects; the record gets the thread that communicates and its cores."""
        context, case = self.context, self.context.case
        if self.fused or (isinstance(case, TrainCase) and case.value("strategy.communication", "thread") == "main"):
            context.facts["communication"] = {"by": "transport" if self.fused else "main thread", "core": None}
            return MainThreadSender(polls=not self.fused)
        sharing, count = neighbours(case, context.rank), len(self.channels)
        cores = split_cores(
            sharing.index(context.rank), len(sharing), case.threads_per_rank, sorted(self._allowed), count
        )
        if cores is None:
            reason = (
                f"{len(self._allowed)} cores for {len(sharing)} ranks of {case.threads_per_rank} compute "
                f"threads and {'one that communicates' if count == 1 else f'{count} that communicate'}"
            )
            context.facts["communication"] = {**_by(count, (None,) * count), "why": reason}
            return _threads((None,) * count)
        os.sched_setaffinity(0, cores.compute)
        context.facts["communication"] = {
            **_by(count, cores.communication),
            "compute_cores": list(cores.compute),
        }
        return _threads(cores.communication)


def _by(count: int, cores: Sequence[int | None]) -> dict[str, object]:
    """Who communicates, for the record."""
    return {"by": "thread", "core": cores[0]} if count == 1 else {"by": f"{count} threads", "cores": list(cores)}


def _threads(cores: Sequence[int | None]) -> Sender:
    """A thread for each channel, on its core (None: any of the rank's)."""
    threads = [CommunicationThread(core) for core in cores]
    return threads[0] if len(threads) == 1 else ChannelThreads(threads)


def simulated_step(plan: Plan, passed: Passed, update: Compute, across: bool) -> Step:
    """Buckets are sent during the backward pass."""
    calls = yield from beside_backward(plan, passed, list(calls_of(plan)))
    return (yield from end_of_step(calls, update, across))


class SyncOverlapOptions(ExchangeOptions, OverlapOptions):
    """Options of strategy sync_overlap."""


def check(case: TrainCase) -> None:
    """Raises FieldError if the framework does not return gradients one by one, or for options that only the simulator
    has."""
    if not case.plugin("framework").gradients_one_by_one:
        message = "'sync_overlap' needs gradients one by one, which compiled TensorFlow steps do not give; use 'sync'"
        raise FieldError("strategy", message)
    check_overlap(case)
    check_exchange(case)


PLUGIN = StrategyPlugin(
    name="sync_overlap",
    summary="synchronous all-reduce in buckets during the backward pass",
    implementation=SyncOverlap,
    options=SyncOverlapOptions,
    check=check,
    communicates_beside_compute=True,
    simulated_step=simulated_step,
    tags=synchronous_tags("DP", "data"),
)
