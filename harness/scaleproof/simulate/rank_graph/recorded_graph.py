"""All steps of a strategy that is a program of each rank as a graph: what its ranks did in a run in virtual time. Who
exchanges with whom may depend on times there, and stays as it was in that run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from typing import Any

from scaleproof.rank_programs.effect_events import described
from scaleproof.rank_programs.effects import (
    ALL,
    Await,
    AwaitAll,
    AwaitAny,
    AwaitFlag,
    Call,
    Charge,
    Collective,
    CompareAndSwap,
    Detach,
    Effect,
    Flag,
    Get,
    Gradient,
    Poll,
    Put,
    Receive,
    Send,
    Settle,
    Sleep,
    Start,
    Update,
)
from scaleproof.rank_programs.graph.rank_graph import NONE, Builder, RankGraph
from scaleproof.rank_programs.polling import polling
from scaleproof.rank_programs.rank_program import Form
from scaleproof.simulate.predict import Inputs, factor_of
from scaleproof.simulate.program import algorithm_of
from scaleproof.simulate.virtual_learners import Nothing
from scaleproof.simulate.virtual_rank import Rank
from scaleproof.simulate.virtual_training import Passes, VirtualTraining
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError

FIRST_TAG = 1000
"""Tags from here on are of calls, puts and flags; strategies number their messages below."""
TAKES_TIME = (Gradient, Update, Charge, Sleep)


def recorded_graph(inputs: Inputs, seed: int = 0) -> RankGraph:
    """The graph of a case without dilation and shrink; arithmetic of answers is left out. Raises SpecError, one line
    with rank and effect, for what a graph cannot express."""
    case, profile = inputs.case, inputs.profile
    assert isinstance(case, TrainCase)
    if case.faults is not None:
        raise SpecError(f"case {case.case_id}: a graph has no faults; leave out `faults`")
    seconds = (profile.forward_s, profile.backward_s, profile.update_s.median) if profile else (0.0, 0.0, 0.0)
    run = _Recorded(case, inputs, Passes(*seconds, factor_of(inputs, seed)), seed)
    run.run()
    return run.builder.graph()


class _Recorded(VirtualTraining):
    """A run whose programs are watched."""

    def __init__(self, case: TrainCase, inputs: Inputs, passes: Passes, seed: int) -> None:
        self.builder, self._name_of_case = Builder(case.ranks), f"case {case.case_id}"
        self._algorithm, self._tags = algorithm_of(case), FIRST_TAG
        self._numbers: dict[tuple[object, ...], int] = {}
        """Of collectives, by members, tag and how often these had it before."""
        self._flags = defaultdict[tuple[int, str], list[int]](list)
        """Nodes that receive a flag, by rank and name."""
        super().__init__(case, inputs.cluster, inputs.costs.central(), passes, Nothing(case), seed)

    def _rank(self, form: Form, number: int) -> Rank:
        rank = super()._rank(form, number)
        watched, main = _Watched(self, rank), rank.program.main
        rank.program.main = lambda: watched.main(main())  # type: ignore[method-assign]
        return rank

    def failed(self, rank: int, effect: Effect) -> SpecError:
        """An effect that no graph has."""
        return SpecError(f"{self._name_of_case}: rank {rank} {described(effect)}: a graph cannot express this")

    def moved(self, source: int, destination: int, nbytes: float, after: list[int]) -> tuple[list[int], list[int]]:
        """A message to a rank whose program takes no part: nodes of its sender and of its receiver."""
        if source == destination:
            return after, after
        self._tags += 1
        sent = self.builder.send(source, destination, nbytes, after, tag=self._tags)
        return [sent], [self.builder.receive(destination, source, nbytes, tag=self._tags)]

    def answered(self, rank: int, peer: int, nbytes: float, answer: float, after: list[int]) -> list[int]:
        """A call and its answer: the node in which the answer is there."""
        if rank == peer:
            return after
        sent, there = self.moved(rank, peer, nbytes, after)
        self._tags += 1
        self.builder.send(peer, rank, answer, there, tag=self._tags)
        return [self.builder.receive(rank, peer, answer, sent, tag=self._tags)]

    def put(self, rank: int, effect: Put, after: list[int]) -> list[int]:
        """An array into a region of a peer, and its flag."""
        sent, there = self.moved(rank, effect.peer, effect.value.nbytes, after)
        if effect.flag:
            self._flags[effect.peer, effect.flag] += there
        return sent

    def flagged(self, rank: int, effect: Flag, after: list[int]) -> list[int]:
        """A flag of a peer."""
        sent, there = self.moved(rank, effect.peer, 0.0, after)
        self._flags[effect.peer, effect.name] += there * effect.add
        return sent

    def flags(self, rank: int, name: str, count: int) -> list[int]:
        """Nodes that have raised a flag so high."""
        return self._flags[rank, name][:count]

    def collective(self, members: tuple[int, ...], effect: Collective, use: int) -> int:
        """The number of a collective."""
        key = members, effect.tag, use
        if key not in self._numbers:
            made = self.builder.collective(effect.operation, effect.nbytes, members, self._algorithm)
            self._numbers[key] = made
        return self._numbers[key]


class _Watched:
    """One rank. `_stream`: nodes that its next effect waits for."""

    def __init__(self, run: _Recorded, rank: Rank) -> None:
        self._run, self._number, self._program = run, rank.number, rank.program
        self._stream: list[int] = []
        self._started: dict[int, tuple[Effect, list[int]]] = {}
        """Effects on lanes, and what each waits for."""
        self._lanes = defaultdict[int, list[int]](list)
        """The last nodes of each lane."""
        self._uses = defaultdict[tuple[str, int], int](int)
        self._nodes: dict[type, Callable[[Any, Any, list[int]], list[int]]] = {
            Send: self._send,
            Receive: self._receive,
            Call: lambda effect, result, after: self._asked(effect, effect.value.nbytes, _nbytes(result), after),
            Get: lambda effect, result, after: self._asked(effect, 0.0, _nbytes(result), after),
            CompareAndSwap: lambda effect, result, after: self._asked(effect, 0.0, 0.0, after),
            Put: lambda effect, _, after: run.put(self._number, effect, after),
            Flag: lambda effect, _, after: run.flagged(self._number, effect, after),
            AwaitFlag: lambda effect, result, after: [*after, *run.flags(self._number, effect.name, result)],
            Collective: self._join,
        }

    def main(self, program: Generator[Effect, Any, Any]) -> Generator[Effect, Any, Any]:
        """The program, of which each effect is recorded, and each call of a poll."""
        result: Any = None
        while True:
            try:
                effect = program.send(result)
            except StopIteration as end:
                return end.value
            if isinstance(effect, Poll):
                result = yield from self.main(polling(effect))
                continue
            early = isinstance(effect, Send | Put | Flag)  # before a peer goes on with it
            if early:
                self._stream = self._recorded(effect, None, self._stream)
            began = self._run.now
            result = yield effect
            if isinstance(effect, TAKES_TIME):
                lane = NONE if isinstance(effect, Sleep) else 0
                seconds = (self._run.now - began) / self._run.dilation
                self._stream = [self._run.builder.compute(self._number, seconds, self._stream, lane)]
            elif not early:
                self._take(effect, result)

    def _take(self, effect: Effect, result: Any) -> None:
        if isinstance(effect, Start):
            self._started[result.number] = effect.effect, [*self._stream, *self._lanes[effect.lane]]
        elif isinstance(effect, Detach):
            after = [*self._stream, *self._lanes[effect.lane]]
            self._lanes[effect.lane] = self._recorded(effect.effect, None, after)
        elif isinstance(effect, Await | AwaitAll | AwaitAny):
            for number, value in _awaited(effect, result):
                started, after = self._started.pop(number)
                self._stream = [*self._stream, *self._recorded(started, value, after)]
        elif not isinstance(effect, Settle):
            self._stream = self._recorded(effect, result, self._stream)

    def _recorded(self, effect: Effect, result: Any, after: list[int]) -> list[int]:
        if type(effect) not in self._nodes:
            raise self._run.failed(self._number, effect)
        return self._nodes[type(effect)](effect, result, list(dict.fromkeys(after)))

    def _send(self, effect: Send, _: Any, after: list[int]) -> list[int]:
        if effect.peer == self._number:
            raise self._run.failed(self._number, effect)
        return [self._run.builder.send(self._number, effect.peer, effect.value.nbytes, after, tag=effect.tag)]

    def _receive(self, effect: Receive, result: Any, after: list[int]) -> list[int]:
        nbytes = float(result.value.nbytes)
        return [self._run.builder.receive(self._number, result.source, nbytes, after, tag=effect.tag)]

    def _asked(self, effect: Any, nbytes: float, answer: float, after: list[int]) -> list[int]:
        return self._run.answered(self._number, effect.peer, nbytes, answer, after)

    def _join(self, effect: Collective, _: Any, after: list[int]) -> list[int]:
        everyone = {ALL: (tuple(range(self._program.world_size)),)}
        parts = {**everyone, **self._program.groups()}[effect.group]
        members = next(tuple(part) for part in parts if self._number in part)
        if len(members) < 2:
            return after
        use = self._uses[effect.group, effect.tag]
        self._uses[effect.group, effect.tag] += 1
        return [self._run.builder.join(self._number, self._run.collective(members, effect, use), after)]


def _awaited(effect: Await | AwaitAll | AwaitAny, result: Any) -> Iterator[tuple[int, Any]]:
    """Numbers of started effects that have ended, and their results."""
    if isinstance(effect, Await):
        yield effect.started.number, result
    elif isinstance(effect, AwaitAny):
        yield result.started.number, result.value
    else:
        yield from ((started.number, value) for started, value in zip(effect.started, result, strict=True))


def _nbytes(result: Any) -> float:
    """Of an answer; a call that nobody awaits has none to speak of."""
    return 0.0 if result is None else float(result.nbytes)
