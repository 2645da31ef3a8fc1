"""Polls of peers, and messages that take no time: the same programs as over a network that costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from scaleproof.rank_programs.effects import Effect, Poll, Receive, Send, Sleep
from scaleproof.rank_programs.rank_program import GONE, RankProgram
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.virtual_run import VirtualRun
from scaleproof.spec.case import OwnCase
from scaleproof.spec.cluster import star
from scaleproof.spec.errors import SpecError
from tests.short_form import case_from, train_case
from tests.unit.rank_programs.test_virtual_run import FREE, ends

Main = Callable[[RankProgram], Generator[Effect, Any, None]]
FIELDS = {"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": "t", "transport": "tcp"}


def virtual(messages: str, *mains: Main) -> VirtualRun:
    """Rank r runs `mains[r]`."""

    class Program(RankProgram):
        def main(self) -> Generator[Effect, Any, None]:
            return mains[self.rank](self)

    fabric = {"name": "simulated", "messages": messages}
    case = case_from({**FIELDS, "ranks": len(mains), "iterations": 2, "fabric": fabric})
    assert isinstance(case, OwnCase)
    run = VirtualRun(Program, case, Network(star("star", len(mains), None, 0.0)), range(len(mains)), FREE, 1e9)
    run.run()
    return run


def works(program: RankProgram) -> Generator[Effect, Any, None]:
    """A step a second, three of them."""
    for step in range(3):
        yield Sleep(1.0)
        program.finished = step + 1.0
    yield Sleep(2.0)


@pytest.mark.parametrize("messages", ["timed", "free"])
def test_a_poll_goes_on_until_each_of_the_last_sample_is_far_enough(messages: str) -> None:
    asked = list[tuple[int, ...]]()

    def polls(program: RankProgram) -> Generator[Effect, Any, None]:
        def peers() -> tuple[int, ...]:
            asked.append((1, 2) if len(asked) % 2 else (1,))
            return asked[-1]

        count = yield Poll(peers, 2.0, 0.75)
        assert count == sum(map(len, asked))

    run = virtual(messages, polls, works, works)
    assert asked == [(1,), (1, 2), (1,), (1, 2)], "at 0, 0.75, 1.5 and 2.25 s"
    assert ends(run, 0, "control") == [pytest.approx(2.25, abs=1e-6)]
    assert [each.value for each in run.events if each.event == "control"] == [6.0]


@pytest.mark.parametrize("messages", ["timed", "free"])
def test_a_peer_that_has_gone_is_far_enough(messages: str) -> None:
    def gone(program: RankProgram) -> Generator[Effect, Any, None]:
        program.finished = GONE
        yield from ()

    def polls(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Sleep(1.0)
        assert (yield Poll(lambda: [1], 1e6, 1.0)) == 1

    virtual(messages, polls, gone)


@pytest.mark.parametrize("messages", ["timed", "free"])
def test_an_error_of_who_is_asked_is_one_line(messages: str) -> None:
    def polls(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Poll(lambda: [1 // 0], 1.0, 1.0)

    with pytest.raises(SpecError, match="rank 0: ZeroDivisionError"):
        virtual(messages, polls, works)


def test_free_messages_arrive_in_their_order_and_take_no_time() -> None:
    received = list[int]()

    def sends(program: RankProgram) -> Generator[Effect, Any, None]:
        for number in range(3):
            yield Send(1, np.array([number]))
        yield Sleep(1.0)

    def receives(program: RankProgram) -> Generator[Effect, Any, None]:
        for _ in range(3):
            received.append(int((yield Receive(0)).value[0]))

    run = virtual("free", sends, receives)
    assert received == [0, 1, 2]
    assert (ends(run, 1, "end"), ends(run, 0, "end")) == ([0.0], [1.0])


def test_ranks_that_answer_each_other_a_thousand_times_do_not_call_each_other_deeper() -> None:
    def plays(program: RankProgram) -> Generator[Effect, Any, None]:
        other = 1 - program.rank
        for _ in range(5000):
            if program.rank == 0:
                yield Send(other, np.zeros(1))
            yield Receive(other)
            if program.rank == 1:
                yield Send(other, np.zeros(1))

    run = virtual("free", plays, plays)
    assert ends(run, 0, "end") == [0.0]


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"strategy": "sync", "collective": "ring"}, "only programs of each rank can have free messages"),
        ({"strategy": "gossip", "fabric.link_mbit": 100}, "messages that take no time have no links"),
        ({"strategy": "gossip", "fabric.cluster": "ethernet_10g"}, "messages that take no time have no links"),
    ],
)
def test_free_messages_that_cannot_be_are_one_line(fields: dict[str, Any], wrong: str) -> None:
    short = {"transport": "tcp", "workload": "dnn_digits", "ranks": 2, "fabric": "simulated", "fabric.messages": "free"}
    with pytest.raises((ValidationError, ValueError), match=wrong):
        train_case(**{**short, **fields})
