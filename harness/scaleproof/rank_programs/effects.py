"""What a rank program yields. A driver carries out an effect and sends its result back into the program: a `Lost` where
a fault of the case has killed the rank that it needed or has taken its call, and once for each killed rank where it
takes from ANY."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleproof.spec.case import Operation
from scaleproof.transports.mailbox import ANY

ALL = "all"
"""The group of all ranks."""
DETACHED = 16
"""Most effects of a rank that are detached and have not ended: each holds its array."""


@dataclass(frozen=True, slots=True)
class Compute:
    """The rank computes. `seconds`: for how long where that is replayed or simulated, in true time; `work`: what it
    computes, on every clock, and gives the result. `event`: the name of the span that is recorded; `value`: with it."""

    seconds: float
    work: Callable[[], Any] | None = None
    event: str = "compute"
    value: float = math.nan


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of the batch of a step at the parameters that the replica has when the effect begins, into the
    learner's `gradient`; the result is the loss, NaN where nothing is computed. `delayed`: the case's delay of the step
    follows; else the program waits for it."""

    step: int
    delayed: bool = True


@dataclass(frozen=True, slots=True)
class Update:
    """The learner's optimiser steps its parameters with its `gradient`."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The program's own arithmetic on so many bytes, which it does itself after the effect before. Where time is
    simulated or compute replayed it takes the time of so many reduced bytes. In `serve`: RankProgram.charge."""

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
    to the user, if a driver receives for it. `within`: s of true time after which the result is None where no message
    has come; it is a delay of the case that a message may end. None: it waits as long as it takes. Not for `Start`,
    whose waits `Cancel` ends."""

    source: int = ANY
    tag: int = 0
    part_of: str = ""
    within: float | None = None

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
class Poll:
    """Asks peers how many steps they have `finished`, and asks again every `seconds` of true time, until each of those
    asked last has at least `least`. `peers`: whom to ask, each time anew. The result is the number of questions, which
    carry no part of a model."""

    peers: Callable[[], Sequence[int]]
    least: float
    seconds: float


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
    """An effect on another lane, to be awaited once. `number`: counted by the driver of the rank."""

    number: int


@dataclass(frozen=True, slots=True)
class Detach:
    """Begins an effect on another lane of the rank, which nobody awaits. Its array may not be changed any more, and
    what it raises ends the rank. While DETACHED of a rank have not ended, it waits for the first of them. A rank ends
    when all have ended."""

    effect: Effect
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Settle:
    """Waits until all that the rank has detached has ended. Drivers do it when a program has ended."""


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


Moving = Send | Receive | Call | Poll | Put | Get | Flag | CompareAndSwap | AwaitFlag | Collective
Waiting = Await | AwaitAll | AwaitAny | Settle
Effect = Compute | Gradient | Update | Charge | Sleep | Moving | Start | Detach | Waiting | Cancel


def _check_tag(tag: int) -> None:
    if tag < 0 and not isinstance(tag, Apart):
        raise ValueError(f"a tag is 0 or more, not {tag}: those below are of barriers and collectives")


def weightless(nbytes: float) -> np.ndarray:
    """So many bytes that take no memory, for a program whose values nobody reads."""
    return np.broadcast_to(_ZERO, int(nbytes))


_ZERO = np.zeros((), np.uint8)
