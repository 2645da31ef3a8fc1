"""What must hold of every schedule, found from its record of who had which GPUs when, apart from the event loop."""

from __future__ import annotations

import numpy as np
from suite_programs.jobs import Jobs
from suite_programs.simulation import Schedule

CLOSE_S = 1e-3
"""Sums of times of many days are rounded."""
Found = tuple[str, bool, str]
"""Name, whether it holds, detail."""


def most_at_once(nodes: np.ndarray, times: np.ndarray, gpus: np.ndarray) -> int:
    """The most GPUs that any node has had in use at one moment; what ends at a moment is free at it."""
    if not len(nodes):
        return 0
    where, moment = np.concatenate([nodes, nodes]), times.T.reshape(-1)
    change = np.concatenate([gpus, -gpus])
    order = np.lexsort((change, moment, where))
    return int(np.cumsum(change[order]).max())  # each node's own changes add up to 0


def audit(jobs: Jobs, made: Schedule, backfill: bool = False) -> list[Found]:
    """No job is lost, none runs before it is submitted, and each runs as long as it must; the first that waits would
    not fit, with `backfill` none that waits; where segments were recorded no GPU is given twice, every job has all of
    its GPUs, of its own VC, at once, and jobs start when something happens."""
    wait = made.first - jobs.submit
    took = made.end - made.first
    found = [
        ("no_job_lost", bool((made.first >= 0).all()), f"{int((made.first >= 0).sum())} of {jobs.count} jobs ran"),
        ("after_submission", bool((wait >= -CLOSE_S).all()), f"least wait {wait.min():.3g} s"),
        ("whole_duration", bool((took >= jobs.duration + made.added - CLOSE_S).all()), "no job ends early"),
        (
            "work_conserving",
            made.missed == 0 and not (backfill and made.blocked),
            f"{made.missed} moments at which the first waiting job would have fitted, {made.blocked:.6g} job seconds "
            f"of waiting in which the job would have fitted",
        ),
    ]
    if len(made.segments):
        found += _of_segments(jobs, made)
    return found


def starts_at_events(jobs: Jobs, made: Schedule) -> np.ndarray:
    """Whether each job starts first at its submission, or when some job of its VC gives back GPUs (jobs,)."""
    at_once = made.first == jobs.submit
    freed = np.unique(np.column_stack([jobs.vc[made.segments[:, 0]].astype(float), made.times[:, 1]]), axis=0)
    moments = np.column_stack([jobs.vc.astype(float), made.first])
    known = {tuple(row) for row in freed.tolist()}
    return at_once | np.array([tuple(row) in known for row in moments.tolist()])


def _of_segments(jobs: Jobs, made: Schedule) -> list[Found]:
    job, node, gpus = made.segments.T
    begin, end = made.times.T
    worst = most_at_once(node, made.times, gpus)
    service = np.bincount(job, weights=gpus * (end - begin), minlength=jobs.count)
    expected = jobs.gpus * (jobs.duration + made.added)
    apart = float(np.abs(service - expected).max())
    owner = np.repeat(np.arange(len(jobs.pools.nodes)), jobs.pools.nodes)
    keys = np.unique(np.column_stack([job, begin.view(np.int64)]), axis=0, return_inverse=True)[1]
    at_once = np.bincount(keys.reshape(-1), weights=gpus)[keys.reshape(-1)]
    return [
        ("no_gpu_twice", worst <= jobs.pools.per_node, f"at most {worst} GPUs of a node at once"),
        ("gang", bool((at_once == jobs.gpus[job]).all()), "a job starts with all of its GPUs"),
        ("own_nodes", bool((owner[node] == jobs.vc[job]).all()), "a job runs on nodes of its VC"),
        ("starts_at_events", bool(starts_at_events(jobs, made).all()), "jobs start as they come or as GPUs are freed"),
        ("gpu_time", apart <= CLOSE_S * expected.max(), f"GPU seconds differ by at most {apart:.3g}"),
    ]
