"""The interface that makes a strategy's collective calls during the backward pass, on a communication thread or on the
main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scaleproof.transports.contract import Handle


@dataclass(frozen=True, slots=True)
class Exchange:
    """One finished call: when its data were ready, when it started and ended (ns), and its bytes."""

    ready_ns: int
    start_ns: int
    end_ns: int
    nbytes: int


class Sender(Protocol):
    """Makes calls of the transport in the order of submission. Numbers start at 0 after each `drain`."""

    def submit(self, nbytes: int, call: Callable[[], Handle]) -> int:
        """Queue a call and return its number. Its data must not be touched before a wait for it."""

    def poll(self) -> None:
        """Make progress with pending calls if the main thread drives them; called between two layers."""

    def wait(self, number: int) -> None:
        """Block until this call and all earlier ones have finished. Raises the call's error (PeerLost, ...)."""

    def drain(self) -> list[Exchange]:
        """Wait for all submitted calls and return their times, in the order of submission."""

    def close(self) -> None:
        """Release threads and handles."""
