"""A rank in virtual time: its program, what it has been sent, and what it waits for."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.rank_programs.collectives import Collectives, barrier
from scaleproof.rank_programs.effect_events import check_cancellable
from scaleproof.rank_programs.effects import AwaitFlag, Effect, Receive, Settle, Sleep, Started, Waiting
from scaleproof.rank_programs.rank_program import Form
from scaleproof.spec.case import OwnCase, TrainCase
from scaleproof.transports.mailbox import Arrivals, Regions

Then = Callable[[Any], None]
"""What goes on with the result of an effect."""


@dataclass(frozen=True, slots=True)
class Meet(Sleep):
    """Until all ranks have come, where messages are free."""

    seconds: float = 0.0


class Report(Protocol):
    """Records an event of a rank that began at a time and ends now, or at `end`."""

    def __call__(
        self, rank: Rank, event: str, start: float, value: float = math.nan, nbytes: int = 0, end: float | None = None
    ) -> None: ...


@dataclass(slots=True)
class Result:
    """Of an effect: there already, or those that wait are told."""

    value: Any = None
    there: bool = False
    waiting: list[Then] = field(default_factory=list)

    def put(self, value: Any) -> None:
        """The effect has ended."""
        self.value, self.there = value, True
        waiting, self.waiting = self.waiting, []
        for then in waiting:
            then(value)

    def tell(self, then: Then) -> None:
        """Calls `then` with the result, now or later."""
        if self.there:
            then(self.value)
        else:
            self.waiting.append(then)


@dataclass(slots=True)
class Lane:
    """Effects of one lane that have not ended; the first is being carried out."""

    effects: deque[tuple[Effect, Result]] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Beside:
    """An effect that was begun on a lane."""

    effect: Effect
    lane: Lane
    result: Result


@dataclass(slots=True)
class Wanted:
    """A receive that waits. `source`: of the message that it takes, which may be told where the effect says ANY."""

    effect: Receive
    source: int
    then: Then


@dataclass(slots=True)
class WantedFlag:
    """A flag that is waited for."""

    effect: AwaitFlag
    then: Then


class Rank:
    """One rank; it is its program's clock."""

    succeeds: int | None = None
    lost: frozenset[int] = frozenset()

    def __init__(
        self,
        form: Form,
        case: OwnCase | TrainCase,
        number: int,
        now: Callable[[], float],
        report: Report,
        seed: int = 0,
    ) -> None:
        self.number, self._now, self._report, self.seed = number, now, report, seed
        self.arrivals, self.wanted, self.wanted_flags = Arrivals(), list[Wanted](), list[WantedFlag]()
        self.lanes: dict[int, Lane] = {}
        self.started: dict[int, Beside] = {}
        """Those that were not awaited yet, by number."""
        self.detached = deque[Result]()
        self.serves_until = 0.0
        """When its passive side has answered all calls so far, s."""
        self._count, self._charged = 0, 0
        self.resumes, self.counts = 0, False
        self.held: tuple[Any, ...] = ()
        """How often its program has gone on; whether it is in it; what it goes on with when a call was answered."""
        self.step, self.warmup, self._began, self._zero = -1, False, -1.0, 0.0
        self.waits_in: Effect | None = None
        self.program = form(case, number, self)
        self.regions = Regions(number, self.program.regions())
        self.collectives = Collectives(case, number, self.program.groups())
        self.inside = dict[int, Effect]()
        """By id of a collective that is being carried out: what of it."""
        self.done, self.ended, self.dead = False, False, False
        """Whether its program has ended; whether it has met all others after that; whether it was killed."""
        self.main = self._whole()

    def _meet(self) -> Generator[Effect, Any, None]:
        case = self.program.case
        if case.value("fabric.messages") == "free" and case.value("faults") is None:
            yield Meet()
        else:
            yield from barrier(self.number, self.program.world_size)

    def _whole(self) -> Generator[Effect, Any, None]:
        yield from self._begin()
        self.counts = True
        yield Settle()  # the program goes on for the first time
        yield from self.program.main()
        self.counts = False
        yield Settle()
        self._report(self, "end", self._now())
        self.done = True
        yield from self._await_end()

    def _begin(self) -> Generator[Effect, Any, None]:
        """All ranks begin together."""
        yield from self._meet()
        self._zero = self._now()
        self._report(self, "start", self._zero)

    def _await_end(self) -> Generator[Effect, Any, None]:
        yield from self._meet()

    @property
    def where(self) -> str:
        """The rank and its step, in a message to the user."""
        return f"rank {self.number}" + (f", step {self.step}" if self.step >= 0 else "")

    def flag_changed(self, name: str) -> None:
        """Those who have waited for it to be so high go on."""
        value = self.regions.flags.get(name, 0)
        reached = [each for each in self.wanted_flags if each.effect.name == name and each.effect.least <= value]
        self.wanted_flags = [wanted for wanted in self.wanted_flags if wanted not in reached]
        for wanted in reached:
            wanted.then(value)

    def add(self, begun: Beside) -> Started:
        """An effect of which the program has the number."""
        number, self._count = self._count, self._count + 1
        self.started[number] = begun
        return Started(number)

    def taken(self, started: Started) -> Result:
        """The result of a started effect, which is forgotten then."""
        if started.number not in self.started:
            raise TransportError(f"a started effect is awaited once: number {started.number} was awaited before")
        return self.started.pop(started.number).result

    def cancel(self, number: int) -> bool:
        """Cancels a started wait; False: it has ended."""
        if number not in self.started:
            return False
        begun = self.started[number]
        effect, lane, result = begun.effect, begun.lane, begun.result
        check_cancellable(effect)
        if result.there:
            return False
        if lane.effects[0][1] is not result:  # not begun
            lane.effects = deque(each for each in lane.effects if each[1] is not result)
            result.put(None)
            return True
        waiting: list[Wanted | WantedFlag] = [*self.wanted, *self.wanted_flags]
        wanted = next(each for each in waiting if each.effect is effect)
        self.wanted = [each for each in self.wanted if each is not wanted]
        self.wanted_flags = [each for each in self.wanted_flags if each is not wanted]
        wanted.then(None)
        return True

    def waits(self) -> Iterator[Effect]:
        """Effects that are being carried out."""
        effects = [lane.effects[0][0] for lane in self.lanes.values() if lane.effects]
        if self.waits_in is not None and not isinstance(self.waits_in, Waiting):
            effects.insert(0, self.waits_in)
        for effect in effects:
            yield self.inside.get(id(effect), effect)

    def step_begins(self, step: int, warmup: bool) -> None:
        """See Clock."""
        self.steps_end()
        self.step, self.warmup, self._began = step, warmup, self._now()

    def now(self) -> float:
        """See Clock."""
        return (self._now() - self._zero) / self.program.case.dilation

    def note(self, event: str, value: float) -> None:
        """See Clock."""
        self._report(self, event, self._now(), value)

    def charge(self, nbytes: int) -> None:
        """See Clock."""
        self._charged += nbytes

    def charged(self) -> int:
        """Bytes that `serve` has charged since the last time."""
        nbytes, self._charged = self._charged, 0
        return nbytes

    def memory(self, nbytes: int) -> np.ndarray:
        """See Clock."""
        return np.zeros(nbytes, np.uint8)

    def steps_end(self) -> None:
        """See Clock."""
        if self._began >= 0:
            self._report(self, "step", self._began)
            self._began = -1.0
