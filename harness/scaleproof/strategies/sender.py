"""Who makes a strategy's calls beside the backward pass: one interface, of a communication thread or of the main
thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scaleproof.transports.contract import Handle


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call that is done: when what it exchanges was complete, when it started and ended, in ns, and its bytes."""

    ready_ns: int
    start_ns: int
    end_ns: int
    nbytes: int


class Sender(Protocol):
    """Makes calls of the transport in the order of their submission. Numbers count from 0 since the last `drain`."""

    def submit(self, nbytes: int, call: Callable[[], Handle]) -> int:
        """Make a call as soon as it may be; what it exchanges must not be touched before a wait for it. Returns its
        number."""

    def poll(self) -> None:
        """Move what is under way, where that is the main thread's to do; called between two layers."""

    def wait(self, number: int) -> None:
        """Block until this call, and so every one before it, is done; raises what it met (PeerLost, ...)."""

    def drain(self) -> list[Exchange]:
        """Wait for everything submitted and give its times, in that order."""

    def close(self) -> None:
        """Release what it holds."""
