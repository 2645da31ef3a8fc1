"""Polls and meetings of all ranks where messages take no time: without a message for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

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
        self._moves, self._ranks, self._dilation, self._failed = moves, ranks, case.dilation, failed
        self._programs, self._met = list[RankProgram](), list[Then]()
        self.perform: dict[type, Callable[[Rank, Any, Then], None]] = {Meet: self._meet}
        # else each question is a call, which is delayed, or whose peer may be gone
        if case.value("message_delay") is None and case.value("faults") is None:
            self.perform[Poll] = self._poll

    def _poll(self, rank: Rank, effect: Poll, then: Then) -> None:
        """As rank_programs/polling.py does, of all peers at one moment."""
        if not self._programs:
            self._programs += [each.program for each in self._ranks]
        programs, after, asked = self._programs, self._moves.after, 0
        choose, least, seconds = effect.peers, effect.least, effect.seconds * self._dilation
        late, before = rank.number, cast(Sequence[int], ())  # of the last poll: who was too far behind, who was asked

        def ask() -> None:
            nonlocal asked, late, before
            try:
                peers = choose()
            except Exception as error:
                raise self._failed(rank.where, error) from error
            asked += len(peers)
            if peers is before and programs[late].finished < least:  # of all peers, the one to wait for is known
                after(seconds, ask)
                return
            for peer in peers:
                if programs[peer].finished < least:
                    late, before = peer, peers
                    after(seconds, ask)
                    return
            then(asked)

        ask()

    def _meet(self, rank: Rank, effect: Meet, then: Then) -> None:
        """All ranks go on when the last has come."""
        self._met.append(then)
        if len(self._met) == len(self._ranks):
            met, self._met = self._met, []
            for each in met:
                self._moves.at_once(partial(each, None))
