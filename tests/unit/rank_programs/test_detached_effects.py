"""Effects that nobody awaits: all of them end before their rank does, none is kept longer than it takes, and what they
raise ends the run. The passive side's arithmetic takes its time."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from scaleproof.rank_programs.effects import DETACHED, Await, Call, Detach, Effect, Send, Settle, Sleep, Start
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.spec.errors import SpecError
from tests.unit.rank_programs.test_virtual_run import array, ends, nothing, virtual

Program = Generator[Effect, Any, None]
COSTS = MessageCosts((Segment(None, 0.25, 0.0),), gamma=0.01)


def test_what_a_rank_has_detached_ends_before_the_rank_does() -> None:
    served = list[int]()

    def serve(program: RankProgram, source: int, name: str, value: np.ndarray) -> np.ndarray:
        served.append(int(value[0]))
        return array(0)

    def calls(program: RankProgram) -> Program:
        for number in range(3):
            yield Detach(Call(1, np.full(500, number, np.uint8)))

    run = virtual(calls, nothing, serve=serve, costs=COSTS)
    start = ends(run, 0, "start")[0]
    assert served == [0, 1, 2], "effects of one lane go one after the other"
    assert ends(run, 0, "end") == [round(start + 3 * (0.25 + 0.5 + 0.25), 9)]


def test_a_rank_has_few_detached_effects_at_a_time_and_keeps_none_that_was_awaited() -> None:
    most = [0]

    def sends(program: RankProgram) -> Program:
        rank: Any = program._clock
        for _ in range(3 * DETACHED):
            yield Detach(Send(1, array(1000)))
            most[0] = max(most[0], len(rank.detached))
        yield Settle()
        for _ in range(5):
            yield Await((yield Start(Sleep(0.1))))
        assert not rank.started and all(result.there for result in rank.detached)

    virtual(sends, nothing)
    assert most == [DETACHED]


def test_what_a_detached_call_raises_ends_the_run_with_its_line() -> None:
    def serve(program: RankProgram, source: int, name: str, value: np.ndarray) -> np.ndarray:
        raise ArithmeticError("no sum")

    def calls(program: RankProgram) -> Program:
        yield Detach(Call(1, array(4), "push"))

    with pytest.raises(SpecError, match="programs/t.py: rank 1 serves rank 0: ArithmeticError: no sum"):
        virtual(calls, nothing, serve=serve)


def test_a_started_effect_is_awaited_once() -> None:
    def main(program: RankProgram) -> Program:
        started = yield Start(Sleep(1.0))
        yield Await(started)
        yield Await(started)

    with pytest.raises(SpecError, match="programs/t.py: a started effect is awaited once: number 0 was awaited before"):
        virtual(main)


def test_answers_leave_when_the_arithmetic_of_all_calls_before_them_is_done() -> None:
    def serve(program: RankProgram, source: int, name: str, value: np.ndarray) -> np.ndarray:
        program.charge(value.nbytes)
        return array(0)

    def calls(program: RankProgram) -> Program:
        yield Sleep(10.0 if program.rank == 1 else 0.0)  # rank 1 has nothing to do, which hinders nobody
        if program.rank != 1:
            yield Call(1, array(100))

    costs = MessageCosts((Segment(None, 0.25, 0.0),), gamma=0.01)
    run = virtual(calls, calls, calls, serve=serve, costs=costs, buffer=1e6)
    start = min(ends(run, rank, "start")[0] for rank in (0, 2))
    there = 0.25 + 0.2  # of 100 bytes each, which share the link of rank 1
    assert sorted(round(ends(run, rank, "call")[0] - start, 6) for rank in (0, 2)) == [
        round(there + 1.0 + 0.25, 6),
        round(there + 2.0 + 0.25, 6),
    ]
