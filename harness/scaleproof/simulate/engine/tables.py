"""What the event engine knows of tasks, lanes, collective calls and messages: arrays for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.engine.event_queue import EventQueue
from scaleproof.simulate.engine.flow_network import FlowNetwork

WORK, TRANSFER, CALL, SEND, RECEIVE = range(5)
"""Kinds of tasks: a lane is busy for some seconds; bytes go over a route; a rank takes part in a collective call; a
message is sent to a box; a message is taken from a box."""
OF_CALL, OF_TASKS = 0, 1
"""Kinds of messages: between participants of a call, or between two tasks."""
HELD, MOVING, ARRIVED = 0, 1, 2
"""States of a message: it waits for its receiver, is under way (or waits in its stream), or has arrived."""
ANY = -1
"""Source of a receive that takes a message from any rank."""


class Tasks(NamedTuple):
    """Per task: `kind`; `lane` that it occupies (NONE: none); `amount`: seconds, bytes, or number of the participant of
    a call; `highest` bytes/s, `delay` in s and `route` of a transfer or a send, and of a send its `stream` (NONE: none)
    and the bytes that the sender can `buffer`; of a send and a receive the `box` and the `source` (a rank's number; of
    a receive also ANY); `priority`: lower goes first on its lane; `missing`: tasks that it waits for; `edge` and
    `last_edge`: list of its successors, `degree` of them; `began_edge` and `last_began`: list of those that wait for
    its start; `behind`: the next in its lane's queue or in its box; `watched`: its end is reported; `start` and `end`
    in s."""

    kind: np.ndarray
    lane: np.ndarray
    amount: np.ndarray
    highest: np.ndarray
    delay: np.ndarray
    route: np.ndarray
    stream: np.ndarray
    buffer: np.ndarray
    box: np.ndarray
    source: np.ndarray
    priority: np.ndarray
    missing: np.ndarray
    edge: np.ndarray
    last_edge: np.ndarray
    degree: np.ndarray
    began_edge: np.ndarray
    last_began: np.ndarray
    behind: np.ndarray
    watched: np.ndarray
    start: np.ndarray
    end: np.ndarray


class Edges(NamedTuple):
    """Lists of successors: the task, and the next edge of the same predecessor."""

    successor: np.ndarray
    following: np.ndarray


class Lanes(NamedTuple):
    """Per lane: the task on it, and the first and last of those that wait for it."""

    busy: np.ndarray
    head: np.ndarray
    tail: np.ndarray


class Routes(NamedTuple):
    """Route r crosses `links[first[r]:first[r + 1]]`; one byte/s uses `weights` of their capacities."""

    first: np.ndarray
    links: np.ndarray
    weights: np.ndarray


class Schedules(NamedTuple):
    """Collective calls of some size. Schedule s has phases `phase[s]:phase[s + 1]`; a phase is a round that is repeated
    `times`. Rank r of phase p has row `row[p] + r`: it sends messages `sends[row]:sends[row + 1]`, receives `receives`
    messages, and works for `work` s after that. Per message: its `destination`, `nbytes`, `highest` bytes/s, `delay` in
    s, `route`, `stream` (NONE: none), and the bytes that the sender can `buffer`."""

    phase: np.ndarray
    times: np.ndarray
    row: np.ndarray
    sends: np.ndarray
    receives: np.ndarray
    work: np.ndarray
    destination: np.ndarray
    nbytes: np.ndarray
    highest: np.ndarray
    delay: np.ndarray
    route: np.ndarray
    stream: np.ndarray
    buffer: np.ndarray


class Streams(NamedTuple):
    """Connections: messages of one arrive in their order, one after the other. Per stream: the message that moves, the
    first and last of those behind it, and the bytes of all."""

    moving: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    nbytes: np.ndarray


class Boxes(NamedTuple):
    """Per box: where messages of one tag for one rank and its receives meet, each in their order. The first and last of
    the receives that wait, and of the messages that no receive has taken yet."""

    receive: np.ndarray
    last_receive: np.ndarray
    message: np.ndarray
    last_message: np.ndarray


class Participants(NamedTuple):
    """A rank in a call. `schedule`; `first`: participant of rank 0 of the call; `task`; `phase`, `turn` and `round`
    where it is (round NONE: not yet in the call); `receiving` and `sending`: messages that its round waits for; `early`
    and `latest`: list of messages that wait for a later round."""

    schedule: np.ndarray
    first: np.ndarray
    task: np.ndarray
    phase: np.ndarray
    turn: np.ndarray
    round: np.ndarray
    receiving: np.ndarray
    sending: np.ndarray
    early: np.ndarray
    latest: np.ndarray


class Messages(NamedTuple):
    """Live messages. `kind`; `receiver` and `sender`: participants or tasks (sender NONE: it does not wait; receiver
    NONE: no receive has taken it yet); `mark`: the round of a call, or the rank that sends; `route`, `nbytes`,
    `highest` bytes/s, `delay` in s and `stream` (NONE: none); `state`; `behind`: the next in its stream, or in the
    list of a participant; `next_in_box`. `free`: stack of free places, of height `height[0]`."""

    kind: np.ndarray
    receiver: np.ndarray
    sender: np.ndarray
    mark: np.ndarray
    route: np.ndarray
    nbytes: np.ndarray
    highest: np.ndarray
    delay: np.ndarray
    stream: np.ndarray
    state: np.ndarray
    behind: np.ndarray
    next_in_box: np.ndarray
    free: np.ndarray
    height: np.ndarray


class State(NamedTuple):
    """Everything. `released[0]`: tasks that have been released so far; `reports`: how many watched tasks have ended,
    and which; `clock[0]`: now, in s."""

    queue: EventQueue
    network: FlowNetwork
    tasks: Tasks
    edges: Edges
    lanes: Lanes
    routes: Routes
    schedules: Schedules
    streams: Streams
    boxes: Boxes
    participants: Participants
    messages: Messages
    released: np.ndarray
    reports: np.ndarray
    clock: np.ndarray


MESSAGE_FLOATS = frozenset({"nbytes", "highest", "delay"})


def new_messages(count: int) -> Messages:
    """Room for so many live messages."""
    columns = {name: np.zeros(count, float if name in MESSAGE_FLOATS else np.int64) for name in Messages._fields[:-2]}
    free = np.arange(count, dtype=np.int64)[::-1].copy()
    return Messages(**columns, free=free, height=np.array([count]))


def grown_messages(messages: Messages, count: int) -> Messages:
    """The same with more room."""
    larger, before = new_messages(count), len(messages.free)
    for old, new in zip(messages[:-2], larger[:-2], strict=True):
        new[:before] = old
    free = int(messages.height[0])
    larger.free[:free] = messages.free[:free]
    larger.free[free : free + count - before] = np.arange(before, count)
    larger.height[0] = free + count - before
    return larger
