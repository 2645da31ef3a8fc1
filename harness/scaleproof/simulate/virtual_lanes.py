"""Effects that a rank carries out beside its program in virtual time, and what waits for them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from scaleproof.rank_programs.effects import (
    DETACHED,
    Await,
    AwaitAll,
    AwaitAny,
    Cancel,
    Detach,
    Effect,
    Ended,
    Settle,
    Start,
    Started,
)
from scaleproof.simulate.virtual_rank import Beside, Lane, Rank, Result, Then


class VirtualLanes:
    """`carry_out`: of the run. `perform`: what carries out each effect."""

    def __init__(self, carry_out: Callable[[Rank, Effect], Result]) -> None:
        self._carry_out = carry_out
        self.perform: dict[type, Callable[[Rank, Any, Then], None]] = {
            Start: self._start,
            Detach: self._detach,
            Settle: lambda rank, effect, then: _when_all(rank.detached, then),
            Await: lambda rank, effect, then: rank.taken(effect.started).tell(then),
            AwaitAll: lambda rank, effect, then: _when_all([rank.taken(each) for each in effect.started], then),
            AwaitAny: self._await_any,
            Cancel: lambda rank, effect, then: then(rank.cancel(effect.started.number)),
        }

    def _start(self, rank: Rank, effect: Start, then: Then) -> None:
        then(rank.add(self._begun(rank, effect.effect, effect.lane)))

    def _detach(self, rank: Rank, effect: Detach, then: Then) -> None:
        rank.detached.append(self._begun(rank, effect.effect, effect.lane).result)
        self._forget_ended(rank)
        if len(rank.detached) <= DETACHED:
            then(None)
            return

        def ended(_: Any) -> None:
            self._forget_ended(rank)
            then(None)

        rank.detached[0].tell(ended)

    @staticmethod
    def _forget_ended(rank: Rank) -> None:
        while rank.detached and rank.detached[0].there:
            rank.detached.popleft()

    def _begun(self, rank: Rank, effect: Effect, number: int) -> Beside:
        lane = rank.lanes.setdefault(number, Lane())
        begun = Beside(replace(effect), lane, Result())  # of its own: a program may start one object twice
        lane.effects.append((begun.effect, begun.result))
        if len(lane.effects) == 1:
            self._next(rank, lane)
        return begun

    def _next(self, rank: Rank, lane: Lane) -> None:
        """Carries out the first effect of a lane."""
        effect, result = lane.effects[0]

        def ended(value: Any) -> None:
            lane.effects.popleft()
            more = bool(lane.effects)  # what the program starts on this lane now begins by itself
            result.put(value)
            if more:
                self._next(rank, lane)

        self._carry_out(rank, effect).tell(ended)

    def _await_any(self, rank: Rank, effect: AwaitAny, then: Then) -> None:
        waits = True

        def ended(started: Started, value: Any) -> None:
            nonlocal waits
            if waits:
                waits = False
                rank.taken(started)
                then(Ended(started, value))

        for started in effect.started:
            if waits:
                rank.started[started.number].result.tell(partial(ended, started))


def _when_all(results: Collection[Result], then: Then) -> None:
    """Calls `then` with a list of all values, now or later."""
    _All(list(results), then)()


@dataclass(frozen=True, slots=True, eq=False)
class _All:
    """Goes on when all results are there."""

    results: list[Result]
    then: Then

    def __call__(self, _: Any = None) -> None:
        late = next((result for result in self.results if not result.there), None)
        if late is None:
            self.then([result.value for result in self.results])
        else:
            late.tell(self)
