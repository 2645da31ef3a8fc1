"""A schedule of jobs under a policy: arrays in, arrays out. The event loop is engine.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from suite_programs import engine
from suite_programs.engine_state import CONSOLIDATE, FIRST_FIT, FUNGIBLE, HEAP, MISSED, SEGMENTS, STOPPED, State, Work
from suite_programs.jobs import Jobs

PLACEMENTS = {"consolidate": CONSOLIDATE, "first_fit": FIRST_FIT, "fungible": FUNGIBLE}
CHECKPOINT_S = ((1, 7.0), (8, 30.0), (2**31, 60.0))
"""What a job of at most so many GPUs pays when it is stopped, s (artifact: 7, 30, 60)."""
PRIOR_S = 600.0
"""The estimate of a trace's durations before any job has ended; ours."""
SHARE = 0.9
"""Of a prediction in the mix; the artifact's."""


@dataclass(frozen=True, slots=True)
class Rolling:
    """How durations are estimated from past ones. `prior`: the estimate before any job has ended, s; `decay`: what the
    weight of a past duration is multiplied with whenever another of its group is known (1: all count alike);
    `prior_count`: jobs that the estimate from a less specific group counts for in the mean of a more specific one (0:
    that mean alone); `share`: of a given prediction in the mix."""

    prior: float = PRIOR_S
    decay: float = 1.0
    prior_count: float = 0.0
    share: float = SHARE


ROLLING = Rolling()
"""Where a case does not say otherwise."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How jobs are ordered: `source` of engine.py, and the given number of each job, if the source needs one."""

    source: int = engine.GIVEN
    given: np.ndarray | None = None
    leaky: bool = False
    rolling: Rolling = ROLLING


@dataclass(frozen=True, slots=True)
class Schedule:
    """What became of each job (jobs,), times in s. `segments` (count, 3): job, node, GPUs, and `times` (count, 2) from
    and to, where they were recorded. `stopped`: how often jobs were stopped. `missed`: moments after which the first
    waiting job would have fitted. `waited`, `blocked`: job seconds."""

    first: np.ndarray
    end: np.ndarray
    added: np.ndarray
    guess: np.ndarray
    segments: np.ndarray
    times: np.ndarray
    stopped: int
    missed: int
    waited: float
    blocked: float


def history_keys(jobs: Jobs, named: bool) -> np.ndarray:
    """(jobs, levels): numbers of the groups whose past a job's estimate is taken from, the most specific first. With
    names: name, user and GPUs; name; user; all (the artifact's estimator, with equal names for near ones). Without:
    user and GPUs; user; all."""
    user, gpus, everything = jobs.user.astype(np.int64), jobs.gpus.astype(np.int64), np.zeros(jobs.count, np.int64)
    levels = [user * 1_000_000 + gpus, user, everything]
    if named:
        name = jobs.name.astype(np.int64)
        levels = [(name * 1_000_000 + user) * 10_000 + gpus, name, user, everything]
    columns, used = [], 0
    for level in levels:
        known, numbers = np.unique(level, return_inverse=True)
        columns.append(numbers + used)
        used += len(known)
    return np.column_stack(columns).astype(np.int64)


def simulate(
    jobs: Jobs, rule: Rule, placement: str = "consolidate", backfill: bool = False, recorded: bool = False
) -> Schedule:
    """The schedule of all jobs. Memory: about 200 bytes a job, without recording."""
    count = jobs.count
    gpus = jobs.gpus.astype(np.int64)
    sizes, kind = np.unique(gpus, return_inverse=True)
    keys = history_keys(jobs, named=bool((jobs.name >= 0).all()))
    state = _state(jobs, PLACEMENTS[placement], rule.rolling, len(sizes), int(keys.max()) + 1, recorded)
    cost = np.select([gpus <= most for most, _ in CHECKPOINT_S], [seconds for _, seconds in CHECKPOINT_S])
    given = np.zeros(count) if rule.given is None else np.ascontiguousarray(rule.given, float)
    work = Work(
        jobs.submit.astype(float), jobs.duration.astype(float), gpus, jobs.vc.astype(np.int64), kind, sizes, keys,
        given, cost.astype(float), np.zeros(count),
    )  # fmt: skip
    engine.run_events(state, work, rule.source, backfill, rule.leaky)
    numbers = state.numbers
    kept = min(int(numbers[SEGMENTS]), len(state.segment))
    assert not recorded or kept == numbers[SEGMENTS], "more segments than there was room for"
    assert numbers[HEAP] == 0
    return Schedule(
        state.first, state.ends, state.added, work.guess, state.segment[:kept], state.segment_time[:kept],
        int(numbers[STOPPED]), int(numbers[MISSED]), float(state.waited[:, 0].sum()), float(state.waited[:, 1].sum()),
    )  # fmt: skip


def _state(jobs: Jobs, placement: int, rolling: Rolling, classes: int, keys: int, recorded: bool) -> State:
    pools, count = jobs.pools, jobs.count
    nodes, vcs = int(pools.nodes.sum()), len(pools.nodes)
    first_node = np.concatenate([[0], np.cumsum(pools.nodes)]).astype(np.int64)
    slots = nodes * pools.per_node
    begin = np.concatenate([[0], np.cumsum(np.bincount(jobs.vc, minlength=vcs))]).astype(np.int64)
    rows = 16 * int(jobs.gpus.sum()) if recorded else 0

    def whole(size: int, value: int = 0) -> np.ndarray:
        return np.full(size, value, np.int64)

    return State(
        pools.per_node, placement, rolling.prior, rolling.decay, rolling.prior_count, rolling.share, first_node,
        whole(nodes, pools.per_node), pools.nodes.astype(np.int64) * pools.per_node,
        whole(count, -1), np.append(np.arange(1, slots), -1).astype(np.int64), whole(slots), whole(slots),
        whole(count), begin, begin[:-1].copy(), begin[:-1].copy(),
        np.zeros(count), jobs.duration.astype(float), np.zeros(count), np.zeros(count), np.full(count, -1.0),
        np.zeros(count), whole(slots), whole(vcs), whole(count), whole(slots), whole(count),
        np.zeros(keys), np.zeros(keys), np.zeros((vcs, classes), np.int64), np.zeros((vcs, 2)), np.zeros(vcs),
        np.zeros((vcs, 2)), np.zeros((rows, 3), np.int64), np.zeros((rows, 2)), whole(8),
    )  # fmt: skip
