"""Posted receives from any rank never take what belongs to a barrier or a collective, however they are interleaved."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import ANY, Await, Cancel, Collective, Effect, Receive, Send, Sleep, Start
from scaleproof.rank_programs.rank_program import RankProgram
from tests.unit.rank_programs.test_virtual_run import virtual

TAGS = 3
"""Of messages and collectives."""
RANKS = st.integers(2, 4)
ROUNDS = st.lists(
    st.tuples(
        st.integers(0, TAGS),  # tag
        st.sampled_from(["barrier", "all_reduce", "both", "none"]),
        st.booleans(),  # whether a receive that gets nothing is posted, too, and cancelled
        st.lists(st.integers(0, 3), min_size=4, max_size=4),  # how long each rank sleeps first
    ),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(ranks=RANKS, rounds=ROUNDS)
def test_a_posted_receive_gets_messages_of_programs_only(ranks: int, rounds: list[Any]) -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        rank = program.rank
        for number, (tag, between, cancelled, sleeps) in enumerate(rounds):
            yield Sleep(0.1 * sleeps[rank])
            posted = yield Start(Receive(ANY, tag), 0)
            idle = yield Start(Receive(ANY, TAGS + 1), 1)
            if between in ("barrier", "both"):
                yield from barrier(rank, ranks)
            if between in ("all_reduce", "both"):
                value = yield Collective("all_reduce", np.full(5, rank + 1.0), tag)
                assert value.tolist() == [ranks * (ranks + 1) / 2] * 5
            yield Send((rank + 1) % ranks, np.array([number]), tag)
            assert (yield Await(posted)).value.tolist() == [number]
            if not cancelled:
                yield Send(rank, np.array([-number]), TAGS + 1)
                assert (yield Await(idle)).value.tolist() == [-number]
            else:
                assert (yield Cancel(idle))
            yield from barrier(rank, ranks)

    virtual(*[main] * ranks, buffer=1e6)
