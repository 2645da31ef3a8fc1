"""The interface of a mailbox: tagged messages from one rank or from any, and calls that a passive side answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from scaleproof.transports.contract import Capabilities, Traffic

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

ANY = -1
"""Source of a receive that takes a message from any rank."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that has arrived; `value` is flat."""

    source: int
    tag: int
    value: np.ndarray


Serve = Callable[[int, str, np.ndarray], np.ndarray]
"""Answers a call: the rank that calls, the name of what it calls, and its argument."""


class Mailbox(Protocol):
    """Messages between programs of ranks. Those of one rank with one tag arrive in their order. `PeerLost` is raised
    where a rank is waited for that is gone. `serve` answers calls, in a thread of its own."""

    capabilities: Capabilities
    traffic: Traffic

    def __init__(self, context: RankContext, serve: Serve) -> None: ...

    def send(self, value: np.ndarray, peer: int, tag: int) -> None:
        """Returns when the array may be changed again."""

    def receive(self, source: int, tag: int) -> Message:
        """The earliest message with this tag, from a rank or from ANY."""

    def call(self, value: np.ndarray, peer: int, name: str) -> np.ndarray:
        """The answer of a peer's passive side."""

    def close(self) -> None:
        """Waits until all ranks have closed theirs, and answers calls until then."""

    def abandon(self) -> None:
        """Closes at once. A rank that waits for this one gets PeerLost."""


class Arrivals:
    """Messages that have arrived and were not taken, by tag in their order."""

    def __init__(self) -> None:
        self._by_tag: dict[int, deque[Message]] = {}

    def add(self, message: Message) -> None:
        """The latest message."""
        self._by_tag.setdefault(message.tag, deque()).append(message)

    def take(self, source: int, tag: int) -> Message | None:
        """The earliest message with this tag, from a rank or from ANY; None: there is none."""
        arrived = self._by_tag.get(tag, deque())
        for place, message in enumerate(arrived):
            if source in (ANY, message.source):
                del arrived[place]
                return message
        return None

    def __len__(self) -> int:
        return sum(map(len, self._by_tag.values()))
