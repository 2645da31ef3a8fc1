"""One communication thread per rank, fed by a queue of commands (das2016): blocking calls, in the order of
submission."""

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
    """Between `submit` and the wait for it only this thread uses the transport. It measures times and returns them,
    since a Recorder belongs to one thread."""

    def __init__(self, core: int | None = None) -> None:
        """`core`: the thread's own core; None: any core of the rank."""
        self._commands: queue.SimpleQueue[_Command | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Exchange | BaseException] = queue.SimpleQueue()
        self._done: list[Exchange] = []
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
        """The thread needs no help."""

    def wait(self, number: int) -> None:
        """See Sender; an error of the thread (PeerLost, ...) is raised here."""
        while len(self._done) <= number:
            result = self._results.get()
            if isinstance(result, BaseException):
                self._submitted = len(self._done)
                raise result
            self._done.append(result)

    def drain(self) -> list[Exchange]:
        """See Sender."""
        self.wait(self._submitted - 1)
        done, self._done, self._submitted = self._done, [], 0
        return done

    def close(self) -> None:
        """End the thread. One that a vanished peer blocks is left to the end of its process."""
        self._commands.put(None)
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        if self._core is not None:
            os.sched_setaffinity(0, {self._core})  # 0: this thread alone
        while (command := self._commands.get()) is not None:
            try:
                start = now()
                command.call().wait()
                self._results.put(Exchange(command.ready_ns, start, now(), command.nbytes))
            except BaseException as error:  # the main thread raises it
                self._results.put(error)
                return
