"""Synchronous SGD: all buckets are all-reduced, one after the other, once the backward pass is over."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from time import monotonic_ns as now

from harness.strategies.base import Exchange, Strategy


class Sync(Strategy):
    """Blocking calls on the main thread: all of the communication is exposed."""

    def gradient_ready(self, index: int) -> None:
        """Nothing to do before all are ready."""

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy."""
        assert self.group is not None
        self.context.at(self.step, "all_reduce")
        moments = [now()]
        for bucket in self.buckets:
            self.group.all_reduce(bucket.buffer).wait()
            moments.append(now())
        self.context.recorder.add("wait", self.step, moments[0], moments[-1])
        self.exchanges = [Exchange(moments[0], start, end, bucket.nbytes) for bucket, (start, end) in zip(self.buckets, pairwise(moments), strict=True)]
        self.apply(update)
