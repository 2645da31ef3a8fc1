"""Starts calls on the main thread without waiting for earlier ones. Their bytes are moved by a thread of the transport,
as with Horovod's optimiser, or by the main thread when it polls between two layers."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns as now

from scaleproof.strategies.sender import Exchange
from scaleproof.transports.contract import Handle


class _Call:
    """One call: its handle and its times."""

    def __init__(self, nbytes: int, call: Callable[[], Handle]) -> None:
        self.nbytes, self.ready_ns = nbytes, now()
        self.start_ns, self.end_ns = now(), 0
        self.handle = call()

    def test(self) -> bool:
        """Whether the call has finished. The time of the first check that succeeds counts as its end."""
        if not self.end_ns and self.handle.test():
            self.end_ns = now()
        return self.end_ns > 0

    def wait(self) -> None:
        if not self.end_ns:
            self.handle.wait()
            self.end_ns = now()


class MainThreadSender:
    """The caller's thread starts the calls. With `polls` it also makes progress whenever `poll` is called."""

    def __init__(self, polls: bool = False) -> None:
        self._calls: list[_Call] = []
        self._polls = polls
        self._first = 0

    def submit(self, nbytes: int, call: Callable[[], Handle]) -> int:
        """See Sender."""
        self._calls.append(_Call(nbytes, call))
        return len(self._calls) - 1

    def poll(self) -> None:
        """See Sender."""
        while self._polls and self._first < len(self._calls) and self._calls[self._first].test():
            self._first += 1

    def wait(self, number: int) -> None:
        """See Sender."""
        for call in self._calls[: number + 1]:
            call.wait()

    def drain(self) -> list[Exchange]:
        """See Sender."""
        self.wait(len(self._calls) - 1)
        finished = [Exchange(call.ready_ns, call.start_ns, call.end_ns, call.nbytes) for call in self._calls]
        self._calls, self._first = [], 0
        return finished

    def close(self) -> None:
        """No thread to end."""
