"""What the event engine knows of tasks, lanes, collective calls and messages: arrays for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.engine.event_queue import EventQueue
from scaleproof.simulate.engine.flow_network import FlowNetwork

WORK, TRANSFER, CALL = 0, 1, 2
"""Kinds of tasks: a lane is busy for some seconds; bytes go over a route; a rank takes part in a collective call."""


class Tasks(NamedTuple):
    """Per task: `kind`; `lane` that it occupies (NONE: none); `amount`: seconds, bytes, or number of the participant of
    a call; `highest` bytes/s, `delay` in s and `route` of a transfer; `priority`: lower goes first on its lane;
    `missing`: tasks that it waits for; `edge` and `last_edge`: list of its successors, `degree` of them; `behind`: the
    next in its lane's queue; `watched`: its end is reported; `start` and `end` in s."""

    kind: np.ndarray
    lane: np.ndarray
    amount: np.ndarray
    highest: np.ndarray
    delay: np.ndarray
    route: np.ndarray
    priority: np.ndarray
    missing: np.ndarray
    edge: np.ndarray
    last_edge: np.ndarray
    degree: np.ndarray
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
    """Live messages of calls. `receiver` and `sender`: participants (sender NONE: it does not wait); `round`; `entry`:
    number in the schedules; `arrived`; `behind`: the next in its stream, or in the receiver's list. `free`: stack of
    free places, of height `height[0]`."""

    receiver: np.ndarray
    sender: np.ndarray
    round: np.ndarray
    entry: np.ndarray
    arrived: np.ndarray
    behind: np.ndarray
    free: np.ndarray
    height: np.ndarray


class State(NamedTuple):
    """Everything. `reports`: how many watched tasks have ended, and which. `clock[0]`: now, in s."""

    queue: EventQueue
    network: FlowNetwork
    tasks: Tasks
    edges: Edges
    lanes: Lanes
    routes: Routes
    schedules: Schedules
    streams: Streams
    participants: Participants
    messages: Messages
    reports: np.ndarray
    clock: np.ndarray


def new_messages(count: int) -> Messages:
    """Room for so many live messages."""
    receiver, sender, round_, entry, arrived, behind = (np.zeros(count, np.int64) for _ in range(6))
    free = np.arange(count, dtype=np.int64)[::-1].copy()
    return Messages(receiver, sender, round_, entry, arrived, behind, free, np.array([count]))


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
