"""A queue of events in order of time, then of arrival: a binary heap of rows, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.compiled import compiled, inlined
from scaleproof.simulate.engine.growing import more_rows, new_rows, row_type

TASK, MESSAGE, ROUND, STARTED = range(4)
"""Kinds of events: a task's time is over; a message leaves; a rank's round of a call is over; a task
has started that others wait for."""
EVENT = row_type("order kind item", "time")
"""`time` in s; `order` counts arrivals; `kind` and `item` say what happens to what."""


class EventQueue(NamedTuple):
    """A heap of EVENT rows. `size`: number of events, arrivals so far."""

    events: np.recarray
    size: np.ndarray


def new_queue(capacity: int) -> EventQueue:
    """An empty queue."""
    return EventQueue(new_rows(capacity, EVENT), np.zeros(2, np.int64))


def grown(queue: EventQueue, capacity: int) -> EventQueue:
    """A copy with more room."""
    return EventQueue(more_rows(queue.events, capacity), queue.size)


@inlined
def push(queue: EventQueue, time: float, kind: int, item: int) -> None:
    """Adds an event. The caller has made sure that there is room."""
    events = queue.events
    place = queue.size[0]
    while place:
        above = (place - 1) >> 1
        if events[above].time <= time:
            break
        events[place] = events[above]
        place = above
    event = events[place]
    event.time, event.order, event.kind, event.item = time, queue.size[1], kind, item
    queue.size[0] += 1
    queue.size[1] += 1


@compiled
def pop(queue: EventQueue) -> tuple[float, int, int]:
    """Takes the first event: time, kind, item."""
    events = queue.events
    first = events[0].time, events[0].kind, events[0].item
    queue.size[0] -= 1
    size = queue.size[0]
    time, order = events[size].time, events[size].order
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _earlier(events[below + 1], events[below].time, events[below].order):
            below += 1
        if not _earlier(events[below], time, order):
            break
        events[place] = events[below]
        place = below
    events[place] = events[size]
    return first


@inlined
def _earlier(event: np.record, time: float, order: int) -> bool:
    return bool(event.time < time or (event.time == time and event.order < order))
