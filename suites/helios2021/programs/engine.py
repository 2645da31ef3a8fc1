"""The event loop of a cluster: jobs are submitted, wait in the queue of their VC, run in gang, and end."""

from __future__ import annotations

import numpy as np
from suite_programs.engine_state import (
    HEAP,
    MISSED,
    SEGMENTS,
    STOPPED,
    State,
    Work,
    before,
    dequeue,
    enqueue,
    heap_add,
    heap_remove,
)
from suite_programs.placement import drop_slots, fits, lend, place

from scaleproof.simulate.compiled import allocating, compiled

GIVEN, ROLLING, MIXED, REMAINING = 0, 1, 2, 3
"""Where a priority comes from: given for each job; GPUs times the rolling estimate at its submission; the same with a
given prediction mixed in; the time that is left to run, for which running jobs are stopped."""


@compiled
def estimate(s: State, keys: np.ndarray) -> float:
    """Mean duration, weighted by `decay`, of the ended jobs that share the most specific of these keys (levels,) of the
    history, with `prior_count` jobs more that last as long as is estimated from the less specific ones."""
    expected = s.prior
    for level in range(len(keys) - 1, -1, -1):
        count = s.past_count[keys[level]]
        if count:
            expected = (s.past_sum[keys[level]] + s.prior_count * expected) / (count + s.prior_count)
    return expected


@compiled
def learn(s: State, keys: np.ndarray, duration: float) -> None:
    """A duration is known from now on."""
    for level in range(len(keys)):
        s.past_sum[keys[level]] = s.decay * s.past_sum[keys[level]] + duration
        s.past_count[keys[level]] = s.decay * s.past_count[keys[level]] + 1


@compiled
def count_waiting(s: State, vc: int, now: float) -> None:
    """Adds what has been waited since the last event of the VC."""
    for kind in range(2):
        s.waited[vc, kind] += s.rate[vc, kind] * (now - s.since[vc])
    s.since[vc] = now


@compiled
def count_blocked(s: State, vc: int, sizes: np.ndarray) -> None:
    """How many jobs wait from now on, and how many of them would fit."""
    s.rate[vc, 0], s.rate[vc, 1] = s.tail[vc] - s.head[vc], 0
    if s.rate[vc, 0] and s.free_gpus[vc]:
        for size in range(len(sizes)):
            if s.waiting[vc, size] and fits(s, vc, sizes[size]):
                s.rate[vc, 1] += s.waiting[vc, size]


@compiled
def wait_for_gpus(s: State, w: Work, job: int) -> None:
    """A job is in the queue of its VC."""
    enqueue(s, job, w.vc[job])
    s.waiting[w.vc[job], w.kind[job]] += 1


@compiled
def start(s: State, job: int, vc: int, now: float) -> None:
    """A job that has its GPUs runs."""
    if s.first[job] < 0:
        s.first[job] = now
    s.begun[job], s.ends[job] = now, now + s.left[job]
    at = s.first_node[vc] * s.per_node + s.run_count[vc]
    s.running[at], s.place[job] = job, at
    s.run_count[vc] += 1
    heap_add(s, job)


@compiled
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


@compiled
def longest_left(s: State, vc: int, limit: float, above: int) -> int:
    """The running job that ends last, after `limit` and before the job `above` (-1: any); -1: none."""
    found = -1
    begin = s.first_node[vc] * s.per_node
    for at in range(begin, begin + s.run_count[vc]):
        job = s.running[at]
        if s.ends[job] > limit and (above < 0 or before(s, job, above)) and (found < 0 or before(s, found, job)):
            found = job
    return found


@compiled
def make_room(s: State, w: Work, job: int, now: float, stops: np.ndarray) -> int:
    """Lends the GPUs of running jobs with more left, those that end last first, until the job fits. What it does not
    need goes on as it was, and all of it where the job cannot fit. Returns how many are to be stopped, in `stops`."""
    count, victim, vc, gpus = 0, -1, w.vc[job], w.gpus[job]
    while not fits(s, vc, gpus):
        victim = longest_left(s, vc, now + s.left[job], victim)
        if victim < 0:
            break
        lend(s, victim, vc, 1)
        stops[count] = victim
        count += 1
    fitting, kept = fits(s, vc, gpus), 0
    for each in range(count):
        lend(s, stops[each], vc, -1)
        if fitting and not fits(s, vc, gpus):
            lend(s, stops[each], vc, 1)
            stops[kept] = stops[each]
            kept += 1
    return kept


