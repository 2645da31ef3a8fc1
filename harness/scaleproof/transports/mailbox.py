"""The interface of a mailbox: tagged messages from one rank or from any, calls that a passive side answers, and regions
and flags that peers write and read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from scaleproof.core.transport_errors import TransportError
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
    where a rank is waited for that is gone. `serve` answers calls, in a thread of its own. `regions`: flat arrays that
    peers put into and get from; puts and flags of one rank happen in its order."""

    capabilities: Capabilities
    traffic: Traffic

    def __init__(self, context: RankContext, serve: Serve, regions: Mapping[str, np.ndarray]) -> None: ...

    def send(self, value: np.ndarray, peer: int, tag: int) -> None:
        """Returns when the array may be changed again."""

    def receive(self, source: int, tag: int) -> Message:
        """The earliest message with this tag, from a rank or from ANY."""

    def call(self, value: np.ndarray, peer: int, name: str) -> np.ndarray:
        """The answer of a peer's passive side."""

    def put(self, value: np.ndarray, peer: int, region: str, start: int) -> None:
        """Writes into a region of a peer, from an element on; returns when the array may be changed again."""

    def get(self, peer: int, region: str, start: int, count: int) -> np.ndarray:
        """A copy of `count` elements (-1: all that follow) of a region of a peer."""

    def flag(self, peer: int, name: str, add: int) -> None:
        """Adds to a flag of a peer, after all earlier puts to it."""

    def await_flag(self, name: str, least: int) -> int:
        """Waits until a flag of this rank is at least so high, and returns its value."""

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


class Regions:
    """What peers of a rank write and read without its program: flat arrays by name, and flags. Raises TransportError,
    one line that names both ranks, for what is outside of a region."""

    def __init__(self, rank: int, arrays: Mapping[str, np.ndarray]) -> None:
        self._rank, self._arrays = rank, arrays
        self.flags: dict[str, int] = {}

    def put(self, source: int, region: str, start: int, value: np.ndarray) -> None:
        """A peer writes."""
        part = self._part(source, "puts", region, start, value.size)
        if part.dtype != value.dtype:
            raise TransportError(
                f"rank {source} puts {value.dtype} into region {region!r} of rank {self._rank}, which has {part.dtype}"
            )
        part[:] = value

    def get(self, source: int, region: str, start: int, count: int) -> np.ndarray:
        """A peer reads: a copy."""
        return self._part(source, "gets", region, start, count).copy()

    def flag(self, name: str, add: int) -> None:
        """A peer adds to a flag."""
        self.flags[name] = self.flags.get(name, 0) + add

    def _part(self, source: int, verb: str, region: str, start: int, count: int) -> np.ndarray:
        if region not in self._arrays:
            known = ", ".join(self._arrays) or "none"
            raise TransportError(
                f"rank {source} {verb} region {region!r} of rank {self._rank}, which has no such region (it has: "
                f"{known})"
            )
        array = self._arrays[region]
        end = len(array) if count < 0 else start + count
        if not 0 <= start <= end <= len(array):
            raise TransportError(
                f"rank {source} {verb} elements {start} to {end} of region {region!r} of rank {self._rank}, which has "
                f"{len(array)}"
            )
        return array[start:end]
