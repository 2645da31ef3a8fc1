"""What the event engine knows of tasks, lanes, collective calls and messages: tables of rows for compiled code. NONE
(-1) stands for no row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.engine.event_queue import EventQueue
from scaleproof.simulate.engine.flow_network import FlowNetwork
from scaleproof.simulate.engine.growing import more_rows, new_rows, row_type

WORK, TRANSFER, CALL, SEND, RECEIVE = range(5)
"""Kinds of tasks: a lane is busy for some seconds; bytes go over a route; a rank takes part in a collective call; a
message is sent to a box; a message is taken from a box."""
OF_CALL, OF_TASKS = 0, 1
"""Kinds of messages: between participants of a call, or between two tasks."""
HELD, MOVING, ARRIVED = 0, 1, 2
"""States of a message: it waits for its receiver, is under way (or waits in its stream), or has arrived."""
ANY = -1
"""Source of a receive that takes a message from any rank."""

TASKS = row_type(
    "kind lane route stream box source priority missing edge last_edge degree began_edge last_began behind watched",
    "amount highest delay buffer start end",
)
"""`lane` that the task occupies; `amount`: seconds, bytes, or number of the participant of a call; `highest` bytes/s,
`delay` in s and `route` of a transfer or a send, and of a send its `stream` and the bytes that the sender can `buffer`;
of a send and a receive the `box` and the `source` (a rank's number; of a receive also ANY); `priority`: lower goes
first on its lane; `missing`: tasks that it waits for; `edge` and `last_edge`: list of its successors, `degree` of them;
`began_edge` and `last_began`: list of those that wait for its start; `behind`: the next in its lane's queue or in its
box; `watched`: its end is reported; `start` and `end` in s."""
EDGES = row_type("successor following")
"""Lists of successors: the task, and the next edge of the same predecessor."""
LANES = row_type("busy head tail")
"""The task on a lane, and the first and last of those that wait for it."""
PHASES = row_type("times row")
"""A phase of a collective call: a round that is repeated `times`. Rank r of it has row number `row` + r."""
RANK_ROUNDS = row_type("sends receives core", "work speed")
"""A rank in a round: the number of its first message (that of the next row is one beyond its last), the number of
messages that it receives, and the s that it works after that: at any time, or (`core` not NONE) over a route, on which
`speed` a second is as fast as it can be."""
ROUND_MESSAGES = row_type("destination route stream", "nbytes highest delay buffer")
"""A message of a round: `highest` in bytes/s, `delay` in s, `buffer`: bytes that the sender can buffer."""
STREAMS = row_type("moving head tail", "nbytes")
"""Connections: messages of one arrive in their order, one after the other. The message that moves, the first and last
of those behind it, and the bytes of all."""
BOXES = row_type("receive last_receive message last_message")
"""Where messages of one tag for one rank and its receives meet, each in their order. The first and last of the receives
that wait, and of the messages that no receive has taken yet."""
PARTICIPANTS = row_type("schedule first task phase turn round receiving sending early latest")
"""A rank in a call. `first`: participant of rank 0 of the call; `phase`, `turn` and `round` where it is (round NONE:
not yet in the call); `receiving` and `sending`: messages that its round waits for; `early` and `latest`: list of
messages that wait for a later round."""
MESSAGES = row_type("kind receiver sender mark route stream state behind next_in_box free", "nbytes highest delay")
"""Live messages. `receiver` and `sender`: participants or tasks (sender NONE: it does not wait; receiver NONE: no
receive has taken it yet); `mark`: the round of a call, or the rank that sends; `behind`: the next in its stream, or in
the list of a participant; `next_in_box`; `free`: a stack of free rows."""


class Routes(NamedTuple):
    """Route r crosses `links[first[r]:first[r + 1]]`; one byte/s uses `weights` of their capacities."""

    first: np.ndarray
    links: np.ndarray
    weights: np.ndarray


class Schedules(NamedTuple):
    """Collective calls of some size. Schedule s has phases `first[s]` to `first[s + 1]` - 1."""

    first: np.ndarray
    phases: np.recarray
    ranks: np.recarray
    messages: np.recarray


class State(NamedTuple):
    """Everything. `counts`: see the numbers below; `reports`: watched tasks that have ended; `clock`: now, and the time
    of the next event, in s."""

    queue: EventQueue
    network: FlowNetwork
    tasks: np.recarray
    edges: np.recarray
    lanes: np.recarray
    routes: Routes
    schedules: Schedules
    streams: np.recarray
    boxes: np.recarray
    participants: np.recarray
    messages: np.recarray
    counts: np.ndarray
    reports: np.ndarray
    clock: np.ndarray


RELEASED, REPORTED, FREE_MESSAGES = 0, 1, 2
"""Places in `State.counts`: tasks that have been released so far, watched tasks that have ended, free messages."""


def new_messages(count: int) -> np.recarray:
    """Room for so many live messages."""
    rows = new_rows(count, MESSAGES)
    rows.free = np.arange(count)[::-1]
    return rows


def grown_messages(messages: np.recarray, free: int, count: int) -> np.recarray:
    """The same with more room. `free`: free rows so far; the new ones are free too."""
    larger, before = more_rows(messages, count), len(messages)
    larger.free[free : free + count - before] = np.arange(before, count)
    return larger
