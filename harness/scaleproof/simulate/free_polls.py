"""Polls and meetings of all ranks where messages take no time: without a message for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from scaleproof.rank_programs.effects import Poll
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.simulate.free_moves import FreeMoves
from scaleproof.simulate.virtual_rank import Meet, Rank, Then
from scaleproof.spec.case import OwnCase, TrainCase
from scaleproof.spec.errors import SpecError


class FreePolls:
    """`ranks`: all of them, when the first effect is carried out. `failed`: an error of a program in one line.
    `perform`: what carries out each effect."""

    def __init__(
        self,
        moves: FreeMoves,
        ranks: Sequence[Rank],
        case: OwnCase | TrainCase,
        failed: Callable[[str, Exception], SpecError],
    ) -> None:
        self.moves, self._ranks, self._dilation, self.failed = moves, ranks, case.dilation, failed
        self.programs, self._met = list[RankProgram](), list[Then]()
        self.perform: dict[type, Callable[[Rank, Any, Then], None]] = {Meet: self._meet}
        # else each question is a call, which is delayed, or whose peer may be gone
        if case.value("message_delay") is None and case.value("faults") is None:
            self.perform[Poll] = self._poll

    def _poll(self, rank: Rank, effect: Poll, then: Then) -> None:
        """As rank_programs/polling.py does, of all peers at one moment."""
        if not self.programs:
            self.programs += [each.program for each in self._ranks]
        _Asking(self, rank, effect, effect.seconds * self._dilation, then, rank.number)()

    def _meet(self, rank: Rank, effect: Meet, then: Then) -> None:
        """All ranks go on when the last has come."""
        self._met.append(then)
        if len(self._met) == len(self._ranks):
            met, self._met = self._met, []
            for each in met:
                self.moves.at_once(partial(each, None))


@dataclass(slots=True, eq=False)
class _Asking:
    """Asks, again and again. `late`, `before`: of the last poll: who was too far behind, and who was asked."""

    of: FreePolls
    rank: Rank
    effect: Poll
    seconds: float
    then: Then
    late: int
    before: Sequence[int] = ()
    asked: int = 0

    def __call__(self) -> None:
        programs, least = self.of.programs, self.effect.least
        try:
            peers = self.effect.peers()
        except Exception as error:
            raise self.of.failed(self.rank.where, error) from error
        self.asked += len(peers)
        if peers is self.before and programs[self.late].finished < least:  # of all peers, the one to wait for is known
            self.of.moves.after(self.seconds, self)
            return
        for peer in peers:
            if programs[peer].finished < least:
                self.late, self.before = peer, peers
                self.of.moves.after(self.seconds, self)
                return
        self.then(self.asked)
