"""The event engine: tasks, lanes, flows, and collective calls in which each rank goes by itself."""

from __future__ import annotations

import numpy as np
import pytest

from scaleproof.simulate.engine.engine import Engine
from scaleproof.simulate.engine.phases import Phase

RATE = 100.0


def array(*values: float) -> np.ndarray:
    return np.array(values)


def times(engine: Engine) -> list[float]:
    engine.run()
    return [round(end, 9) for end in engine.end.tolist()]


def test_a_task_waits_for_all_that_it_depends_on() -> None:
    engine = Engine([])
    short, long, last = engine.work(1.0), engine.work(3.0), engine.work(1.0)
    engine.after(np.repeat(last, 2), np.concatenate([short, long]))
    assert times(engine) == [1, 3, 4]


def test_what_happens_at_one_time_happens_in_the_order_in_which_it_was_caused() -> None:
    """Tasks of no length beside one that ends at the same time, more than the queue holds at first."""
    engine, count = Engine([]), 5000
    lane, early = engine.lanes(1), engine.work(1.0)
    chain = [early]
    for _ in range(3):
        chain.append(engine.work(0.0))
        engine.after(chain[-1], chain[-2])
    last = engine.work(1.0, lane=lane)
    engine.after(last, chain[-1])
    first = engine.work(1.0, count=count, lane=lane)
    engine.after(first, engine.work(1.0, count=count))
    engine.run()
    assert engine.start[first].tolist() == list(range(1, count + 1)) and engine.start[last] == count + 1


def test_a_lane_takes_one_task_at_a_time_in_the_order_in_which_they_are_ready() -> None:
    engine = Engine([])
    lane = engine.lanes(1)
    before, first, second = engine.work(2.0), engine.work(5.0, lane=lane), engine.work(5.0, lane=lane)
    engine.after(first, before)
    assert times(engine) == [2, 10, 5] and engine.start[first] == 5 and engine.start[second] == 0


def test_flows_share_a_link_and_speed_up_when_one_ends() -> None:
    engine = Engine([RATE])
    route = engine.route([0])
    engine.transfer(route, 50.0)
    engine.transfer(route, 100.0)
    assert times(engine) == [1.0, 1.5]


def test_a_flow_is_no_faster_than_its_own_highest_rate() -> None:
    engine = Engine([RATE])
    engine.transfer(engine.route([0]), array(20.0, 80.0), count=2, highest=array(20.0, np.inf), delay=array(0.5, 0.5))
    assert times(engine) == [1.5, 1.5]


def test_weights_say_what_a_byte_takes_of_a_link() -> None:
    engine = Engine([RATE, 1.0])
    engine.transfer(engine.route([0, 1], [1.0, 0.04]), 50.0)  # a core of which a byte takes 0.04 s
    assert times(engine) == [2.0]


def test_there_is_room_for_as_many_flows_and_tasks_as_there_are() -> None:
    engine, count = Engine(np.full(3000, RATE)), 3000
    join = engine.work(0.0)
    routes = np.array([engine.route([link]) for link in range(count)])
    flows = engine.transfer(routes, np.arange(1.0, count + 1), count=count)
    engine.after(np.full(count, join[0]), flows)
    engine.run()
    assert np.allclose(engine.end[flows], np.arange(1, count + 1) / RATE) and engine.end[join] == count / RATE


def test_a_longer_route_than_before_may_come_while_flows_move() -> None:
    engine = Engine([RATE] * 4)
    engine.transfer(engine.route([0]), 100.0)
    watched = engine.work(0.5, watched=True)
    assert engine.run().tolist() == watched.tolist()
    engine.transfer(engine.route([0, 1, 2, 3]), 25.0)
    assert times(engine) == [1.25, 0.5, 1.0]


def test_watched_tasks_that_end_together_are_reported_together_and_more_may_follow() -> None:
    engine = Engine([])
    both = engine.work(array(1.0, 1.0), count=2, watched=True)
    held = engine.work(0.0, held=True)
    assert sorted(engine.run()) == sorted(both) and engine.now == 1.0
    engine.after(held, engine.work(2.0))
    engine.release(held)
    assert not len(engine.run()) and engine.end[held] == 3.0


def test_what_waits_for_something_that_never_ends_is_known() -> None:
    engine = Engine([])
    held = engine.work(0.0, held=True)
    engine.run()
    assert engine.waiting().tolist() == held.tolist()


def chain(engine: Engine, nbytes: float, buffer: float, messages: int = 1) -> int:
    """A call in which rank 0 sends to rank 1, over link 0, so many rounds."""
    stream = engine.streams(1)[0] if buffer else -1
    one = [np.array([value]) for value in (1, nbytes, np.inf, 0.0, engine.route([0]), stream, buffer)]
    return engine.schedule([Phase(messages, np.array([1, 0]), np.array([0, 1]), np.zeros(2), *one)])


@pytest.mark.parametrize(("buffer", "sent", "received"), [(0.0, 6.0, 6.0), (100.0, 0.0, 5.0), (99.0, 6.0, 6.0)])
def test_a_message_that_the_buffer_takes_leaves_before_its_receiver_is_ready(
    buffer: float, sent: float, received: float
) -> None:
    engine = Engine([RATE])
    call = engine.call(chain(engine, 100.0, buffer), engine.lanes(2))
    engine.after(call[1:], engine.work(5.0))
    engine.run()
    assert engine.end[call].tolist() == [sent, received]


def test_messages_of_a_connection_arrive_one_after_the_other_and_the_sender_waits_for_a_full_buffer() -> None:
    engine = Engine([RATE])
    call = engine.call(chain(engine, 100.0, 250.0, messages=4), engine.lanes(2))
    engine.run()
    assert engine.end[call].tolist() == [3.0, 4.0]
    few = Engine([RATE])
    call = few.call(chain(few, 100.0, 250.0, messages=2), few.lanes(2))
    few.run()
    assert few.end[call].tolist() == [0.0, 2.0]


def test_a_rank_goes_on_in_a_call_without_waiting_for_ranks_that_it_needs_nothing_from() -> None:
    engine = Engine([RATE, RATE])
    routes, streams = np.array([engine.route([0]), engine.route([1])]), engine.streams(2)
    pairs = Phase(
        1,
        np.array([1, 0, 1, 0]),
        np.array([0, 1, 0, 1]),
        np.zeros(4),
        np.array([1, 3]),
        np.full(2, 100.0),
        np.full(2, np.inf),
        np.zeros(2),
        routes,
        streams,
        np.full(2, 1000.0),
    )
    call = engine.call(engine.schedule([pairs]), engine.lanes(4))
    engine.after(call[2:], np.repeat(engine.work(10.0), 2))
    engine.run()
    assert engine.end[call].tolist() == [0.0, 1.0, 10.0, 11.0]


def test_a_run_up_to_a_moment_does_nothing_that_is_later_and_knows_when_that_is() -> None:
    engine = Engine([RATE])
    route = engine.route([0])
    engine.transfer(route, 100.0)
    watched = engine.work(0.75, watched=True)
    assert not len(engine.run(0.5)) and (engine.now, engine.next) == (0.5, 0.75)
    engine.transfer(route, 100.0)  # shares the link from now on
    assert engine.run(5.0).tolist() == watched.tolist() and engine.now == 0.75
    assert not len(engine.run(1.0)) and (engine.now, engine.next) == (1.0, 1.5)
    assert times(engine) == [1.5, 0.75, 2.0] and engine.next == np.inf
