"""What the event loop holds of a cluster, as flat arrays: free GPUs, queues, running jobs, and past durations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scaleproof.simulate.compiled import compiled

CONSOLIDATE, FIRST_FIT, FUNGIBLE = 0, 1, 2
FREE_SLOT, HEAP, SEGMENTS, STOPPED, MISSED = 0, 1, 2, 3, 4
"""Places of `numbers`: the first free slot, jobs in the heap, recorded segments, jobs that were stopped, and moments
after which the head of a queue would still have fitted."""


class State(NamedTuple):
    """Arrays of jobs (j,), VCs (v,), nodes (n,), and slots, of which a running job has one for each of its nodes."""

    per_node: int
    placement: int
    prior: float
    """The estimate before any job has ended, s."""
    decay: float
    """What the weight of past durations is multiplied with when another of their group is known; 1: all count alike."""
    prior_count: float
    """Jobs that the estimate from a less specific group counts for in the mean of a more specific one."""
    share: float
    """Of a given prediction in the mix; the rest is the rolling estimate."""
    first_node: np.ndarray
    """(v + 1,): the nodes of VC v are first_node[v] to first_node[v + 1] - 1."""
    free: np.ndarray
    """GPUs of each node."""
    free_gpus: np.ndarray
    """(v,)"""
    slot: np.ndarray
    """(j,): the first slot of a running job; -1: none."""
    slot_next: np.ndarray
    slot_node: np.ndarray
    slot_gpus: np.ndarray
    queue: np.ndarray
    """(j,): waiting jobs; the part of a VC begins at `queue_begin`, and its queue goes from `head` to `tail` - 1."""
    queue_begin: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    key: np.ndarray
    """(j,): the priority; less goes first."""
    left: np.ndarray
    """(j,): s that a job has to run, with what checkpoints have added."""
    begun: np.ndarray
    """(j,): when it was started last, s."""
    ends: np.ndarray
    """(j,): when it will end, or has ended, s."""
    first: np.ndarray
    """(j,): when it was started first, s; negative: never."""
    added: np.ndarray
    """(j,): s of checkpoints."""
    running: np.ndarray
    """Jobs that run; the part of a VC begins at its first node times per_node."""
    run_count: np.ndarray
    place: np.ndarray
    """(j,): where it is in `running`."""
    heap: np.ndarray
    """Running jobs by their end."""
    heap_place: np.ndarray
    past_sum: np.ndarray
    past_count: np.ndarray
    """Durations of ended jobs by key of the history, and their number, both weighted by `decay`."""
    waiting: np.ndarray
    """(v, classes): waiting jobs by number of GPUs."""
    waited: np.ndarray
    """(v, 2): job seconds of waiting, and those in which the job would have fitted."""
    since: np.ndarray
    """(v,): up to when `waited` counts, s."""
    rate: np.ndarray
    """(v, 2): waiting jobs since then, and those that would fit."""
    segment: np.ndarray
    """(segments, 3): job, node, GPUs."""
    segment_time: np.ndarray
    """(segments, 2): from, to, s."""
    numbers: np.ndarray


class Work(NamedTuple):
    """Columns of jobs (j,) in order of submission, times in s. `kind`: the place of its GPUs in `sizes` (classes,);
    `keys` (j, levels): groups of the history; `given`: priorities or predictions; `cost`: of a checkpoint; `guess`: the
    estimate at its submission, which is written here."""

    submit: np.ndarray
    duration: np.ndarray
    gpus: np.ndarray
    vc: np.ndarray
    kind: np.ndarray
    sizes: np.ndarray
    keys: np.ndarray
    given: np.ndarray
    cost: np.ndarray
    guess: np.ndarray


@compiled
def before(s: State, one: int, other: int) -> bool:
    """Whether a job ends before another."""
    return s.ends[one] < s.ends[other] or (s.ends[one] == s.ends[other] and one < other)


@compiled
def sift(s: State, place: int) -> None:
    """Moves a job of the heap up or down to its place."""
    job, size = s.heap[place], s.numbers[HEAP]
    while place > 0 and before(s, job, s.heap[(place - 1) // 2]):
        parent = s.heap[(place - 1) // 2]
        s.heap[place] = parent
        s.heap_place[parent] = place
        place = (place - 1) // 2
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and before(s, s.heap[child + 1], s.heap[child]):
            child += 1
        if not before(s, s.heap[child], job):
            break
        s.heap[place] = s.heap[child]
        s.heap_place[s.heap[place]] = place
        place = child
    s.heap[place] = job
    s.heap_place[job] = place


@compiled
def heap_add(s: State, job: int) -> None:
    """A job runs."""
    place = s.numbers[HEAP]
    s.numbers[HEAP] += 1
    s.heap[place] = job
    sift(s, place)


@compiled
def heap_remove(s: State, job: int) -> None:
    """A job runs no more."""
    place = s.heap_place[job]
    s.numbers[HEAP] -= 1
    last = s.heap[s.numbers[HEAP]]
    if last != job:
        s.heap[place] = last
        s.heap_place[last] = place
        sift(s, place)


@compiled
def enqueue(s: State, job: int, vc: int) -> None:
    """Behind all jobs of the VC with the same or a better priority."""
    if s.tail[vc] == s.queue_begin[vc + 1]:  # at the end of its part: move it back to the beginning
        count, shift = s.tail[vc] - s.head[vc], s.head[vc] - s.queue_begin[vc]
        for place in range(s.queue_begin[vc], s.queue_begin[vc] + count):
            s.queue[place] = s.queue[place + shift]
        s.head[vc], s.tail[vc] = s.queue_begin[vc], s.queue_begin[vc] + count
    low, high = s.head[vc], s.tail[vc]
    while low < high:
        middle = (low + high) // 2
        if s.key[s.queue[middle]] <= s.key[job]:
            low = middle + 1
        else:
            high = middle
    for place in range(s.tail[vc], low, -1):
        s.queue[place] = s.queue[place - 1]
    s.queue[low] = job
    s.tail[vc] += 1


@compiled
def dequeue(s: State, place: int, vc: int) -> None:
    """Takes the job at a place out of the queue."""
    for each in range(place, s.head[vc], -1):
        s.queue[each] = s.queue[each - 1]
    s.head[vc] += 1
