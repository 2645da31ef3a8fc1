"""Faults of a case in virtual time: ranks that are killed, with or without a successor, that pause, and calls that get
lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, cast

import numpy as np

from scaleproof.rank_programs.effects import Call, Effect, Send
from scaleproof.rank_programs.rank_program import Form
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.mortal_rank import Died, MortalRank
from scaleproof.simulate.virtual_messages import nothing
from scaleproof.simulate.virtual_rank import Rank, Result, Then
from scaleproof.simulate.virtual_run import VirtualRun
from scaleproof.spec.case import TrainCase
from scaleproof.spec.faults import faults_of
from scaleproof.transports.mailbox import Lost, Message

INSTANT_S = 1e-9
"""Less of a pause is none: the clock of the engine may not advance by less."""


class FaultyRun(VirtualRun):
    """A run of a case with faults."""

    def __init__(
        self,
        form: Form,
        case: TrainCase,
        network: Network,
        nodes: Sequence[int],
        costs: MessageCosts,
        buffer: float,
        seed: int,
    ) -> None:
        self._faults, self._form = faults_of(case.faults), form
        self._calls_made, self._predecessors = count(), dict[int, Rank]()
        self._of_case = case
        super().__init__(form, case, network, nodes, costs, buffer, seed)

    def renew(self, number: int) -> None:
        """A rank is about to have a successor."""

    @property
    def living(self) -> list[Rank]:
        """Ranks that were not killed, or their successors."""
        return [rank for rank in self._ranks if not rank.dead]

    def happened(
        self, rank: Rank, event: str, start: float, value: float = math.nan, nbytes: int = 0, end: float | None = None
    ) -> None:
        """See VirtualRun; nothing happens to a dead rank."""
        if rank.dead:
            return
        super().happened(rank, event, start, value, nbytes, end)
        if event == "start":
            assert isinstance(rank, MortalRank)
            for seconds, happens in rank.alarms:
                self._moves.after(seconds * self._case.dilation, partial(self._alarm, rank, happens))

    def _alarm(self, rank: MortalRank, happens: Any) -> None:
        if not rank.dead and not rank.done and happens():
            self._die(rank)

    def _rank(self, form: Form, number: int) -> Rank:
        try:
            before = self._predecessors.get(number)
            return MortalRank(form, self._of_case, number, lambda: self.now, self.happened, self._faults, before)
        except Exception as error:
            raise self._failed(f"rank {number}", error) from error

    def _resume(self, rank: Rank, value: Any) -> None:
        """A dead rank does not go on, and one that pauses goes on later."""
        if rank.dead:
            return
        if (left_s := self._pause_of(rank)) > 0:
            self._moves.after(left_s, partial(self._resume, rank, value))
            return
        try:
            super()._resume(rank, value)
        except Died:
            self._die(cast(MortalRank, rank))

    def _pause_of(self, rank: Rank) -> float:
        assert isinstance(rank, MortalRank)
        left_s = rank.paused_until - self.now
        return left_s if left_s > INSTANT_S else 0.0

    def _carry_out(self, rank: Rank, effect: Effect) -> Result:
        """An effect begins when its rank pauses no more; one of a dead rank never does, on no lane."""
        if rank.dead:
            return Result()
        if (left_s := self._pause_of(rank)) <= 0:
            return super()._carry_out(rank, effect)
        result, carry_out = Result(), super()._carry_out
        self._moves.after(left_s, lambda: None if rank.dead else carry_out(rank, effect).tell(result.put))
        return result

    def _send(self, rank: Rank, effect: Send, then: Then) -> None:
        if effect.peer in rank.lost:
            then(Lost(effect.peer))
        else:
            super()._send(rank, effect, then)

    def _arrive(self, number: int, message: Message) -> None:
        if not self._ranks[number].dead:
            super()._arrive(number, message)

    def _call(self, rank: Rank, effect: Call, then: Then) -> None:
        assert isinstance(rank, MortalRank)
        if effect.peer == rank.number:
            super()._call(rank, effect, then)
            return
        loss = self._faults.loss
        rank.losable += 1
        if loss.takes(self._seed, rank.number, rank.losable):
            self.happened(rank, "lost_call", self.now, float(effect.peer))
            self._moves.after(loss.patience_s * self._case.dilation, partial(then, Lost(effect.peer)))
        elif effect.peer in rank.lost:
            then(Lost(effect.peer))
        else:
            number = next(self._calls_made)
            rank.calls[number] = effect.peer, then
            super()._call(rank, effect, partial(self._answered, rank, number))

    @staticmethod
    def _answered(rank: MortalRank, number: int, answer: np.ndarray | Lost) -> None:
        """The answer of a call, or that it will have none: whichever comes first."""
        if number in rank.calls:
            _, then = rank.calls.pop(number)
            then(answer)

    def _serve(self, rank: Rank, effect: Call, value: np.ndarray, then: Then) -> None:
        peer = self._ranks[effect.peer]
        if peer.dead:
            return
        if (left_s := self._pause_of(peer)) > 0:
            self._moves.after(left_s, partial(self._serve, rank, effect, value, then))
        else:
            super()._serve(rank, effect, value, then)

    def _die(self, rank: MortalRank) -> None:
        """Its connections close: each peer learns of it behind the last message of the rank."""
        self.happened(rank, "killed", self.now)
        rank.dead = rank.done = rank.ended = True
        for peer in self.living:
            self._moves.move(rank.number, peer.number, 0, nothing, partial(self._lose, peer, rank))
        after_s = rank.successor_after_s()
        if after_s is not None:
            rank.ended = False  # its place is taken
            self._moves.after(after_s * self._case.dilation, partial(self._succeed, rank))

    def _lose(self, rank: Rank, dead: Rank) -> None:
        """A rank learns of the death of a peer."""
        if rank.dead:
            return
        assert isinstance(rank, MortalRank)
        number = dead.number
        rank.lost |= {number}
        rank.arrivals.lose(number)
        for wanted in list(rank.wanted):
            there = any(each is wanted for each in rank.wanted)  # what went on before it may have cancelled it
            if there and (taken := rank.arrivals.take(wanted.source, wanted.effect.tag)) is not None:
                rank.wanted = [each for each in rank.wanted if each is not wanted]
                wanted.then(taken)
        for call in [call for call, (peer, _) in rank.calls.items() if peer == number]:
            self._answered(rank, call, Lost(number))
        if self._ranks[number] is not dead and number in rank.lost:  # its successor was faster
            self._regain(rank, number)

    @staticmethod
    def _regain(rank: Rank, number: int) -> None:
        rank.lost -= {number}
        rank.arrivals.regain(number)

    def _succeed(self, dead: MortalRank) -> None:
        """A successor takes the place of a rank: a program from its begin, which knows nothing of the one before."""
        number = dead.number
        self.renew(number)
        self._predecessors[number] = dead
        successor = self._rank(self._form, number)
        successor.lost = frozenset(rank.number for rank in self._ranks if rank.dead and rank is not dead)
        self._ranks[number] = successor
        for rank in self.living:
            if number in rank.lost:
                self._regain(rank, number)
        self._resume(successor, None)
