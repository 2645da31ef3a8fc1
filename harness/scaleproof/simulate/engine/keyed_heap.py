"""Items by a key that can change, the smallest first: a binary heap that knows where each is, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.compiled import compiled

ABSENT = -1


class KeyedHeap(NamedTuple):
    """Item numbers in the order of a heap; the `keys` and `places` of each item; the number of items."""

    items: np.ndarray
    keys: np.ndarray
    places: np.ndarray
    size: np.ndarray


def new_heap(items: int) -> KeyedHeap:
    """A heap for item numbers below `items`."""
    return KeyedHeap(
        np.zeros(items, np.int64), np.zeros(items), np.full(items, ABSENT, np.int64), np.zeros(1, np.int64)
    )


def larger_heap(heap: KeyedHeap, items: int) -> KeyedHeap:
    """A copy for item numbers below `items`."""
    copy = new_heap(items)
    for new, old in ((copy.items, heap.items), (copy.keys, heap.keys), (copy.places, heap.places)):
        new[: len(old)] = old
    copy.size[:] = heap.size
    return copy


@compiled
def put(heap: KeyedHeap, item: int, key: float) -> None:
    """Adds an item, or moves it to its new key."""
    place = heap.places[item]
    if place == ABSENT:
        place = heap.size[0]
        heap.size[0] += 1
    elif key > heap.keys[item]:
        heap.keys[item] = key
        _down(heap, item, place)
        return
    heap.keys[item] = key
    _up(heap, item, place)


@compiled
def take_first(heap: KeyedHeap) -> int:
    """Takes the item with the smallest key."""
    item = heap.items[0]
    heap.places[item] = ABSENT
    heap.size[0] -= 1
    if heap.size[0]:
        _down(heap, heap.items[heap.size[0]], 0)
    return int(item)


@compiled
def clear(heap: KeyedHeap) -> None:
    """Takes all items."""
    for place in range(heap.size[0]):
        heap.places[heap.items[place]] = ABSENT
    heap.size[0] = 0


@compiled
def _up(heap: KeyedHeap, item: int, place: int) -> None:
    items, keys, places = heap.items, heap.keys, heap.places
    key = keys[item]
    while place:
        above = (place - 1) >> 1
        other = items[above]
        if keys[other] <= key:
            break
        items[place], places[other] = other, place
        place = above
    items[place], places[item] = item, place


@compiled
def _down(heap: KeyedHeap, item: int, place: int) -> None:
    items, keys, places = heap.items, heap.keys, heap.places
    key, size = keys[item], heap.size[0]
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and keys[items[below + 1]] < keys[items[below]]:
            below += 1
        other = items[below]
        if keys[other] >= key:
            break
        items[place], places[other] = other, place
        place = below
    items[place], places[item] = item, place
