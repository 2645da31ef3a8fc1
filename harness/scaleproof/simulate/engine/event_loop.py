"""The loop of the event engine, compiled: tasks run when what they wait for has ended and their lane is free; a rank in
a collective call goes through its rounds by itself."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.engine.call_rounds import arrive, next_round
from scaleproof.simulate.engine.event_queue import FLOW_END, MESSAGE, ROUND, STARTED, TASK, pop, push
from scaleproof.simulate.engine.fair_shares import update_rates
from scaleproof.simulate.engine.flow_network import CHANGED, FREE, LIVE, NONE, RECENT, end_flow
from scaleproof.simulate.engine.messages import enter_stream, flow, next_in_stream
from scaleproof.simulate.engine.point_to_point import delivered, receive, send
from scaleproof.simulate.engine.tables import CALL, OF_CALL, SEND, TRANSFER, WORK, Edges, State, Tasks
from scaleproof.simulate.fair_rates import compiled

EVENTS_OF_A_TASK = 4
"""At most so many events does the start of a task queue: its own end, its message, that it has started; and one more
for the task that takes its lane."""
ENDED, FULL, REPORT = 0, 1, 2
"""Why the loop returns: nothing is left to do; there is no room for what may come next; a watched task has ended."""


@compiled
def run(state: State, last: int, margin: int) -> int:
    """Releases all tasks up to `last` - 1, then runs until one of the three happens. `margin`: most messages or tasks
    that one event can start."""
    queue, network, messages, clock = state.queue, state.network, state.messages, state.clock
    while True:
        room = len(queue.time) - queue.size[0]
        if (
            room < network.counts[LIVE] + EVENTS_OF_A_TASK * margin
            or min(network.counts[FREE], messages.height[0]) < margin
        ):
            return FULL
        if state.released[0] < last:
            release(state, state.released[0])
            state.released[0] += 1
            continue
        if not queue.size[0] or queue.time[0] > clock[0]:
            if state.reports[0]:
                return REPORT
            if network.counts[CHANGED] or network.counts[RECENT]:
                update_rates(network, queue, clock[0])
                continue
        if not queue.size[0]:
            return ENDED
        time, kind, item, version = pop(queue)
        if kind != FLOW_END or version == network.version[item]:
            clock[0] = time
            _handle(state, kind, item)


@compiled
def _handle(state: State, kind: int, item: int) -> None:
    if kind == FLOW_END:
        owner = state.network.owner[item]
        end_flow(state.network, item)
        if not owner & 1:
            _end_task(state, owner >> 1)
            return
        next_in_stream(state, owner >> 1)
        if state.messages.kind[owner >> 1] == OF_CALL:
            arrive(state, owner >> 1)
        else:
            delivered(state, owner >> 1)
    elif kind == TASK:
        if state.tasks.kind[item] == TRANSFER:
            flow(state, state.tasks.route[item], state.tasks.amount[item], state.tasks.highest[item], 2 * item)
        else:
            _end_task(state, item)
    elif kind == MESSAGE:
        enter_stream(state, item)
    elif kind == STARTED:
        _release_along(state, state.tasks.began_edge[item])
    elif not next_round(state, item):
        _end_task(state, state.participants.task[item])


@compiled
def release_all(state: State, tasks: np.ndarray) -> None:
    """Each of the tasks waits for one thing less."""
    for task in tasks:
        release(state, task)


@compiled
def release(state: State, task: int) -> None:
    """One of those that the task waits for has ended."""
    tasks, lanes = state.tasks, state.lanes
    tasks.missing[task] -= 1
    if tasks.missing[task]:
        return
    lane = tasks.lane[task]
    if lane == NONE or lanes.busy[lane] == NONE:
        _start(state, task)
        return
    before, here = NONE, lanes.head[lane]
    if here != NONE and tasks.priority[lanes.tail[lane]] <= tasks.priority[task]:
        before, here = lanes.tail[lane], NONE
    while here != NONE and tasks.priority[here] <= tasks.priority[task]:
        before, here = here, tasks.behind[here]
    tasks.behind[task] = here
    if here == NONE:
        lanes.tail[lane] = task
    if before == NONE:
        lanes.head[lane] = task
    else:
        tasks.behind[before] = task


@compiled
def _start(state: State, task: int) -> None:
    tasks, now = state.tasks, state.clock[0]
    if tasks.lane[task] != NONE:
        state.lanes.busy[tasks.lane[task]] = task
    tasks.start[task], kind = now, tasks.kind[task]
    if tasks.began_edge[task] != NONE:
        push(state.queue, now, STARTED, task, 0)
    if kind == WORK:
        push(state.queue, now + tasks.amount[task], TASK, task, 0)
    elif kind == TRANSFER:
        push(state.queue, now + tasks.delay[task], TASK, task, 0)
    elif kind == CALL:
        push(state.queue, now, ROUND, int(tasks.amount[task]), 0)
    elif kind == SEND:
        send(state, task)
    else:
        receive(state, task)


@compiled
def _end_task(state: State, task: int) -> None:
    """The task has ended: its lane goes to the next, its successors may start."""
    tasks, lanes = state.tasks, state.lanes
    tasks.end[task] = state.clock[0]
    lane = tasks.lane[task]
    if lane != NONE:
        following = lanes.head[lane]
        lanes.busy[lane] = NONE
        if following != NONE:
            lanes.head[lane] = tasks.behind[following]
            _start(state, following)
    _release_along(state, tasks.edge[task])
    if tasks.watched[task]:
        state.reports[0] += 1
        state.reports[state.reports[0]] = task


@compiled
def _release_along(state: State, edge: int) -> None:
    """Releases the successors of a list of edges."""
    while edge != NONE:
        release(state, state.edges.successor[edge])
        edge = state.edges.following[edge]


@compiled
def connect(
    tasks: Tasks, edges: Edges, first: int, earlier: np.ndarray, later: np.ndarray, of_start: bool = False
) -> int:
    """Each of `later` waits for the end of that of `earlier`, or with `of_start` for its start, by edges from number
    `first` on. Returns the most successors of a task."""
    most = 0
    over = tasks.start if of_start else tasks.end
    heads, tails = (tasks.began_edge, tasks.last_began) if of_start else (tasks.edge, tasks.last_edge)
    for number in range(len(earlier)):
        before, after, edge = earlier[number], later[number], first + number
        edges.successor[edge], edges.following[edge] = after, NONE
        if not np.isnan(over[before]):
            continue
        if heads[before] == NONE:
            heads[before] = edge
        else:
            edges.following[tails[before]] = edge
        tails[before] = edge
        tasks.degree[before] += 1
        most = max(most, tasks.degree[before])
        tasks.missing[after] += 1
    return most
