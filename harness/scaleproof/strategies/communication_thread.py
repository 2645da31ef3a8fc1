"""One communication thread per rank (das2016), which makes blocking calls in the order in which they were submitted."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from time import monotonic_ns as now
from typing import NamedTuple

from scaleproof.strategies.sender import Exchange
from scaleproof.transports.contract import Handle


class _Command(NamedTuple):
    ready_ns: int
    nbytes: int
    call: Callable[[], Handle]


class CommunicationThread:
    """Between `submit` and the wait for that call only this thread uses the transport. The thread returns the times
    that it measures, since a Recorder belongs to one thread."""

    def __init__(self, core: int | None = None) -> None:
        """`core`: the thread's own core; None: any core of the rank."""
        self._commands: queue.SimpleQueue[_Command | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Exchange | BaseException] = queue.SimpleQueue()
        self._finished: list[Exchange] = []
        self._submitted = 0
        self._core = core
        self._thread = threading.Thread(target=self._run, name="communication", daemon=True)
        self._thread.start()

    def submit(self, nbytes: int, call: Callable[[], Handle]) -> int:
        """See Sender."""
        self._commands.put(_Command(now(), nbytes, call))
        self._submitted += 1
        return self._submitted - 1

    def poll(self) -> None:
        """Nothing to do: the thread makes progress by itself."""

    def wait(self, number: int) -> None:
        """See Sender; an error of the thread (PeerLost, ...) is raised here."""
        while len(self._finished) <= number:
            result = self._results.get()
            if isinstance(result, BaseException):
                self._submitted = len(self._finished)
                raise result
            self._finished.append(result)

    def drain(self) -> list[Exchange]:
        """See Sender."""
        self.wait(self._submitted - 1)
        finished, self._finished, self._submitted = self._finished, [], 0
        return finished

    def close(self) -> None:
        """End the thread. A thread that is blocked by a lost peer ends with the process."""
        self._commands.put(None)
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        if self._core is not None:
            os.sched_setaffinity(0, {self._core})  # 0: this thread only
        while (command := self._commands.get()) is not None:
            try:
                start = now()
                command.call().wait()
                self._results.put(Exchange(command.ready_ns, start, now(), command.nbytes))
            except BaseException as error:  # the main thread raises it
                self._results.put(error)
                return
