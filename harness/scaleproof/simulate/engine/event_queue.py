"""A queue of events in order of time, then of arrival: a binary heap in arrays, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.fair_rates import compiled

FLOW_END, TASK, MESSAGE, ROUND, STARTED = range(5)
"""Kinds of events: the end of a flow; a task's time is over; a message leaves; a rank's round of a call is over; a task
has started that others wait for."""


class EventQueue(NamedTuple):
    """A heap. `time` in s; `order` counts arrivals; `kind` and `item` say what happens to what; an event whose
    `version` is no longer that of its item is void. `size`: number of events, arrivals so far."""

    time: np.ndarray
    order: np.ndarray
    kind: np.ndarray
    item: np.ndarray
    version: np.ndarray
    size: np.ndarray


def new_queue(capacity: int) -> EventQueue:
    """An empty queue."""
    order, kind, item, version = (np.zeros(capacity, np.int64) for _ in range(4))
    return EventQueue(np.zeros(capacity), order, kind, item, version, np.zeros(2, np.int64))


def grown(queue: EventQueue, capacity: int) -> EventQueue:
    """A copy with more room."""
    larger = new_queue(capacity)
    for old, new in zip(queue, larger, strict=True):
        new[: len(old)] = old
    return larger


@compiled
def push(queue: EventQueue, time: float, kind: int, item: int, version: int) -> None:
    """Adds an event. The caller has made sure that there is room."""
    place, order = queue.size[0], queue.size[1]
    queue.size[0] += 1
    queue.size[1] += 1
    while place:
        above = (place - 1) >> 1
        if queue.time[above] <= time:
            break
        _move(queue, above, place)
        place = above
    queue.time[place], queue.order[place], queue.kind[place] = time, order, kind
    queue.item[place], queue.version[place] = item, version


@compiled
def pop(queue: EventQueue) -> tuple[float, int, int, int]:
    """Takes the first event: time, kind, item, version."""
    first = queue.time[0], queue.kind[0], queue.item[0], queue.version[0]
    queue.size[0] -= 1
    size = queue.size[0]
    time, order = queue.time[size], queue.order[size]
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _earlier(queue, below + 1, below):
            below += 1
        if queue.time[below] > time or (queue.time[below] == time and queue.order[below] > order):
            break
        _move(queue, below, place)
        place = below
    _move(queue, size, place)
    return first


@compiled
def _earlier(queue: EventQueue, one: int, other: int) -> bool:
    if queue.time[one] == queue.time[other]:
        return bool(queue.order[one] < queue.order[other])
    return bool(queue.time[one] < queue.time[other])


@compiled
def _move(queue: EventQueue, origin: int, place: int) -> None:
    queue.time[place], queue.order[place] = queue.time[origin], queue.order[origin]
    queue.kind[place], queue.item[place] = queue.kind[origin], queue.item[origin]
    queue.version[place] = queue.version[origin]
