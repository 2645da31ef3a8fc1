"""Metrics of jobs beside what was published of them."""

from __future__ import annotations

from scaleproof.claims.noted import noted

_DISTANCE = """
    Largest distance between the distribution of {what} and the published one, in percentage points (suite helios2021).

    {name} = max over published points of |share of {of} up to there - published share|

    The points are coordinates of the paper's vector figures.
    """


def _distance(name: str, what: str, of: str) -> str:
    return _DISTANCE.format(name=name, what=what, of=of)


METRICS = [
    noted("duration_distance", "%", "lower", _distance("duration_distance", "durations", "GPU jobs"), range=(0, 100)),
    noted("gpus_distance", "%", "lower", _distance("gpus_distance", "GPUs of a job", "GPU jobs"), range=(0, 100)),
    noted("gpu_time_distance", "%", "lower", _distance("gpu_time_distance", "GPU time", "GPU time"), range=(0, 100)),
    noted(
        "top_user_gpu_time",
        "%",
        None,
        """
        Share of GPU time that the 5 % of users with most of it have, in % (suite helios2021).
        """,
        range=(0, 100),
    ),
    noted(
        "top_user_queue_time",
        "%",
        None,
        "Share of the waiting of GPU jobs that the 5 % of users with most of it have, in % (suite helios2021).",
        range=(0, 100),
    ),
    noted(
        "top_user_cpu_time",
        "%",
        None,
        "Share of the core time of CPU jobs that the 5 % of users with most of it have, in % (suite helios2021).",
        range=(0, 100),
    ),
    noted(
        "cpu_duration_distance",
        "%",
        "lower",
        _distance("cpu_duration_distance", "durations of CPU jobs", "CPU jobs"),
        range=(0, 100),
    ),
    noted(
        "status_distance",
        "%",
        "lower",
        """
        Largest distance of the shares of completed, cancelled and failed jobs to the published ones, in percentage
        points (suite helios2021).
        """,
        range=(0, 100),
    ),
    *(
        noted(
            f"{status}_gpu_time",
            "%",
            None,
            f"Share of GPU time that jobs have which were {status} in the end, in % (suite helios2021).",
            range=(0, 100),
        )
        for status in ("completed", "cancelled", "failed")
    ),
]
