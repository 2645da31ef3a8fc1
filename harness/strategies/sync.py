"""Synchronous SGD: all buckets are all-reduced, one after the other, once the backward pass is over."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns as now

from harness.strategies.base import Strategy


class Sync(Strategy):
    """Blocking calls on the main thread: all of the communication is exposed."""

    def gradient_ready(self, index: int) -> None:
        """Nothing to do before all are ready."""

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy."""
        assert self.group is not None
        self.context.at(self.step, "all_reduce")
        waited = now()
        for bucket in self.buckets:
            start = now()
            self.group.all_reduce(bucket.buffer).wait()
            self.context.recorder.add("communication", self.step, start, now(), bucket.nbytes)
        self.context.recorder.add("wait", self.step, waited, now())
        self.apply(update)
