"""Calls of another run played back: a rank answers them in the order and at the places of its program at which it did
so there, so that each caller gets the same answer and each call changes the same state."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple


class AnsweredCall(NamedTuple):
    """A call that was answered: who called, and how often the program of the rank had gone on."""

    source: int
    resumes: int


class _Asked(NamedTuple):
    source: int
    serve: Callable[[], None]


class CallsInOrder:
    """Of one rank."""

    def __init__(self, calls: Iterable[AnsweredCall]) -> None:
        self._calls = deque(calls)
        self._asked: list[_Asked] = []
        """Calls that are there and not due."""

    def ask(self, source: int, serve: Callable[[], None]) -> None:
        """A call is there; beyond those of the other run it is answered at once."""
        if self._calls:
            self._asked.append(_Asked(source, serve))
        else:
            serve()

    def serve_due(self, resumes: int) -> bool:
        """Serves what is due. Whether the program has to wait for a call that is not there yet."""
        while self._calls and self._calls[0].resumes <= resumes:
            place = next(
                (place for place, each in enumerate(self._asked) if each.source == self._calls[0].source), None
            )
            if place is None:
                return True
            self._calls.popleft()
            self._asked.pop(place).serve()
        return False
