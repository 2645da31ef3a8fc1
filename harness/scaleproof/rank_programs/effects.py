"""What a rank program yields. A driver carries out an effect and sends its result back into the program."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.case import Operation
from scaleproof.transports.mailbox import ANY

ALL = "all"
"""The group of all ranks."""


@dataclass(frozen=True, slots=True)
class Compute:
    """The rank computes. `seconds`: for how long where that is replayed or simulated, in true time; `work`: what it
    computes, on every clock, and gives the result. `event`: the name of the span that is recorded."""

    seconds: float
    work: Callable[[], Any] | None = None
    event: str = "compute"


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of the batch of a step at the parameters that the replica has when the effect begins, into the
    learner's `gradient`; the result is the loss, NaN where nothing is computed."""

    step: int


@dataclass(frozen=True, slots=True)
class Update:
    """The learner's optimiser steps its parameters with its `gradient`."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The program's own arithmetic on so many bytes, which it does itself. Only a simulated clock advances: by the
    cost of a reduced byte."""

    nbytes: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """The rank does nothing for so many seconds of true time."""

    seconds: float


class Apart(int):
    """A tag below 0, of messages that are no program's own: of barriers and collectives. No receive of a program takes
    them."""


@dataclass(frozen=True, slots=True)
class Send:
    """Sends a flat array to a peer, with a tag of 0 or more. It ends when the array may be changed again: a connection
    buffers what fits."""

    peer: int
    value: np.ndarray
    tag: int = 0
    control: bool = False
    """Carries no part of a model: counted apart."""

    def __post_init__(self) -> None:
        _check_tag(self.tag)


@dataclass(frozen=True, slots=True)
class Receive:
    """Receives the earliest `Message` with a tag, from one rank or from ANY. `part_of`: where the rank is, in messages
    to the user, if a driver receives for it."""

    source: int = ANY
    tag: int = 0
    part_of: str = ""

    def __post_init__(self) -> None:
        _check_tag(self.tag)


@dataclass(frozen=True, slots=True)
class Call:
    """Calls `serve` of a peer's program; the result is its answer."""

    peer: int
    value: np.ndarray
    name: str = ""
    control: bool = False
    """Carries no part of a model: counted apart."""


@dataclass(frozen=True, slots=True)
class Put:
    """Writes a flat array into a region of a peer, whose program takes no part, from element `start` on. It ends when
    the array may be changed again. What a rank puts and flags at one peer happens there in its order. `flag`: of the
    peer, one higher when the array is there; empty: none."""

    peer: int
    value: np.ndarray
    region: str
    start: int = 0
    flag: str = ""


@dataclass(frozen=True, slots=True)
class Get:
    """The result is a copy of `count` elements (-1: all that follow) of a region of a peer, whose program takes no
    part."""

    peer: int
    region: str
    start: int = 0
    count: int = -1


@dataclass(frozen=True, slots=True)
class Flag:
    """Adds to a flag of a peer, a counter that starts at 0."""

    peer: int
    name: str
    add: int = 1


@dataclass(frozen=True, slots=True)
class AwaitFlag:
    """Waits until a flag of this rank is at least so high; the result is its value."""

    name: str
    least: int = 1


@dataclass(frozen=True, slots=True)
class CompareAndSwap:
    """Sets a flag of a peer to `new` where it is `expected`, as one step; the result is what it was."""

    peer: int
    name: str
    expected: int
    new: int


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective in place on a flat array, by the case's algorithm; sums where it reduces. `group`: ALL, or a name of
    the program's `groups`, of which the rank's own one takes part; each of its ranks yields it. `tag`: of no other
    collective at that time. `root`: of a broadcast, counted in the group. `priority`: where the order of calls is
    decided late, lower goes first. The result is the array."""

    operation: Operation
    value: np.ndarray
    tag: int = 0
    group: str = ALL
    root: int = 0
    priority: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return self.value.nbytes


@dataclass(frozen=True, slots=True)
class Start:
    """Begins an effect on another lane of the rank, which carries out one effect after the other. The result is a
    `Started`. An array that is sent so may be changed after `Await`."""

    effect: Effect
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    """An effect on another lane. `number`: counted by the driver of the rank."""

    number: int


@dataclass(frozen=True, slots=True)
class Await:
    """Waits for a started effect; the result is its result. `event`, `nbytes`: what is recorded of the wait."""

    started: Started
    event: str = "wait"
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class AwaitAll:
    """Waits until all of several started effects have ended; the result is a list of their results."""

    started: tuple[Started, ...]


@dataclass(frozen=True, slots=True)
class AwaitAny:
    """Waits until one of several started effects has ended; the result is an `Ended`."""

    started: tuple[Started, ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancels a started Receive or AwaitFlag. The result is True where it had taken nothing: it never will, and its own
    result is None. False: it has ended, and has its result."""

    started: Started


