"""An effect that is made of others, in virtual time.

What continues by itself here is an object, not a closure that refers to itself: such a reference cycle would keep its
arrays until the garbage collector finds it, and collections take longer the more cycles there are."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from scaleproof.rank_programs.effects import Charge, Effect
from scaleproof.simulate.virtual_messages import Moves
from scaleproof.simulate.virtual_rank import Rank, Result, Then


@dataclass(frozen=True, slots=True)
class Parts:
    """Carries out parts of effects. `perform`: what carries out each effect; `byte_s`: of adding up, in s; `failed`:
    the error of a program in one line, with where it was."""

    perform: Mapping[type, Callable[[Rank, Any, Then], None]]
    moves: Moves
    byte_s: float
    failed: Callable[[str, Exception], Exception]

    def begin(self, rank: Rank, effect: Effect, part: Generator[Effect, Any, Any], then: Then) -> None:
        """The effects that an effect is made of one after the other, without events of their own."""
        _Part(self, rank, effect, part, then)(None)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Goes on with the value of its last effect."""

    of: Parts
    rank: Rank
    effect: Effect
    part: Generator[Effect, Any, Any]
    then: Then

    def __call__(self, value: Any) -> None:
        of, rank = self.of, self.rank
        while True:
            try:
                inner = self.part.send(value)
            except StopIteration as end:
                rank.inside.pop(id(self.effect), None)
                self.then(end.value)
                return
            except Exception as error:
                raise of.failed(rank.where, error) from error
            rank.inside[id(self.effect)] = inner
            result = Result()
            if isinstance(inner, Charge):  # what it adds up is as fast as its messages, on every clock
                of.moves.after(inner.nbytes * of.byte_s, partial(result.put, None))
            else:
                of.perform[type(inner)](rank, inner, result.put)
            if not result.there:
                result.tell(self)
                return
            value = result.value
