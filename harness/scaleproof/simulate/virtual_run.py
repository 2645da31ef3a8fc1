"""Rank programs in virtual time, in one process: the event engine decides when, and the programs compute for real."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import (
    Await,
    Call,
    Charge,
    Compute,
    Effect,
    Receive,
    Send,
    Sleep,
    Start,
    Started,
    event_of,
    moved_nbytes,
)
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.link_network import Network
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.transports.mailbox import ANY, Arrivals, Message

Then = Callable[[Any], None]
"""What goes on with the result of an effect."""


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of one rank, in s of virtual time."""

    rank: int
    event: str
    step: int
    warmup: bool
    start: float
    end: float
    nbytes: int = 0


@dataclass(slots=True)
class _Result:
    """Of an effect: there already, or `then` is told."""

    value: Any = None
    there: bool = False
    then: Then | None = None

    def put(self, value: Any) -> None:
        """The effect has ended."""
        self.value, self.there = value, True
        if self.then is not None:
            self.then(value)


@dataclass(slots=True)
class _Lane:
    """Effects of one lane that have not ended; the first is being carried out."""

    effects: deque[tuple[Effect, _Result]] = field(default_factory=deque)


@dataclass(slots=True)
class _Wanted:
    """A receive that waits."""

    source: int
    tag: int
    then: Then


class _Rank:
    """A rank: its program, and what it has been sent. It is the program's clock."""

    def __init__(self, run: VirtualRun, form: type[RankProgram], case: OwnCase, number: int) -> None:
        self._run, self.number = run, number
        self.arrivals, self.wanted = Arrivals(), list[_Wanted]()
        self.lanes: dict[int, _Lane] = {}
        self.started: list[_Result] = []
        self.step, self.warmup, self._began = -1, False, -1.0
        self.waits_in: Effect | None = None
        self.program = form(case, number, self)
        self.ended = False
        self.main = self._whole()

    def _whole(self) -> Generator[Effect, Any, None]:
        yield from barrier(self.number, self.program.world_size)
        self._run.happened(self, "start", self._run.now)
        yield from self.program.main()
        self._run.happened(self, "end", self._run.now)
        yield from barrier(self.number, self.program.world_size)

    def step_begins(self, step: int, warmup: bool) -> None:
        """See Clock."""
        self.steps_end()
        self.step, self.warmup, self._began = step, warmup, self._run.now

    def steps_end(self) -> None:
        """See Clock."""
        if self._began >= 0:
            self._run.happened(self, "step", self._began)
            self._began = -1.0