@compiled
def stop_for(s: State, w: Work, job: int, now: float, stops: np.ndarray) -> bool:
    """Stops running jobs in favour of one that then fits; each is charged its checkpoint and waits again."""
    count = make_room(s, w, job, now, stops)
    for each in range(count):
        victim = stops[each]
        s.left[victim] = s.ends[victim] - now + w.cost[victim]
        s.added[victim] += w.cost[victim]
        s.key[victim] = s.left[victim]
        halt(s, victim, w.vc[victim], now)
        wait_for_gpus(s, w, victim)
    s.numbers[STOPPED] += count
    return count > 0


@compiled
def last_end(s: State, vc: int) -> float:
    """When the last of the running jobs ends, s; -inf without any."""
    job = longest_left(s, vc, -np.inf, -1)
    return s.ends[job] if job >= 0 else -np.inf


@compiled
def schedule(s: State, w: Work, vc: int, now: float, stops: np.ndarray, preempt: bool, backfill: bool) -> None:
    """Starts jobs in order of priority, up to the first that does not fit; with backfill all that fit."""
    at = s.head[vc]
    last = last_end(s, vc) if preempt and at < s.tail[vc] else -np.inf  # a job with more left than that stops nobody
    while at < s.tail[vc]:
        job = s.queue[at]
        if not place(s, job, vc, w.gpus[job]):
            if now + s.left[job] < last and stop_for(s, w, job, now, stops):
                at = s.head[vc]
                continue  # those that were stopped have more left: none is before this job
            if not backfill:
                break
            at += 1
            continue
        dequeue(s, at, vc)
        s.waiting[vc, w.kind[job]] -= 1
        start(s, job, vc, now)
        at = max(at, s.head[vc])
    if s.head[vc] < s.tail[vc] and fits(s, vc, w.gpus[s.queue[s.head[vc]]]):
        s.numbers[MISSED] += 1


@compiled
def admit(s: State, w: Work, job: int, rule: int) -> None:
    """Gives a job its priority when it is submitted, from what has ended by then, and lets it wait."""
    w.guess[job] = estimate(s, w.keys[job])
    if rule == GIVEN:
        s.key[job] = w.given[job]
    elif rule == REMAINING:
        s.key[job] = s.left[job]
    else:
        expected = w.guess[job]
        if rule == MIXED and w.given[job] > 0:
            expected = (1 - s.share) * w.guess[job] + s.share * w.given[job]
        s.key[job] = w.gpus[job] * expected
    wait_for_gpus(s, w, job)


@compiled
def end_jobs(s: State, w: Work, now: float, leaky: bool, touched: np.ndarray) -> None:
    """Jobs that have ended by now give back their GPUs, and their durations are known."""
    while s.numbers[HEAP] and s.ends[s.heap[0]] <= now:
        job = s.heap[0]
        count_waiting(s, w.vc[job], now)
        lend(s, job, w.vc[job], 1)
        halt(s, job, w.vc[job], now)
        if not leaky:
            learn(s, w.keys[job], w.duration[job])
        touched[w.vc[job]] = True


@allocating
def run_events(s: State, w: Work, rule: int, backfill: bool, leaky: bool) -> None:
    """All events in order of time: at one moment jobs end, then others are submitted, then each VC that saw an event
    starts what it can."""
    coming, count, touched = 0, len(w.submit), np.zeros(len(s.free_gpus), np.bool_)
    stops = np.empty(len(s.running), np.int64)
    while coming < count or s.numbers[HEAP]:
        now = w.submit[coming] if coming < count else np.inf
        if s.numbers[HEAP]:
            now = min(now, s.ends[s.heap[0]])
        end_jobs(s, w, now, leaky, touched)
        while coming < count and w.submit[coming] <= now:
            count_waiting(s, w.vc[coming], now)
            if leaky:  # a control: it knows what nobody can
                learn(s, w.keys[coming], w.duration[coming])
            admit(s, w, coming, rule)
            touched[w.vc[coming]] = True
            coming += 1
        for vc in range(len(touched)):
            if touched[vc]:
                schedule(s, w, vc, now, stops, rule == REMAINING, backfill)
                count_blocked(s, vc, w.sizes)
                touched[vc] = False
