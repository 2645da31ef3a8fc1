"""Rank programs in virtual time, in one process: the event engine decides when, and the programs compute for real."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.rank_programs.effect_events import event_of, recorded
from scaleproof.rank_programs.effects import (
    Call,
    Charge,
    Collective,
    Compute,
    Effect,
    Poll,
    Receive,
    Send,
    Sleep,
)
from scaleproof.rank_programs.polling import polling
from scaleproof.rank_programs.rank_program import Form, RankProgram
from scaleproof.simulate.answered_calls import CallsInOrder
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.free_moves import FreeMoves, moves_of
from scaleproof.simulate.free_polls import FreePolls
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.virtual_deadlock import why
from scaleproof.simulate.virtual_lanes import VirtualLanes
from scaleproof.simulate.virtual_messages import Moves, nothing
from scaleproof.simulate.virtual_parts import Parts
from scaleproof.simulate.virtual_rank import Rank, Result, Then, Wanted
from scaleproof.simulate.virtual_regions import RegionMoves
from scaleproof.spec.case import OwnCase, TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.transports.mailbox import ANY, Message


class Happened(NamedTuple):
    """An event of one rank, in s of virtual time."""

    rank: int
    event: str
    step: int
    warmup: bool
    start: float
    end: float
    nbytes: int = 0
    value: float = math.nan


def _name_of(case: OwnCase | TrainCase) -> str:
    """What a message to the user calls its program."""
    return f"programs/{case.entry}.py" if isinstance(case, OwnCase) else f"strategy {case.strategy}"


class VirtualRun:
    """All ranks of a case. `nodes`: the node of each; `buffer`: bytes that a connection takes before its receiver
    reads; `seed`: the launch's."""

    def __init__(
        self,
        form: Form,
        case: OwnCase | TrainCase,
        network: Network,
        nodes: Sequence[int],
        costs: MessageCosts,
        buffer: float,
        seed: int = 0,
    ) -> None:
        self._case, self._costs, self._name, self._seed = case, costs, _name_of(case), seed
        self._moves = moves_of(case, network, nodes, costs, buffer)
        self.events: list[Happened] = []
        self.orders: dict[int, Iterator[int]] = {}
        """Sources of a rank's receives from any, in the order of another run."""
        self.calls: dict[int, CallsInOrder] = {}
        """Calls of a rank, as another run answered them."""
        self._perform: dict[type, Callable[[Rank, Any, Then], None]] = {}
        parts = Parts(self._perform, self._moves, costs.gamma, self._failed)
        self._perform |= {
            Compute: self._compute,
            Charge: lambda rank, effect, then: self._moves.after(self._own_s(effect.nbytes), partial(then, None)),
            Sleep: lambda rank, effect, then: self._moves.after(effect.seconds * case.dilation, partial(then, None)),
            Send: self._send,
            Receive: self._receive,
            Call: self._call,
            Collective: lambda rank, effect, then: parts.begin(rank, effect, rank.collectives.messages(effect), then),
            Poll: lambda rank, effect, then: parts.begin(rank, effect, polling(effect), then),
        }
        self._ranks: list[Rank] = []
        self._perform |= RegionMoves(self._moves, self._ranks).perform | VirtualLanes(self._carry_out).perform
        if isinstance(self._moves, FreeMoves):
            self._perform |= FreePolls(self._moves, self._ranks, case, self._failed).perform
        self._ranks += [self._rank(form, number) for number in range(case.ranks)]

    @property
    def now(self) -> float:
        """The time, in s."""
        return self._moves.now

    @property
    def dilation(self) -> float:
        """Of the case."""
        return self._case.dilation

    @property
    def moves(self) -> Moves:
        """What has moved."""
        return self._moves

    @property
    def living(self) -> list[Rank]:
        """All ranks that were not killed."""
        return self._ranks

    def run(self) -> list[RankProgram]:
        """Runs all ranks to their ends and returns their programs. Raises SpecError, one line with rank and operation,
        where a program raises an error, ranks wait for ever, or one writes beside a region."""
        try:
            for rank in self._ranks:
                self._resume(rank, None)
            self._moves.run()
        except TransportError as error:  # of a region: it names both ranks
            raise SpecError(f"{self._name}: {error}") from error
        if not all(rank.ended for rank in self._ranks):
            raise SpecError(f"{self._name}: {why(self._ranks)}")
        return [rank.program for rank in self._ranks]

    def happened(
        self, rank: Rank, event: str, start: float, value: float = math.nan, nbytes: int = 0, end: float | None = None
    ) -> None:
        """An event that ends now, or has ended before."""
        ended = self.now if end is None else end
        self.events.append(Happened(rank.number, event, rank.step, rank.warmup, start, ended, nbytes, value))

    def checks(self) -> list[tuple[int, str, bool, str]]:
        """Rank, name, whether it passed, and detail of each check, after the run."""
        found = []
        for rank in self._ranks:
            try:
                found += [(rank.number, *check) for check in rank.program.checks()]
            except Exception as error:
                raise self._failed(f"rank {rank.number}, checks", error) from error
        return found

    def _rank(self, form: Form, number: int) -> Rank:
        try:
            return Rank(form, self._case, number, lambda: self.now, self.happened, self._seed)
        except Exception as error:
            raise self._failed(f"rank {number}", error) from error

    def _failed(self, where: str, error: Exception) -> SpecError:
        """An error of a program in one line, with what it was."""
        if isinstance(error, SpecError) and str(error).startswith(self._name):
            return error
        what = str(error) if isinstance(error, SpecError | TransportError) else f"{type(error).__name__}: {error}"
        return SpecError(f"{self._name}: {where}: {' '.join(what.split())}")

    def _resume(self, rank: Rank, value: Any) -> None:
        """The main program goes on, up to the next effect that takes time."""
        order = self.calls.get(rank.number)
        while True:
            if order is not None and rank.counts and order.serve_due(rank.resumes):
                rank.held = (value,)
                return
            rank.resumes += rank.counts
            try:
                effect = rank.main.send(value)
            except StopIteration:
                rank.ended = True
                return
            except Exception as error:
                raise self._failed(rank.where, error) from error
            if order is not None:
                order.serve_due(rank.resumes)
            rank.waits_in = effect
            result = self._carry_out(rank, effect)
            if not result.there:
                result.tell(partial(self._resume, rank))
                return
            value = result.value

    def _carry_out(self, rank: Rank, effect: Effect) -> Result:
        result, name = Result(), event_of(effect)
        if not name:
            self._perform[type(effect)](rank, effect, result.put)
            return result
        began = self.now

        def then(value: Any) -> None:
            event, nbytes, said = recorded(name, effect, value)
            self.happened(rank, event, began, said, nbytes)
            result.put(value)

        self._perform[type(effect)](rank, effect, then)
        return result

    def _compute(self, rank: Rank, effect: Compute, then: Then) -> None:
        try:
            value = effect.work() if effect.work else None
        except Exception as error:
            raise self._failed(f"{rank.where}, {effect.event}", error) from error
        self._moves.after(effect.seconds * self._case.dilation, partial(then, value))

    def _send(self, rank: Rank, effect: Send, then: Then) -> None:
        message = Message(rank.number, effect.tag, effect.value.copy())
        self._moves.move(
            rank.number,
            effect.peer,
            message.value.nbytes,
            partial(then, None),
            partial(self._arrive, effect.peer, message),
        )

    def _receive(self, rank: Rank, effect: Receive, then: Then) -> None:
        source = effect.source
        if source == ANY and effect.tag >= 0 and rank.number in self.orders:
            source = next(self.orders[rank.number])
        message = rank.arrivals.take(source, effect.tag)
        if message is not None:
            then(message)
            return
        wanted = Wanted(effect, source, then)
        rank.wanted.append(wanted)
        if effect.within is not None:
            self._moves.after(effect.within * self._case.dilation, partial(self._over, rank, wanted))

    def _over(self, rank: Rank, wanted: Wanted) -> None:
        """A receive has waited as long as it may."""
        waits = [each for each in rank.wanted if each is not wanted]
        if len(waits) < len(rank.wanted):
            rank.wanted = waits
            wanted.then(None)

    def _arrive(self, number: int, message: Message) -> None:
        """A message is there: for the receive that has waited longest, or for a later one."""
        rank = self._ranks[number]
        for place, wanted in enumerate(rank.wanted):
            if wanted.effect.tag == message.tag and wanted.source in (ANY, message.source):
                del rank.wanted[place]
                wanted.then(message)
                return
        rank.arrivals.add(message)

    def _call(self, rank: Rank, effect: Call, then: Then) -> None:
        serve = partial(self._serve, rank, effect, effect.value.copy(), then)
        asked = partial(self._ask, rank.number, self._ranks[effect.peer], serve)
        self._moves.move(rank.number, effect.peer, effect.value.nbytes, nothing, asked)

    def _ask(self, source: int, peer: Rank, serve: Callable[[], None]) -> None:
        """A call is there."""
        if (order := self.calls.get(peer.number)) is None:
            serve()
            return
        order.ask(source, serve)
        if not order.serve_due(peer.resumes) and peer.held:
            (value,), peer.held = peer.held, ()
            self._resume(peer, value)

    def _serve(self, rank: Rank, effect: Call, value: np.ndarray, then: Then) -> None:
        """A rank serves one call after the other, each for as long as its arithmetic takes."""
        peer = self._ranks[effect.peer]
        try:
            reply = peer.program.serve(rank.number, effect.name, value)
        except Exception as error:
            raise self._failed(f"rank {peer.number} serves rank {rank.number}", error) from error
        answer = partial(self._moves.move, peer.number, rank.number, reply.nbytes, nothing, partial(then, reply))
        peer.serves_until = max(peer.serves_until, self.now) + self._own_s(peer.charged())
        if peer.serves_until > self.now:
            self._moves.after(peer.serves_until - self.now, answer)
        else:
            answer()

    def _own_s(self, nbytes: int) -> float:
        """How long a rank's own arithmetic takes, on so many bytes of shrunk arrays, on the dilated clock."""
        return nbytes * self._costs.gamma * self._case.shrink * self._case.dilation
