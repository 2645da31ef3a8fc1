"""The event loop of a cluster: jobs are submitted, wait in the queue of their VC, run in gang, and end."""

from __future__ import annotations

import numpy as np
from numba import njit
from suite_programs.engine_state import (
    HEAP,
    MISSED,
    SEGMENTS,
    STOPPED,
    State,
    before,
    dequeue,
    enqueue,
    heap_add,
    heap_remove,
)
from suite_programs.placement import drop_slots, fits, lend, place

GIVEN, ROLLING, MIXED, REMAINING = 0, 1, 2, 3
"""Where a priority comes from: given for each job; GPUs times the rolling estimate at its submission; the same with a
given prediction mixed in; the time that is left to run, for which running jobs are stopped."""
PRIOR_S = 600.0
"""The estimate before any job has ended."""
ROLLING_SHARE = 0.1
"""Of the rolling estimate in the mix; the artifact has 0.1 for it and 0.9 for the prediction."""


@njit(cache=True, nogil=True)
def estimate(s: State, keys: np.ndarray) -> float:
    """Mean duration of the ended jobs that share the most specific of these keys (levels,) of the history."""
    for level in range(len(keys)):
        if s.past_count[keys[level]]:
            return s.past_sum[keys[level]] / s.past_count[keys[level]]
    return PRIOR_S


@njit(cache=True, nogil=True)
def learn(s: State, keys: np.ndarray, duration: float) -> None:
    """A duration is known from now on."""
    for level in range(len(keys)):
        s.past_sum[keys[level]] += duration
        s.past_count[keys[level]] += 1


@njit(cache=True, nogil=True)
def count_waiting(s: State, vc: int, now: float) -> None:
    """Adds what has been waited since the last event of the VC."""
    for kind in range(2):
        s.waited[vc, kind] += s.rate[vc, kind] * (now - s.since[vc])
    s.since[vc] = now


@njit(cache=True, nogil=True)
def count_blocked(s: State, vc: int, sizes: np.ndarray) -> None:
    """How many jobs wait from now on, and how many of them would fit."""
    s.rate[vc, 0], s.rate[vc, 1] = s.tail[vc] - s.head[vc], 0
    if s.rate[vc, 0] and s.free_gpus[vc]:
        for size in range(len(sizes)):
            if s.waiting[vc, size] and fits(s, vc, sizes[size]):
                s.rate[vc, 1] += s.waiting[vc, size]


@njit(cache=True, nogil=True)
def start(s: State, job: int, vc: int, now: float) -> None:
    """A job that has its GPUs runs."""
    if s.first[job] < 0:
        s.first[job] = now
    s.begun[job], s.ends[job] = now, now + s.left[job]
    at = s.first_node[vc] * s.per_node + s.run_count[vc]
    s.running[at], s.place[job] = job, at
    s.run_count[vc] += 1
    heap_add(s, job)


@njit(cache=True, nogil=True)
def halt(s: State, job: int, vc: int, now: float) -> None:
    """A job whose GPUs were lent runs no more; what it had is recorded, where that is asked for."""
    s.run_count[vc] -= 1
    last = s.running[s.first_node[vc] * s.per_node + s.run_count[vc]]
    s.running[s.place[job]] = last
    s.place[last] = s.place[job]
    heap_remove(s, job)
    slot = s.slot[job]
    while slot >= 0 and len(s.segment):
        at = s.numbers[SEGMENTS]
        if at < len(s.segment):
            s.segment[at, 0], s.segment[at, 1], s.segment[at, 2] = job, s.slot_node[slot], s.slot_gpus[slot]
            s.segment_time[at, 0], s.segment_time[at, 1] = s.begun[job], now
        s.numbers[SEGMENTS] += 1
        slot = s.slot_next[slot]
    drop_slots(s, job)


@njit(cache=True, nogil=True)
def longest_left(s: State, vc: int, limit: float, above: int) -> int:
    """The running job that ends last, after `limit` and before the job `above` (-1: any); -1: none."""
    found = -1
    begin = s.first_node[vc] * s.per_node
    for at in range(begin, begin + s.run_count[vc]):
        job = s.running[at]
        if s.ends[job] > limit and (above < 0 or before(s, job, above)) and (found < 0 or before(s, found, job)):
            found = job
    return found


