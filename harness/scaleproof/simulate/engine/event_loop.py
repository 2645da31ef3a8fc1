"""The loop of the event engine, compiled: tasks run when what they wait for has ended and their lane is free; a rank in
a collective call goes through its rounds by itself."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.engine.call_rounds import (
    MESSAGE,
    ROUND,
    arrive,
    enter_stream,
    flow,
    next_in_stream,
    next_round,
)
from scaleproof.simulate.engine.event_queue import pop, push
from scaleproof.simulate.engine.fair_shares import update_rates
from scaleproof.simulate.engine.flow_network import CHANGED, FLOW_END, FREE, LIVE, NONE, RECENT, end_flow
from scaleproof.simulate.engine.tables import TRANSFER, WORK, Edges, State, Tasks
from scaleproof.simulate.fair_rates import compiled

TASK = 1
"""Kind of the event at which a task's time is over."""
ENDED, FULL, REPORT = 0, 1, 2
"""Why the loop returns: nothing is left to do; there is no room for what may come next; a watched task has ended."""


@compiled
def run(state: State, first: int, last: int, margin: int) -> int:
    """Adds tasks `first` to `last` - 1, then runs until one of the three happens. `margin`: most messages or tasks that
    one event can start."""
    queue, network, messages, clock = state.queue, state.network, state.messages, state.clock
    release_all(state, np.arange(first, last))
    while True:
        room = len(queue.time) - queue.size[0]
        if room < network.counts[LIVE] + 2 * margin or min(network.counts[FREE], messages.height[0]) < margin:
            return FULL
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
        if owner & 1:
            next_in_stream(state, owner >> 1)
            arrive(state, owner >> 1)
        else:
            _end_task(state, owner >> 1)
    elif kind == TASK:
        if state.tasks.kind[item] == WORK:
            _end_task(state, item)
        else:
            flow(state, state.tasks.route[item], state.tasks.amount[item], state.tasks.highest[item], 2 * item)
    elif kind == MESSAGE:
        enter_stream(state, item)
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
    tasks.start[task] = now
    if tasks.kind[task] == WORK:
        push(state.queue, now + tasks.amount[task], TASK, task, 0)
    elif tasks.kind[task] == TRANSFER:
        push(state.queue, now + tasks.delay[task], TASK, task, 0)
    else:
        push(state.queue, now, ROUND, int(tasks.amount[task]), 0)


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
    edge = tasks.edge[task]
    while edge != NONE:
        release(state, state.edges.successor[edge])
        edge = state.edges.following[edge]
    if tasks.watched[task]:
        state.reports[0] += 1
        state.reports[state.reports[0]] = task


@compiled
def connect(tasks: Tasks, edges: Edges, first: int, earlier: np.ndarray, later: np.ndarray) -> int:
    """Each of `later` waits for that of `earlier`, by edges from number `first` on. Returns the most successors of a
    task."""
    most = 0
    for number in range(len(earlier)):
        before, after, edge = earlier[number], later[number], first + number
        edges.successor[edge], edges.following[edge] = after, NONE
        if not np.isnan(tasks.end[before]):
            continue
        if tasks.edge[before] == NONE:
            tasks.edge[before] = edge
        else:
            edges.following[tasks.last_edge[before]] = edge
        tasks.last_edge[before] = edge
        tasks.degree[before] += 1
        most = max(most, tasks.degree[before])
        tasks.missing[after] += 1
    return most
