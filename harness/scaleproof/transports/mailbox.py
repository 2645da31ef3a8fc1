"""The interface of a mailbox: tagged messages from one rank or from any, calls that a passive side answers, and regions
and flags that peers write and read."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
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


@dataclass(frozen=True, slots=True)
class Lost:
    """A rank that a fault of the case has killed, in place of what it would have sent."""

    source: int

    def error(self) -> PeerLost:
        """What a mailbox raises."""
        return PeerLost(self.source, f"rank {self.source} is gone")


@dataclass(slots=True, eq=False)
class Posted:
    """A wait that may be cancelled. At most one of the two is ever true."""

    ended: bool = False
    cancelled: bool = False


Serve = Callable[[int, str, np.ndarray], np.ndarray]
"""Answers a call: the rank that calls, the name of what it calls, and its argument."""


class Mailbox(Protocol):
    """Messages between programs of ranks. Those of one rank with one tag arrive in their order. `PeerLost` is raised
    where a rank is waited for that is gone. Puts, flags and compare-and-swaps of one rank happen in its order. A
    message that goes by way of a third rank may overtake them, unless the rank gets from there before it sends.

    `guard`: held while the rank's program runs between two effects. What peers call, put and get waits for it, so that
    they never see an array that the program is changing; only real one-sided operations do not wait.

    `computing`: set while the rank's main thread computes, so that the passive side takes little of its core.

    `mortal`: ranks that faults of the case kill, `returning`: those of them with a successor; both set before `open`. A
    mortal rank that is gone takes nothing with it but what waits for it alone: each such wait, and once for each tag a
    receive from ANY, raises PeerLost after the rank's last message. `lost`: mortal ranks that are gone now."""

    capabilities: Capabilities
    traffic: Traffic
    guard: threading.Lock
    computing: bool
    mortal: frozenset[int]
    returning: frozenset[int]
    lost: frozenset[int]

    def __init__(self, context: RankContext) -> None:
        """Joins all ranks. Raises TransportError when one does not join."""

    def memory(self, nbytes: int) -> np.ndarray:
        """Flat bytes, zeroed, for a region: where peers reach it without this rank's help, if the transport can."""

    def open(self, serve: Serve, regions: Mapping[str, np.ndarray]) -> None:
        """From now on `serve` answers calls, in a thread of its own, and peers put into and get from the regions."""

    def send(self, value: np.ndarray, peer: int, tag: int) -> None:
        """Returns when the array may be changed again."""

    def receive(self, source: int, tag: int, posted: Posted | None = None) -> Message | None:
        """The earliest message with this tag, from a rank or from ANY; None: it was cancelled and took no message."""

    def call(self, value: np.ndarray, peer: int, name: str) -> np.ndarray:
        """The answer of a peer's passive side."""

    def put(self, value: np.ndarray, peer: int, region: str, start: int) -> None:
        """Writes into a region of a peer, from an element on; returns when the array may be changed again."""

    def get(self, peer: int, region: str, start: int, count: int) -> np.ndarray:
        """A copy of `count` elements (-1: all that follow) of a region of a peer, never in the midst of a put."""

    def flag(self, peer: int, name: str, add: int) -> None:
        """Adds to a flag of a peer, after all earlier puts to it."""

    def compare_and_swap(self, peer: int, name: str, expected: int, new: int) -> int:
        """Sets a flag of a peer to `new` where it is `expected`, as one step; returns what it was."""

    def await_flag(self, name: str, least: int, posted: Posted | None = None) -> int | None:
        """Waits until a flag of this rank is at least so high, and returns its value; None: it was cancelled."""

    def cancel(self, posted: Posted) -> bool:
        """Cancels a wait: it takes nothing any more. False: it has had its end before."""

    def close(self) -> None:
        """Waits until all ranks have closed theirs, and answers calls until then."""

    def abandon(self) -> None:
        """Closes at once. A rank that waits for this one gets PeerLost."""


class Arrivals:
    """Messages that have arrived and were not taken, by tag in their order; and, behind its last message, that a rank
    is lost."""

    def __init__(self) -> None:
        self._by_tag: dict[int, deque[Message | Lost]] = {}
        self._lost: list[int] = []

    def add(self, message: Message) -> None:
        """The latest message."""
        self._with(message.tag).append(message)

    def lose(self, rank: int) -> None:
        """A rank is gone for good, or until it has a successor."""
        self._lost.append(rank)
        for arrived in self._by_tag.values():
            arrived.append(Lost(rank))

    def regain(self, rank: int) -> None:
        """A lost rank has a successor."""
        self._lost.remove(rank)

    def take(self, source: int, tag: int) -> Message | Lost | None:
        """The earliest message with this tag, from a rank or from ANY; None: there is none. A lost rank is taken once
        from ANY, and again and again in its own place."""
        arrived = self._with(tag)
        for place, message in enumerate(arrived):
            if source == ANY or (message.source == source and isinstance(message, Message)):
                del arrived[place]
                return message
        return Lost(source) if source in self._lost else None

    def _with(self, tag: int) -> deque[Message | Lost]:
        if tag not in self._by_tag:
            self._by_tag[tag] = deque(map(Lost, self._lost))
        return self._by_tag[tag]

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
        self.target(source, region, start, value)[:] = value

    def get(self, source: int, region: str, start: int, count: int) -> np.ndarray:
        """A peer reads: a copy."""
        return self.part(source, "gets", region, start, count).copy()

    def target(self, source: int, region: str, start: int, value: np.ndarray) -> np.ndarray:
        """The part of a region that a value goes to."""
        part = self.part(source, "puts", region, start, value.size)
        if part.dtype != value.dtype:
            raise TransportError(
                f"rank {source} puts {value.dtype} into region {region!r} of rank {self._rank}, which has {part.dtype}"
            )
        return part

    def flag(self, name: str, add: int) -> None:
        """A peer adds to a flag."""
        self.flags[name] = self.flags.get(name, 0) + add

    def compare_and_swap(self, name: str, expected: int, new: int) -> int:
        """A peer sets a flag where it is as expected; returns what it was."""
        old = self.flags.get(name, 0)
        if old == expected:
            self.flags[name] = new
        return old

    def part(self, source: int, verb: str, region: str, start: int, count: int) -> np.ndarray:
        """A part of a region; count -1: all that follow."""
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
