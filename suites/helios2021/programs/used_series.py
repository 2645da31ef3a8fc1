"""Nodes in use every 10 minutes of a trace of the user's."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from suite_programs.jobs import GPUS_PER_NODE
from suite_programs.node_series import counted
from suite_programs.sources import WINDOW, trace_files
from suite_programs.traces import read_columns, read_philly

SERIES_END = {"helios": "2020-09-21T23:59:59", "philly": "2017-12-01T00:00:00"}
"""Fig. 14 ends on 21 September 2020; Philly's evaluated jobs were submitted until the end of November 2017."""


@lru_cache(maxsize=4)
def used_in_trace(trace: str, cluster: str) -> tuple[np.ndarray, int]:
    """Used nodes (steps,), and how many there are. Helios: of GPU jobs, as they ran. Philly: of its jobs, as if each
    had run from its submission, on whole nodes' worth of its GPUs."""
    log, capacity = trace_files(trace, cluster)
    end = float(np.datetime64(SERIES_END[trace], "s").astype(float))
    if trace == "philly":
        jobs = read_philly(log, capacity)
        nodes = -(-jobs.gpus // GPUS_PER_NODE)
        used = counted(jobs.submit, jobs.submit + jobs.duration, nodes, float(jobs.submit[0]), end)
        return np.minimum(used, int(jobs.pools.nodes.sum())), int(jobs.pools.nodes.sum())
    columns = read_columns(log)
    gpus = columns.numbers("gpu_num") > 0
    begins, ends = (columns.seconds(name)[gpus] for name in ("start_time", "end_time"))
    nodes = columns.numbers("node_num")[gpus].astype(np.int64)
    used = counted(begins, ends, nodes, float(begins.min()), end)
    total = int(used.max())
    if capacity is not None:
        stated = read_columns(capacity)
        days = stated.texts("date").astype(str)
        total = int(stated.numbers("total")[(days >= WINDOW[0]) & (days <= WINDOW[1])].max()) // GPUS_PER_NODE
    return np.minimum(used, total), total