class VirtualRun:
    """All ranks of a case. `nodes`: the node of each; `buffer`: bytes that a connection takes before its receiver
    reads. A message goes at once and is kept where it arrives, as in a mailbox."""

    def __init__(
        self,
        form: type[RankProgram],
        case: OwnCase,
        network: Network,
        nodes: Sequence[int],
        costs: MessageCosts,
        buffer: float,
    ) -> None:
        self._case, self._network, self._nodes, self._costs, self._buffer = case, network, nodes, costs, buffer
        self._engine = Engine(network.capacities)
        self._pairs: dict[tuple[int, int], tuple[int, int, int, tuple[int, ...]]] = {}
        self._told: dict[int, Callable[[], None]] = {}
        self.events: list[Happened] = []
        self._perform: dict[type, Callable[[_Rank, Any, Then], None]] = {
            Compute: self._compute,
            Charge: lambda rank, effect, then: self._after(effect.nbytes * self._costs.gamma, partial(then, None)),
            Sleep: lambda rank, effect, then: self._after(effect.seconds * case.dilation, partial(then, None)),
            Send: self._send,
            Receive: self._receive,
            Call: self._call,
            Start: self._start,
            Await: self._await,
        }
        self._ranks = [_Rank(self, form, case, number) for number in range(case.ranks)]

    @property
    def now(self) -> float:
        """The time, in s."""
        return self._engine.now

    def run(self) -> list[RankProgram]:
        """Runs all ranks to their ends and returns their programs. Raises SpecError where ranks wait for ever."""
        for rank in self._ranks:
            self._resume(rank, None)
        while len(ended := self._engine.run()):
            for task in ended.tolist():
                self._told.pop(task)()
        waiting = [rank for rank in self._ranks if not rank.ended]
        if waiting:
            first = waiting[0]
            raise SpecError(
                f"{type(first.program).__name__}: rank {first.number} waits for ever in step {first.step}: "
                f"{first.waits_in}; {len(waiting)} of {len(self._ranks)} ranks have not ended"
            )
        return [rank.program for rank in self._ranks]

    def happened(self, rank: _Rank, event: str, start: float, nbytes: int = 0) -> None:
        """An event that ends now."""
        self.events.append(Happened(rank.number, event, rank.step, rank.warmup, start, self.now, nbytes))

    def _resume(self, rank: _Rank, value: Any) -> None:
        """The main program goes on, up to the next effect that takes time."""
        while True:
            try:
                effect = rank.main.send(value)
            except StopIteration:
                rank.ended = True
                return
            rank.waits_in = effect
            result = self._carry_out(rank, effect)
            if not result.there:
                result.then = partial(self._resume, rank)
                return
            value = result.value

    def _carry_out(self, rank: _Rank, effect: Effect) -> _Result:
        result, began = _Result(), self.now
        name = event_of(effect)

        def then(value: Any) -> None:
            if name:
                self.happened(rank, name, began, moved_nbytes(effect, value))
            result.put(value)

        self._perform[type(effect)](rank, effect, then)
        return result

    def _compute(self, rank: _Rank, effect: Compute, then: Then) -> None:
        value = effect.work() if effect.work else None
        self._after(effect.seconds * self._case.dilation, partial(then, value))

    def _send(self, rank: _Rank, effect: Send, then: Then) -> None:
        message = Message(rank.number, effect.tag, effect.value.copy())
        self._move(
            rank.number,
            effect.peer,
            message.value.nbytes,
            partial(then, None),
            partial(self._arrive, effect.peer, message),
        )

    def _receive(self, rank: _Rank, effect: Receive, then: Then) -> None:
        message = rank.arrivals.take(effect.source, effect.tag)
        if message is None:
            rank.wanted.append(_Wanted(effect.source, effect.tag, then))
        else:
            then(message)

    def _arrive(self, number: int, message: Message) -> None:
        """A message is there: for the receive that has waited longest, or for a later one."""
        rank = self._ranks[number]
        for place, wanted in enumerate(rank.wanted):
            if wanted.tag == message.tag and wanted.source in (ANY, message.source):
                del rank.wanted[place]
                wanted.then(message)
                return
        rank.arrivals.add(message)

    def _call(self, rank: _Rank, effect: Call, then: Then) -> None:
        value, peer = effect.value.copy(), effect.peer

        def answer() -> None:
            served = self._ranks[peer].program.serve(rank.number, effect.name, value)
            self._move(peer, rank.number, served.nbytes, _nothing, partial(then, served))

        self._move(rank.number, peer, value.nbytes, _nothing, answer)

    def _start(self, rank: _Rank, effect: Start, then: Then) -> None:
        result = _Result()
        rank.started.append(result)
        lane = rank.lanes.setdefault(effect.lane, _Lane())
        lane.effects.append((effect.effect, result))
        if len(lane.effects) == 1:
            self._next(rank, lane)
        then(Started(len(rank.started) - 1))

    def _next(self, rank: _Rank, lane: _Lane) -> None:
        """Carries out the first effect of a lane."""
        effect, result = lane.effects[0]

        def ended(value: Any) -> None:
            lane.effects.popleft()
            result.put(value)
            if lane.effects:
                self._next(rank, lane)

        carried = self._carry_out(rank, effect)
        if carried.there:
            ended(carried.value)
        else:
            carried.then = ended

    def _await(self, rank: _Rank, effect: Await, then: Then) -> None:
        result = rank.started[effect.started.number]
        if result.there:
            then(result.value)
        else:
            result.then = then

    def _after(self, seconds: float, then: Callable[[], None]) -> None:
        self._told[int(self._engine.work(seconds, watched=True)[0])] = then

    def _move(
        self, source: int, destination: int, nbytes: int, sent: Callable[[], None], arrived: Callable[[], None]
    ) -> None:
        """A message over the connection of two ranks. `sent`: its sender may go on; `arrived`: all of it is there."""
        if source == destination:
            arrived()
            sent()
            return
        route, stream, box, links = self._pair(source, destination)
        size = np.array([float(nbytes)])
        alpha, beta = float(self._costs.alpha(size)[0]), float(self._costs.beta(size)[0])
        send = self._engine.send(
            box,
            source,
            route,
            nbytes,
            buffer=self._buffer,
            highest=self._network.most(links, beta),
            delay=alpha + self._network.delay_s(links),
            stream=stream,
            watched=True,
        )
        receive = self._engine.receive(box, source, watched=True)
        self._told[int(send[0])], self._told[int(receive[0])] = sent, arrived

    def _pair(self, source: int, destination: int) -> tuple[int, int, int, tuple[int, ...]]:
        """Route, connection, box and links from one rank to another."""
        key = source, destination
        if key not in self._pairs:
            links = self._network.route(self._nodes[source], self._nodes[destination])
            route, stream = self._engine.route(links), int(self._engine.streams(1)[0])
            self._pairs[key] = route, stream, int(self._engine.boxes(1)[0]), links
        return self._pairs[key]


def _nothing() -> None:
    """Nobody waits for this end."""