@dataclass(frozen=True, slots=True)
class Ended:
    """A started effect that has ended, and its result."""

    started: Started
    value: Any


Moving = Send | Receive | Call | Put | Get | Flag | CompareAndSwap | AwaitFlag | Collective
Effect = Compute | Gradient | Update | Charge | Sleep | Moving | Start | Await | AwaitAll | AwaitAny | Cancel

_EVENTS: dict[type, str] = {
    Send: "send",
    Receive: "wait",
    Call: "call",
    Put: "put",
    Get: "get",
    CompareAndSwap: "swap",
    AwaitFlag: "wait",
    AwaitAll: "wait",
}


def _check_tag(tag: int) -> None:
    if tag < 0 and not isinstance(tag, Apart):
        raise ValueError(f"a tag is 0 or more, not {tag}: those below are of barriers and collectives")


def event_of(effect: Effect) -> str:
    """The event that every driver records of an effect; empty: none, as for messages of a barrier."""
    if isinstance(effect, Send | Receive) and effect.tag < 0:
        return ""
    if isinstance(effect, Send | Call) and effect.control:
        return "control"
    if isinstance(effect, Collective):
        return effect.operation
    return effect.event if isinstance(effect, Compute | Await) else _EVENTS.get(type(effect), "")


def moved_nbytes(effect: Effect, result: Any) -> int:
    """Bytes that an effect moved."""
    if isinstance(effect, Call):
        return int(effect.value.nbytes + result.nbytes)
    if isinstance(effect, Send | Put | Collective):
        return effect.value.nbytes
    if isinstance(effect, Await):
        return effect.nbytes
    if isinstance(effect, Get):
        return int(result.nbytes)
    return result.value.nbytes if isinstance(effect, Receive) and result is not None else 0


def source_of(effect: Effect, result: Any) -> float:
    """The rank whose message a receive took; NaN: another effect."""
    return float(result.source) if isinstance(effect, Receive) and result is not None else math.nan


def described(effect: Effect) -> str:
    """What a rank does, in a message to the user."""
    if isinstance(effect, Receive):
        source = "any rank" if effect.source == ANY else f"rank {effect.source}"
        return f"is {effect.part_of} with {source}" if effect.part_of else f"receives from {source}, tag {effect.tag}"
    if isinstance(effect, AwaitFlag):
        return f"waits for flag {effect.name!r} of {effect.least}"
    if isinstance(effect, Send):
        return f"sends {effect.value.nbytes} B to rank {effect.peer}, tag {effect.tag}"
    if isinstance(effect, Compute):
        return effect.event
    if isinstance(effect, Collective):
        return f"{effect.operation} of {effect.nbytes} B with {effect.group}, tag {effect.tag}"
    name = type(effect).__name__.lower()
    return f"{name} at rank {effect.peer}" if isinstance(effect, Call | Put | Get | Flag | CompareAndSwap) else name


def check_cancellable(effect: Effect) -> None:
    """Raises TransportError for an effect that takes more than what it waits for."""
    if not isinstance(effect, Receive | AwaitFlag):
        raise TransportError(f"only a Receive or an AwaitFlag can be cancelled, not a {type(effect).__name__}")


def weightless(nbytes: float) -> np.ndarray:
    """So many bytes that take no memory, for a program whose values nobody reads."""
    return np.broadcast_to(_ZERO, int(nbytes))


_ZERO = np.zeros((), np.uint8)