@njit(cache=True, nogil=True)
def make_room(s: State, job: int, vc: int, now: float, gpus: np.ndarray, stops: np.ndarray) -> int:
    """Lends the GPUs of running jobs with more left, those that end last first, until the job fits. What it does not
    need goes on as it was, and all of it where the job cannot fit. Returns how many are to be stopped, in `stops`."""
    count, victim = 0, -1
    while not fits(s, vc, gpus[job]):
        victim = longest_left(s, vc, now + s.left[job], victim)
        if victim < 0:
            break
        lend(s, victim, vc, 1)
        stops[count] = victim
        count += 1
    fitting, kept = fits(s, vc, gpus[job]), 0
    for each in range(count):
        lend(s, stops[each], vc, -1)
        if fitting and not fits(s, vc, gpus[job]):
            lend(s, stops[each], vc, 1)
            stops[kept] = stops[each]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def stop_for(
    s: State, job: int, vc: int, now: float, gpus: np.ndarray, kind: np.ndarray, cost: np.ndarray, stops: np.ndarray
) -> bool:
    """Stops running jobs in favour of one that then fits; each is charged its checkpoint and waits again."""
    count = make_room(s, job, vc, now, gpus, stops)
    for each in range(count):
        victim = stops[each]
        s.left[victim] = s.ends[victim] - now + cost[victim]
        s.added[victim] += cost[victim]
        s.key[victim] = s.left[victim]
        halt(s, victim, vc, now)
        enqueue(s, victim, vc)
        s.waiting[vc, kind[victim]] += 1
    s.numbers[STOPPED] += count
    return count > 0


@njit(cache=True, nogil=True)
def schedule(
    s: State,
    vc: int,
    now: float,
    gpus: np.ndarray,
    kind: np.ndarray,
    cost: np.ndarray,
    stops: np.ndarray,
    preempt: bool,
    backfill: bool,
) -> None:
    """Starts jobs in order of priority, up to the first that does not fit; with backfill all that fit."""
    at = s.head[vc]
    while at < s.tail[vc]:
        job = s.queue[at]
        if not place(s, job, vc, gpus[job]):
            if preempt and stop_for(s, job, vc, now, gpus, kind, cost, stops):
                at = s.head[vc]
                continue  # those that were stopped have more left: the same job is still the first
            if not backfill:
                break
            at += 1
            continue
        dequeue(s, at, vc)
        s.waiting[vc, kind[job]] -= 1
        start(s, job, vc, now)
        at = max(at, s.head[vc])
    if s.head[vc] < s.tail[vc] and fits(s, vc, gpus[s.queue[s.head[vc]]]):
        s.numbers[MISSED] += 1


@njit(cache=True, nogil=True)
def admit(
    s: State, job: int, vc: int, gpus: np.ndarray, keys: np.ndarray, given: np.ndarray, guess: np.ndarray, rule: int
) -> None:
    """Gives a job its priority when it is submitted, from what has ended by then, and lets it wait."""
    guess[job] = estimate(s, keys[job])
    if rule == GIVEN:
        s.key[job] = given[job]
    elif rule == REMAINING:
        s.key[job] = s.left[job]
    else:
        expected = guess[job]
        if rule == MIXED and given[job] > 0:
            expected = ROLLING_SHARE * guess[job] + (1 - ROLLING_SHARE) * given[job]
        s.key[job] = gpus[job] * expected
    enqueue(s, job, vc)


@njit(cache=True, nogil=True)
def run_events(
    s: State,
    submit: np.ndarray,
    duration: np.ndarray,
    gpus: np.ndarray,
    vc: np.ndarray,
    kind: np.ndarray,
    sizes: np.ndarray,
    keys: np.ndarray,
    given: np.ndarray,
    cost: np.ndarray,
    guess: np.ndarray,
    rule: int,
    backfill: bool,
    leaky: bool,
) -> None:
    """All events in order of time: at one moment jobs end, then others are submitted, then each VC that saw an event
    starts what it can. Columns of jobs (j,), `keys` (j, levels), `sizes` (classes,) the GPUs of each `kind`."""
    coming, touched = 0, np.zeros(len(s.free_gpus), np.bool_)
    stops = np.empty(len(s.running), np.int64)
    while coming < len(submit) or s.numbers[HEAP]:
        now = submit[coming] if coming < len(submit) else np.inf
        if s.numbers[HEAP]:
            now = min(now, s.ends[s.heap[0]])
        while s.numbers[HEAP] and s.ends[s.heap[0]] <= now:
            job = s.heap[0]
            count_waiting(s, vc[job], now)
            lend(s, job, vc[job], 1)
            halt(s, job, vc[job], now)
            if not leaky:
                learn(s, keys[job], duration[job])
            touched[vc[job]] = True
        while coming < len(submit) and submit[coming] <= now:
            count_waiting(s, vc[coming], now)
            if leaky:  # a control: it knows what nobody can
                learn(s, keys[coming], duration[coming])
            admit(s, coming, vc[coming], gpus, keys, given, guess, rule)
            s.waiting[vc[coming], kind[coming]] += 1
            touched[vc[coming]] = True
            coming += 1
        for each in range(len(touched)):
            if touched[each]:
                schedule(s, each, now, gpus, kind, cost, stops, rule == REMAINING, backfill)
                count_blocked(s, each, sizes)
                touched[each] = False
