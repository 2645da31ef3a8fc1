"""A communication thread for each channel of a rank: call n runs on channel n mod channels, beside those of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scaleproof.strategies.communication_thread import CommunicationThread
from scaleproof.strategies.sender import Exchange
from scaleproof.transports.contract import Handle


class ChannelThreads:
    """A Sender. Each channel makes its calls in the order of submission, one at a time."""

    def __init__(self, threads: Sequence[CommunicationThread]) -> None:
        self._threads = list(threads)
        self._submitted = 0

    def submit(self, nbytes: int, call: Callable[[], Handle]) -> int:
        """See Sender; `call` must use the channel of its number."""
        self._threads[self._submitted % len(self._threads)].submit(nbytes, call)
        self._submitted += 1
        return self._submitted - 1

    def poll(self) -> None:
        """Nothing to do: the threads make progress by themselves."""

    def wait(self, number: int) -> None:
        """See Sender."""
        for channel, thread in enumerate(self._threads):
            thread.wait((number - channel) // len(self._threads))

    def drain(self) -> list[Exchange]:
        """See Sender."""
        of_threads = [thread.drain() for thread in self._threads]
        count, self._submitted = self._submitted, 0
        return [of_threads[number % len(of_threads)][number // len(of_threads)] for number in range(count)]

    def close(self) -> None:
        """See Sender."""
        for thread in self._threads:
            thread.close()
