"""A queue of events in order of time, then of arrival, for compiled code: a binary heap of rows, and beside it a ring
of those that happen at once, which are half of all."""

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
AT_ONCE = row_type("kind item")
LATER, ARRIVALS, FIRST, NOW = range(4)
"""Places in `EventQueue.size`."""


class EventQueue(NamedTuple):
    """A heap of EVENT rows and a ring of AT_ONCE rows of the same length. `size`: number of events in the heap,
    arrivals there so far, the first event in the ring, and the number there. `clock[0]`: now, in s."""

    events: np.recarray
    at_once: np.recarray
    size: np.ndarray
    clock: np.ndarray


def new_queue(capacity: int, clock: np.ndarray) -> EventQueue:
    """An empty queue."""
    return EventQueue(new_rows(capacity, EVENT), new_rows(capacity, AT_ONCE), np.zeros(4, np.int64), clock)


def with_room(queue: EventQueue, events: int) -> EventQueue:
    """The same, or a larger copy, with room for so many events more."""
    capacity = len(queue.events)
    if events <= capacity - int(queue.size[LATER] + queue.size[NOW]):
        return queue
    capacity = 2 * (capacity + events)
    at_once = more_rows(np.roll(queue.at_once, -int(queue.size[FIRST])), capacity)
    queue.size[FIRST] = 0
    return EventQueue(more_rows(queue.events, capacity), at_once, queue.size, queue.clock)


@inlined
def free_places(queue: EventQueue) -> int:
    """For so many events more there is room."""
    return int(len(queue.events) - queue.size[LATER] - queue.size[NOW])


@inlined
def push(queue: EventQueue, time: float, kind: int, item: int) -> None:
    """Adds an event. The caller has made sure that there is room."""
    if time <= queue.clock[0]:
        place = queue.size[FIRST] + queue.size[NOW]
        if place >= len(queue.at_once):
            place -= len(queue.at_once)
        queue.at_once[place].kind, queue.at_once[place].item = kind, item
        queue.size[NOW] += 1
        return
    events = queue.events
    place = queue.size[LATER]
    while place:
        above = (place - 1) >> 1
        if events[above].time <= time:
            break
        events[place] = events[above]
        place = above
    event = events[place]
    event.time, event.order, event.kind, event.item = time, queue.size[ARRIVALS], kind, item
    queue.size[LATER] += 1
    queue.size[ARRIVALS] += 1


@inlined
def next_time(queue: EventQueue) -> float:
    """When the first event happens; infinite: there is none."""
    if queue.size[NOW]:
        return float(queue.clock[0])
    return float(queue.events[0].time) if queue.size[LATER] else np.inf


@compiled
def pop(queue: EventQueue) -> tuple[float, int, int]:
    """Takes the first event: time, kind, item. Those in the heap that happen now arrived before those in the ring."""
    events = queue.events
    if queue.size[NOW] and not (queue.size[LATER] and events[0].time <= queue.clock[0]):
        event = queue.at_once[queue.size[FIRST]]
        queue.size[NOW] -= 1
        queue.size[FIRST] += 1
        if queue.size[FIRST] == len(queue.at_once):
            queue.size[FIRST] = 0
        return queue.clock[0], event.kind, event.item
    first = events[0].time, events[0].kind, events[0].item
    queue.size[LATER] -= 1
    size = queue.size[LATER]
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
