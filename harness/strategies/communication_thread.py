"""One communication thread per rank, fed by a queue of commands (das2016): blocking all-reduces, in the order of submission."""

from __future__ import annotations

import queue
import threading
from time import monotonic_ns as now

from harness.strategies.base import Exchange
from harness.strategies.buckets import Bucket
from harness.transports.base import Collectives


class CommunicationThread:
    """Between `submit` and the end of `drain` only this thread uses the group. Times are taken here and handed over: a Recorder belongs to one thread."""

    def __init__(self, group: Collectives) -> None:
        self._group = group
        self._commands: queue.SimpleQueue[tuple[int, Bucket] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Exchange | BaseException] = queue.SimpleQueue()
        self._pending = 0
        self._thread = threading.Thread(target=self._run, name="communication", daemon=True)
        self._thread.start()

    def submit(self, bucket: Bucket) -> None:
        """Exchange a bucket as soon as those before it are done; its buffer must not be touched until `drain`."""
        self._pending += 1
        self._commands.put((now(), bucket))

    def drain(self) -> list[Exchange]:
        """Wait for everything submitted; what the thread met (PeerLost, ...) is raised here."""
        done = []
        while self._pending:
            result = self._results.get()
            self._pending -= 1
            if isinstance(result, BaseException):
                self._pending = 0
                raise result
            done.append(result)
        return done

    def close(self) -> None:
        """End the thread. One that a vanished peer blocks is left to the end of its process."""
        self._commands.put(None)
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while (command := self._commands.get()) is not None:
            try:
                ready, bucket = command
                start = now()
                self._group.all_reduce(bucket.buffer).wait()
                self._results.put(Exchange(ready, start, now(), bucket.nbytes))
            except BaseException as error:  # handed to the main thread, which raises it
                self._results.put(error)
                return
