"""Hands tensors over to a transport that fuses them itself: all are under way at once, as Horovod's own optimiser has them."""

from __future__ import annotations

from time import monotonic_ns as now

from harness.strategies.base import Exchange
from harness.strategies.buckets import Bucket
from harness.transports.base import Collectives, Handle


class Handover:
    """The caller's thread starts the calls, the transport's own moves them."""

    def __init__(self, group: Collectives) -> None:
        self._group = group
        self._under_way: list[tuple[int, int, Bucket, Handle]] = []

    def submit(self, bucket: Bucket) -> None:
        """Start a bucket's all-reduce; its buffer must not be touched until `drain`."""
        ready = now()
        self._under_way.append((ready, now(), bucket, self._group.all_reduce(bucket.buffer)))

    def drain(self) -> list[Exchange]:
        """Wait for everything submitted, in that order."""
        done = []
        for ready, start, bucket, handle in self._under_way:
            handle.wait()
            done.append(Exchange(ready, start, now(), bucket.nbytes))
        self._under_way.clear()
        return done

    def close(self) -> None:
        """No thread to end."""
