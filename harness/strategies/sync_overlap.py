"""Synchronous SGD whose exchange runs beside the backward pass: a bucket leaves as soon as its last gradient is ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.strategies.base import Strategy
from harness.strategies.buckets import Parameter
from harness.strategies.communication_thread import CommunicationThread
from harness.strategies.handover import Handover
from harness.transports.base import Collectives

if TYPE_CHECKING:
    from harness.rank.context import RankContext


class SyncOverlap(Strategy):
    """Buckets leave in bucket order on every rank, whatever order their gradients come in, so that ranks never call in different orders."""

    def __init__(self, context: RankContext, group: Collectives | None, parameters: Sequence[Parameter], bucket_mib: float) -> None:
        super().__init__(context, group, parameters, bucket_mib)
        assert group is not None
        self._sender: CommunicationThread | Handover = Handover(group) if self.fused else CommunicationThread(group)
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
            self._sender.submit(self.buckets[self._next])
            self._next += 1

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy."""
        if self._next < len(self.buckets):
            raise RuntimeError(f"the backward pass ended with {len(self.buckets) - self._next} of {len(self.buckets)} buckets incomplete")
        self.context.at(self.step, "all_reduce")
        with self.context.recorder.span("wait", self.step):
            # The thread that communicates says for whom; from here on the rank as a whole waits.
            self.context.post.wait()
            self.exchanges = self._sender.drain()
        self.apply(update)

    def close(self) -> None:
        """See Strategy."""
        self._sender.close()
        super().close()
