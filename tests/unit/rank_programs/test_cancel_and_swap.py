"""Receives that are cancelled or wait for a time only, and compare-and-swap, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from scaleproof.rank_programs.effects import (
    ANY,
    Await,
    AwaitAny,
    AwaitFlag,
    Cancel,
    CompareAndSwap,
    Compute,
    Effect,
    Ended,
    Flag,
    Receive,
    Send,
    Sleep,
    Start,
)
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.spec.errors import SpecError
from tests.unit.rank_programs.test_virtual_run import array, ends, virtual

Program = Generator[Effect, Any, None]


def test_a_cancelled_receive_takes_nothing_and_the_next_one_has_the_message() -> None:
    def receives(program: RankProgram) -> Program:
        posted = yield Start(Receive(ANY, 3))
        yield Sleep(1.0)
        assert (yield Cancel(posted)) is True
        assert (yield Await(posted)) is None
        assert (yield Cancel(posted)) is False, "it has ended"
        assert (yield Receive(1, 3)).value.size == 5

    def sends(program: RankProgram) -> Program:
        yield Sleep(2.0)
        yield Send(0, array(5), 3)

    run = virtual(receives, sends, buffer=1e6)
    assert [round(end - ends(run, 0, "start")[0]) for end in ends(run, 0, "wait")] == [1, 1, 2]


def test_a_receive_that_has_its_message_is_not_cancelled() -> None:
    def receives(program: RankProgram) -> Program:
        posted = yield Start(Receive(1))
        yield Sleep(1.0)
        assert (yield Cancel(posted)) is False
        assert (yield Await(posted)).value.size == 5

    def sends(program: RankProgram) -> Program:
        yield Send(0, array(5))

    virtual(receives, sends, buffer=1e6)


def test_a_receive_that_waits_behind_another_effect_is_cancelled_at_once() -> None:
    def main(program: RankProgram) -> Program:
        computes = yield Start(Compute(3.0))
        posted = yield Start(Receive(1))
        flag = yield Start(AwaitFlag("never"), 1)
        assert (yield Cancel(posted)) and (yield Cancel(flag))
        assert (yield AwaitAny((computes, posted))) == Ended(posted, None)
        yield Await(computes)
        after = yield Start(Compute(1.0, lambda: 4))
        assert (yield Await(after)) == 4, "its lane goes on"

    def other(program: RankProgram) -> Program:
        yield from ()

    assert ends(virtual(main, other), 0, "end") == [4.0]


def test_a_receive_ends_when_its_time_is_over_or_a_message_comes() -> None:
    def receives(program: RankProgram) -> Program:
        assert (yield Receive(1, 3, within=1.0)) is None
        assert (yield Receive(1, 3, within=5.0)).value.size == 5
        assert (yield Receive(1, 3, within=0.5)) is None
        assert (yield Receive(1, 3)).value.size == 6, "the receive whose time was over took nothing"

    def sends(program: RankProgram) -> Program:
        yield Sleep(2.0)
        yield Send(0, array(5), 3)
        yield Sleep(2.0)
        yield Send(0, array(6), 3)

    run = virtual(receives, sends, buffer=1e6)
    start = ends(run, 0, "start")[0]
    assert [round(end - start, 1) for end in ends(run, 0, "delay")] == [1.0, 2.0, 2.5]
    assert [round(end - start) for end in ends(run, 0, "wait")] == [4]


def test_only_waits_can_be_cancelled() -> None:
    def main(program: RankProgram) -> Program:
        yield Cancel((yield Start(Sleep(1.0))))

    with pytest.raises(SpecError, match="programs/t.py: only a Receive or an AwaitFlag can be cancelled, not a Sleep"):
        virtual(main)


def test_a_swap_takes_two_ways_and_sets_the_flag_where_it_is_as_expected() -> None:
    def swaps(program: RankProgram) -> Program:
        assert (yield CompareAndSwap(1, "lock", 0, 7)) == 0
        assert (yield CompareAndSwap(1, "lock", 0, 8)) == 7
        yield Flag(1, "lock", 2)

    def waits(program: RankProgram) -> Program:
        assert (yield AwaitFlag("lock", 7)) == 7
        assert (yield AwaitFlag("lock", 8)) == 9

    run = virtual(swaps, waits, buffer=1e6, costs=MessageCosts((Segment(None, 0.25, 0.0),), gamma=0.0))
    start = ends(run, 0, "start")[0]
    assert [round(end - start, 9) for end in ends(run, 0, "swap")] == [0.5, 1.0]


def test_ranks_with_a_lock_word_exclude_each_other() -> None:
    inside, found = [0], np.zeros(3)

    def main(program: RankProgram) -> Program:
        for _ in range(4):
            while (yield CompareAndSwap(0, "lock", 0, program.rank + 1)):
                yield Sleep(0.01)
            inside[0] += 1
            yield Sleep(0.1)
            found[program.rank] += inside[0] == 1
            inside[0] -= 1
            yield CompareAndSwap(0, "lock", program.rank + 1, 0)

    virtual(main, main, main, buffer=1e6)
    assert found.tolist() == [4, 4, 4]


@pytest.mark.parametrize("effect", [lambda: Receive(1, -1), lambda: Send(1, array(1), -2)])
def test_tags_of_barriers_are_not_for_programs(effect: Callable[[], Effect]) -> None:
    def main(program: RankProgram) -> Program:
        yield effect()

    with pytest.raises(SpecError, match="programs/t.py: rank 0: ValueError: a tag is 0 or more, not -"):
        virtual(main)
