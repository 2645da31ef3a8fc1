"""Rank programs in virtual time: effects take what they cost on one clock, and what can never end says so."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from scaleproof.rank_programs.collectives import barrier
from scaleproof.rank_programs.effects import (
    ANY,
    Await,
    AwaitAny,
    AwaitFlag,
    Call,
    Charge,
    Collective,
    Compute,
    Effect,
    Ended,
    Flag,
    Get,
    Put,
    Receive,
    Send,
    Sleep,
    Start,
)
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.cost_model import FREE, HopCosts, MessageCosts
from scaleproof.simulate.link_network import MBIT, Network
from scaleproof.simulate.virtual_run import VirtualRun
from scaleproof.spec.case import Operation, OwnCase
from scaleproof.spec.cluster import star
from scaleproof.spec.errors import SpecError
from tests.short_form import case_from

RATE = 1000.0
"""Bytes/s of each link."""
Main = Callable[[RankProgram], Generator[Effect, Any, None]]


def virtual(
    *mains: Main,
    costs: MessageCosts = FREE,
    buffer: float = 0.0,
    serve: Callable[..., np.ndarray] | None = None,
    regions: dict[str, np.ndarray] | None = None,
    nodes: Sequence[int] = (),
    algorithm: str = "native",
    groups: dict[str, tuple[tuple[int, ...], ...]] | None = None,
) -> VirtualRun:
    """Rank r runs `mains[r]`, on a star with a node for each rank or on `nodes`. `regions`: of rank 1."""

    class Program(RankProgram):
        def main(self) -> Generator[Effect, Any, None]:
            return mains[self.rank](self)

        def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
            return super().serve(source, name, value) if serve is None else serve(self, source, name, value)

        def regions(self) -> dict[str, np.ndarray]:
            return (regions or {}) if self.rank == 1 else super().regions()

        def groups(self) -> dict[str, tuple[tuple[int, ...], ...]]:
            return groups or super().groups()

    fields = {"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": "t", "ranks": len(mains)}
    moving = {"transport": "tcp", "collective": algorithm, "fabric": "simulated", "nodes": 2}
    case = case_from({**fields, "iterations": 2, "warmup": 1, **(moving if algorithm != "native" else {})})
    assert isinstance(case, OwnCase)
    network = Network(star("star", len(mains), RATE / MBIT, 0.0))
    run = VirtualRun(Program, case, network, nodes or range(len(mains)), costs, buffer)
    run.run()
    return run


def ends(run: VirtualRun, rank: int, event: str) -> list[float]:
    return [round(each.end, 9) for each in run.events if (each.rank, each.event) == (rank, event)]


def nothing(program: RankProgram) -> Generator[Effect, Any, None]:
    yield from ()


def array(count: int) -> np.ndarray:
    return np.zeros(count, np.uint8)


def test_computing_sleeping_and_own_arithmetic_take_their_time() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        assert (yield Compute(2.0, lambda: "result")) == "result"
        yield Sleep(1.0)
        yield Charge(100)

    costs = MessageCosts((Segment(None, 0.0, 0.0),), gamma=0.01)
    assert ends(virtual(main, costs=costs), 0, "end") == [4.0]


def test_a_message_takes_its_cost_and_its_sender_waits_without_a_buffer() -> None:
    def sends(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Send(1, array(500))

    def receives(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Receive(0)

    costs = MessageCosts((Segment(None, 0.25, 0.0),), gamma=0.0)
    run = virtual(sends, receives, costs=costs)
    start = ends(run, 0, "start")[0]
    assert ends(run, 0, "send") == ends(run, 1, "wait") == [round(start + 0.75, 9)]
    assert ends(virtual(sends, receives, buffer=500), 0, "send") == [0.0]


def test_a_message_costs_what_its_class_of_hops_costs() -> None:
    def sends(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Sleep(10.0)  # all have left the barrier
        for peer in (1, 2):
            yield Send(peer, array(0))

    def receives(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Receive(0)

    within = HopCosts((Segment(None, 0.5, 0.0),))
    costs = MessageCosts((Segment(None, 2.0, 0.0),), gamma=0.0, others=(("loopback", within),))
    run = virtual(sends, receives, receives, costs=costs, buffer=1e6, nodes=(0, 0, 1))
    took = [ends(run, rank, "wait")[0] - ends(run, 0, "start")[0] - 10 for rank in (1, 2)]
    assert took == [0.5, 2.0]


def test_a_receive_takes_the_earliest_message_of_its_tag_from_one_rank_or_any() -> None:
    taken: list[tuple[int, int, int]] = []

    def sends(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Sleep(2.0 / program.rank)
        yield Send(0, np.array([10 * program.rank], np.int32), 7)
        yield Send(0, np.array([program.rank], np.int32), 5)

    def receives(program: RankProgram) -> Generator[Effect, Any, None]:
        for source, tag in ((ANY, 7), (1, 5), (ANY, 5), (1, 7)):
            message = yield Receive(source, tag)
            taken.append((message.source, message.tag, int(message.value[0])))

    virtual(receives, sends, sends)
    assert taken == [(2, 7, 20), (1, 5, 1), (2, 5, 2), (1, 7, 10)]


def test_a_message_has_the_values_that_its_array_had_when_it_was_sent() -> None:
    def sends(program: RankProgram) -> Generator[Effect, Any, None]:
        value = np.array([1.0])
        yield Send(1, value)
        value[0] = 2.0

    def receives(program: RankProgram) -> Generator[Effect, Any, None]:
        assert (yield Receive(0)).value.tolist() == [1.0]

    virtual(sends, receives, buffer=8)


def test_a_call_is_answered_while_its_peer_computes_and_after_its_peer_has_ended() -> None:
    def calls(program: RankProgram) -> Generator[Effect, Any, None]:
        for number in range(2):
            assert (yield Call(1, np.array([number]), "twice")).tolist() == [2 * number]
            yield Sleep(7.0)

    def computes(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Compute(5.0)

    run = virtual(calls, computes, serve=lambda program, source, name, value: 2 * value)
    assert ends(run, 0, "call")[0] < 1.0 < 5.0 < ends(run, 0, "call")[1]


def test_effects_of_a_lane_go_one_after_the_other_beside_the_main_program() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        first = yield Start(Compute(2.0, lambda: 1, "lane"))
        second = yield Start(Compute(3.0, lambda: 2, "lane"))
        yield Compute(4.0)
        assert (yield Await(first)) == 1
        assert (yield Await(second)) == 2

    run = virtual(main)
    assert (ends(run, 0, "lane"), ends(run, 0, "end")) == ([2.0, 5.0], [5.0])


def test_what_starts_on_a_lane_as_it_becomes_free_happens_once() -> None:
    done: list[int] = []

    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        for number in range(3):
            yield Await((yield Start(Compute(1.0, partial(done.append, number), "lane"))))

    assert ends(virtual(main), 0, "lane") == [1.0, 2.0, 3.0] and done == [0, 1, 2]


def test_a_barrier_waits_for_all_and_takes_no_message_of_the_program() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Send((program.rank + 1) % 3, np.array([program.rank]), 1)
        yield Sleep(float(program.rank))
        yield from barrier(program.rank, 3)
        assert (yield Receive(ANY, 1)).value.tolist() == [(program.rank - 1) % 3]

    assert all(ends(virtual(main, main, main, buffer=1e6), rank, "end") == [2.0] for rank in range(3))


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_an_all_reduce_gives_every_rank_the_sum(ranks: int) -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        value = np.arange(7.0) * (program.rank + 1)
        assert (yield Collective("all_reduce", value, 3)) is value
        assert np.array_equal(value, np.arange(7.0) * ranks * (ranks + 1) / 2)

    virtual(*[main] * ranks, buffer=1e6)


@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling"])
@pytest.mark.parametrize("operation", ["reduce_scatter", "all_gather", "broadcast"])
def test_other_collectives_give_every_rank_its_part(operation: Operation, algorithm: str) -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        value, part = np.arange(12.0) * (program.rank + 1), slice(3 * program.rank, 3 * program.rank + 3)
        yield Collective(operation, value, 3, root=2)
        if operation == "reduce_scatter":
            assert np.array_equal(value[part], np.arange(12.0)[part] * 10)
        elif operation == "all_gather":
            assert np.array_equal(value, np.arange(12.0) * np.repeat([1, 2, 3, 4], 3))
        else:
            assert np.array_equal(value, np.arange(12.0) * 3)

    virtual(*[main] * 4, buffer=1e6, algorithm=algorithm)


def test_ranks_have_their_own_numbers_of_steps() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        for _ in program.steps(program.rank + 1):
            yield Compute(1.0)

    run = virtual(main, main)
    steps = [(each.rank, each.step, each.warmup) for each in run.events if each.event == "step"]
    assert sorted(steps) == [(0, 0, True), (0, 1, False), (1, 0, True), (1, 1, False), (1, 2, False)]


def test_ranks_that_wait_for_each_other_are_named_with_what_they_wait_for() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Receive(1 - program.rank, 4)

    with pytest.raises(SpecError) as error:
        virtual(main, main)
    message = str(error.value)
    assert "\n" not in message
    assert message == (
        "programs/t.py: ranks wait for each other for ever: rank 0 (receives from rank 1, tag 4); "
        "then rank 1 (receives from rank 0, tag 4)"
    )


def test_a_receive_without_a_message_names_the_rank_that_has_ended() -> None:
    def receives(program: RankProgram) -> Generator[Effect, Any, None]:
        for _ in program.steps():
            yield Receive(1, 3)

    with pytest.raises(SpecError) as error:
        virtual(receives, nothing)
    assert str(error.value) == (
        "programs/t.py: rank 0, step 0 (receives from rank 1, tag 3) waits for ever: rank 1 has ended"
    )


def test_a_circle_of_ranks_on_lanes_and_flags_is_shown_and_others_are_counted() -> None:
    def first(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Await((yield Start(Receive(1, 4))))

    def second(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Receive(2, 5)

    def third(program: RankProgram) -> Generator[Effect, Any, None]:
        yield AwaitFlag("ready", 2)

    with pytest.raises(SpecError) as error:
        virtual(first, second, third)
    assert "rank 2 (waits for flag 'ready' of 2)" in str(error.value) and "then rank" in str(error.value)


def test_what_was_put_is_there_when_its_flag_is_and_a_get_takes_two_ways() -> None:
    region = np.zeros(500, np.uint8)

    def puts(program: RankProgram) -> Generator[Effect, Any, None]:
        value = np.full(250, 7, np.uint8)
        yield Put(1, value, "x", 250)
        value[:] = 0
        yield Flag(1, "full", 3)

    def waits(program: RankProgram) -> Generator[Effect, Any, None]:
        assert (yield AwaitFlag("full", 3)) == 3
        assert region.tolist() == [0] * 250 + [7] * 250
        yield Sleep(1.0)

    def gets(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Sleep(2.0)
        assert (yield Get(1, "x", 200, 100)).tolist() == [0] * 50 + [7] * 50

    costs = MessageCosts((Segment(None, 0.25, 0.0),), gamma=0.0)
    run = virtual(puts, waits, gets, buffer=1e6, costs=costs, regions={"x": region})
    start = ends(run, 0, "start")[0]
    assert [round(end - start, 9) for end in ends(run, 1, "wait")] == [0.5], (
        "0.25 s, 250 bytes, and the flag right after them"
    )
    assert [round(end - start, 9) for end in ends(run, 2, "get")] == [2.6], "0.25 s each way and 100 bytes"


def test_the_flag_of_a_put_is_higher_when_the_array_is_there_and_takes_no_message_of_its_own() -> None:
    region = np.zeros(500, np.uint8)

    def puts(program: RankProgram) -> Generator[Effect, Any, None]:
        for start in (0, 250):
            yield Put(1, np.full(250, 7, np.uint8), "x", start, flag="full")

    def waits(program: RankProgram) -> Generator[Effect, Any, None]:
        assert (yield AwaitFlag("full", 2)) == 2
        assert region.tolist() == [7] * 500

    costs = MessageCosts((Segment(None, 0.25, 0.0),), gamma=0.0)
    run = virtual(puts, waits, buffer=1e6, costs=costs, regions={"x": region})
    start = ends(run, 0, "start")[0]
    assert [round(end - start, 9) for end in ends(run, 1, "wait")] == [0.75], "0.25 s, and 500 bytes at 1,000 bytes/s"


def test_a_put_beside_a_region_names_both_ranks() -> None:
    def puts(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Put(1, array(8), "x")

    with pytest.raises(SpecError, match="^programs/t.py: rank 0 puts region 'x' of rank 1, which has no such region"):
        virtual(puts, nothing)


def test_the_first_of_several_started_effects_is_awaited() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        slow = yield Start(Compute(5.0, lambda: 1), 0)
        fast = yield Start(Compute(2.0, lambda: 2), 1)
        assert (yield AwaitAny((slow, fast))) == Ended(fast, 2)
        assert (yield AwaitAny((slow,))) == Ended(slow, 1)

    assert ends(virtual(main), 0, "end") == [5.0]


def test_a_call_that_nobody_serves_names_the_caller() -> None:
    def calls(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Call(1, array(1), "weather")

    with pytest.raises(SpecError, match="^programs/t.py: rank 1 serves rank 0: .*'weather', which Program does not"):
        virtual(calls, nothing)


def test_unequal_collectives_name_rank_tag_and_sizes() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        yield Collective("all_reduce", np.zeros(4 + 2 * program.rank), 3)

    with pytest.raises(SpecError) as error:
        virtual(main, main, buffer=1e6)
    message = str(error.value)
    assert message.startswith("programs/t.py: rank ") and "\n" not in message
    assert "all_reduce of 6 float64 with tag 3 on rank 1: rank 0 sent 2 float64 where 3 float64 were" in message


def test_an_error_of_a_program_is_one_line_with_its_rank_and_step() -> None:
    def main(program: RankProgram) -> Generator[Effect, Any, None]:
        for _ in program.steps():
            yield Compute(0.0, lambda: dict[str, int]()["absent"], "forward")

    with pytest.raises(SpecError, match="^programs/t.py: rank 0, step 0, forward: KeyError: 'absent'$"):
        virtual(main)


def test_an_error_before_the_start_or_in_a_check_is_one_line_too() -> None:
    class Program(RankProgram):
        def regions(self) -> dict[str, np.ndarray]:
            return {"x": np.zeros(int(self.case.options["count"]))}

        def main(self) -> Generator[Effect, Any, None]:
            yield from ()

        def checks(self) -> list[tuple[str, bool, str]]:
            raise ArithmeticError("no sum")

    def of(options: dict[str, Any]) -> VirtualRun:
        fields = {"suite": "t", "experiment": "t", "arm": "t", "program": "own", "entry": "t", "ranks": 1}
        case = case_from({**fields, "options": options})
        assert isinstance(case, OwnCase)
        return VirtualRun(Program, case, Network(star("star", 1, RATE / MBIT, 0.0)), [0], FREE, 0.0)

    with pytest.raises(
        SpecError, match=r"^programs/t.py needs option 'count' .options.count.; the case has counts; did"
    ):
        of({"counts": 2})
    run = of({"count": 2})
    run.run()
    with pytest.raises(SpecError, match="^programs/t.py: rank 0, checks: ArithmeticError: no sum$"):
        run.checks()
