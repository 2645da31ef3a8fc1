"""Metrics of one schedule, and of two policies on the same jobs."""

from __future__ import annotations

from scaleproof.claims.noted import noted

METRICS = [
    noted("avg_jct", "s", "lower", """
        Mean job completion time in s of the simulation (suite helios2021).

        avg_jct = mean over jobs of (end - submission)
        """),
    noted("avg_queue", "s", "lower", """
        Mean time that jobs wait, in s of the simulation (suite helios2021).

        avg_queue = mean over jobs of (end - submission - duration - checkpoints)

        Of a job that is stopped, all its waits together.
        """),
    noted("queued_jobs", "jobs", "lower", """
        Jobs that wait longer than half a second (suite helios2021): trace times are whole seconds.
        """),
    noted("queue_share", "%", "lower", """
        Share of all completion time that is waiting, in % (suite helios2021).

        queue_share = 100 * sum of waits / sum of completion times
        """, range=(0, 100)),
    noted("blocking_share", "fraction", "lower", """
        Share of all waiting in which the waiting job would have fitted on free GPUs (suite helios2021).

        blocking_share = job seconds of waiting while the job would fit / job seconds of waiting

        What it waits for is not GPUs: a job before it in the queue does not fit (head-of-line blocking).
        """),
    noted("estimate_error", "1", "lower", """
        How far the rolling estimate of a job's duration is off at its submission (suite helios2021).

        estimate_error = median over jobs of |log2(estimate / duration)|

        1: by a factor of two.
        """),
    noted("stopped_jobs", "count", "lower", """
        How often a running job was stopped for another one (suite helios2021).
        """, own_count=True),
]  # fmt: skip
