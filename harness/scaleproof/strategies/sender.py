"""The interface by which a strategy's collective calls are made during the backward pass: by a communication thread, or
by the main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scaleproof.transports.contract import Handle


@dataclass(frozen=True, slots=True)
class Exchange:
    """One finished call: when its data were complete, when it started and ended (ns), and its bytes."""

    ready_ns: int
    start_ns: int
    end_ns: int
    nbytes: int


class Sender(Protocol):
    """Makes calls of the transport in the order of their submission. Numbers count from 0 since the last `drain`."""

    def submit(self, nbytes: int, call: Callable[[], Handle]) -> int:
        """Make a call in its turn; its data must not be touched before a wait for it. Returns its number."""

    def poll(self) -> None:
        """Progress pending calls, where the main thread drives them; called between two layers."""

    def wait(self, number: int) -> None:
        """Block until this call, and so every one before it, is done; raises its error (PeerLost, ...)."""

    def drain(self) -> list[Exchange]:
        """Wait for all submitted calls; their times, in that order."""

    def close(self) -> None:
        """Release threads and handles."""
