"""The loop of the event engine, compiled: tasks run when what they wait for has ended and their lane is free; a rank in
a collective call goes through its rounds by itself."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.call_rounds import arrive, next_round
from scaleproof.simulate.engine.event_queue import MESSAGE, ROUND, STARTED, TASK, free_places, next_time, pop, push
from scaleproof.simulate.engine.fair_shares import update_rates
from scaleproof.simulate.engine.flow_network import CHANGED, FREE, NONE, RECENT, end_flow
from scaleproof.simulate.engine.keyed_heap import take_first
from scaleproof.simulate.engine.messages import enter_stream, flow, next_in_stream
from scaleproof.simulate.engine.point_to_point import delivered, receive, send
from scaleproof.simulate.engine.tables import (
    CALL,
    FREE_MESSAGES,
    OF_CALL,
    RELEASED,
    REPORTED,
    SEND,
    TRANSFER,
    WORK,
    State,
)

EVENTS_OF_A_TASK = 4
"""At most so many events does the start of a task queue: its own end, its message, that it has started; and one more
for the task that takes its lane."""
ENDED, FULL, REPORT, LATER = 0, 1, 2, 3
"""Why the loop returns: nothing is left to do; there is no room for what may come next; a watched task has ended; the
next event is later than wanted."""


@compiled
def run(state: State, last: int, margin: int, until: float) -> int:
    """Releases all tasks up to `last` - 1, then runs until one of the four happens. `margin`: most messages or tasks
    that one event can start; `until`: no event after this time happens. `clock[1]`: when the next one would, where the
    loop ends without a report."""
    queue, network, counts, clock = state.queue, state.network, state.counts, state.clock
    while True:
        if free_places(queue) < EVENTS_OF_A_TASK * margin or min(network.counts[FREE], counts[FREE_MESSAGES]) < margin:
            return FULL
        if counts[RELEASED] < last:
            release(state, counts[RELEASED])
            counts[RELEASED] += 1
            continue
        event = next_time(queue)
        flow_end = network.ends.keys[network.ends.items[0]] if network.ends.size[0] else np.inf
        if min(event, flow_end) > clock[0]:
            if counts[REPORTED]:
                return REPORT
            if network.counts[CHANGED] or network.counts[RECENT]:
                update_rates(network, clock[0])
                continue
            clock[1] = min(event, flow_end)
            if clock[1] == np.inf:
                return ENDED
            if clock[1] > until:
                return LATER
        if flow_end <= event:
            clock[0] = flow_end
            _flow_ended(state, take_first(network.ends))
        else:
            clock[0], kind, item = pop(queue)
            _handle(state, kind, item)


@inlined
def _flow_ended(state: State, number: int) -> None:
    owner = state.network.flows[number].owner
    end_flow(state.network, number)
    if owner < 0:
        push(state.queue, state.clock[0], ROUND, -1 - owner)
        return
    if not owner & 1:
        _end_task(state, owner >> 1)
        return
    next_in_stream(state, owner >> 1)
    if state.messages[owner >> 1].kind == OF_CALL:
        arrive(state, owner >> 1)
        return
    sender, receiver = delivered(state, owner >> 1)
    if sender != NONE:
        _end_task(state, sender)
    if receiver != NONE:
        _end_task(state, receiver)


@inlined
def _handle(state: State, kind: int, item: int) -> None:
    if kind == MESSAGE:
        enter_stream(state, item)
    elif kind == TASK:
        task = state.tasks[item]
        if task.kind == TRANSFER:
            flow(state, task.route, task.amount, task.highest, 2 * item)
        else:
            _end_task(state, item)
    elif kind == STARTED:
        _release_along(state, state.tasks[item].began_edge)
    elif not next_round(state, item):
        _end_task(state, state.participants[item].task)


@compiled
def release_all(state: State, tasks: np.ndarray) -> None:
    """Each of the tasks waits for one thing less."""
    for task in tasks:
        release(state, task)


@compiled
def release(state: State, number: int) -> None:
    """One of those that the task waits for has ended."""
    tasks, lanes, task = state.tasks, state.lanes, state.tasks[number]
    task.missing -= 1
    if task.missing:
        return
    if task.lane == NONE or lanes[task.lane].busy == NONE:
        _start(state, number)
        return
    lane = lanes[task.lane]
    before, here = NONE, lane.head
    if here != NONE and tasks[lane.tail].priority <= task.priority:
        before, here = lane.tail, NONE
    while here != NONE and tasks[here].priority <= task.priority:
        before, here = here, tasks[here].behind
    task.behind = here
    if here == NONE:
        lane.tail = number
    if before == NONE:
        lane.head = number
    else:
        tasks[before].behind = number


@compiled
def _start(state: State, number: int) -> None:
    task, now = state.tasks[number], state.clock[0]
    if task.lane != NONE:
        state.lanes[task.lane].busy = number
    task.start = now
    if task.began_edge != NONE:
        push(state.queue, now, STARTED, number)
    if task.kind == WORK:
        push(state.queue, now + task.amount, TASK, number)
    elif task.kind == TRANSFER:
        push(state.queue, now + task.delay, TASK, number)
    elif task.kind == CALL:
        push(state.queue, now, ROUND, int(task.amount))
    elif task.kind == SEND:
        send(state, number)
    else:
        receive(state, number)


@compiled
def _end_task(state: State, number: int) -> None:
    """The task has ended: its lane goes to the next, its successors may start."""
    task = state.tasks[number]
    task.end = state.clock[0]
    if task.lane != NONE:
        lane = state.lanes[task.lane]
        following, lane.busy = lane.head, NONE
        if following != NONE:
            lane.head = state.tasks[following].behind
            _start(state, following)
    _release_along(state, task.edge)
    if task.watched:
        state.reports[state.counts[REPORTED]] = number
        state.counts[REPORTED] += 1


@inlined
def _release_along(state: State, edge: int) -> None:
    """Releases the successors of a list of edges."""
    while edge != NONE:
        release(state, state.edges[edge].successor)
        edge = state.edges[edge].following


@compiled
def connect(
    tasks: np.recarray, edges: np.recarray, first: int, earlier: np.ndarray, later: np.ndarray, of_start: bool = False
) -> int:
    """Each of `later` waits for the end of that of `earlier`, or with `of_start` for its start, by edges from number
    `first` on. Returns the most successors of a task."""
    most = 0
    for place in range(len(earlier)):
        before, edge = tasks[earlier[place]], edges[first + place]
        edge.successor, edge.following = later[place], NONE
        if not np.isnan(before.start if of_start else before.end):
            continue
        head, tail = (before.began_edge, before.last_began) if of_start else (before.edge, before.last_edge)
        if head != NONE:
            edges[tail].following = first + place
        else:
            head = first + place
        if of_start:
            before.began_edge, before.last_began = head, first + place
        else:
            before.edge, before.last_edge = head, first + place
        before.degree += 1
        most = max(most, before.degree)
        tasks[later[place]].missing += 1
    return most
