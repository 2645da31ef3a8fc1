"""Nodes in use every 10 minutes of a trace of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from suite_programs.helios import ends_after_its_start, merged_vcs
from suite_programs.jobs import GPUS_PER_NODE
from suite_programs.node_series import counted
from suite_programs.packing import busy_times, united
from suite_programs.philly import machine_times
from suite_programs.sources import WINDOW, trace_files
from suite_programs.traces import read_columns

from scaleproof.spec.errors import SpecError

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Days:
    """When a series begins and ends, and how many days at its end are the test."""

    first: str
    last: str
    test: int


DAYS = {
    "helios": Days("2020-04-01", "2020-09-21T23:59:59", 21),
    "philly": Days("2017-10-03", "2017-12-14T23:59:59", 14),
}
"""Figs. 14 and 15: 1 to 21 September 2020, and 1 to 14 December 2017 (CES_Helios.py and CES_Philly.py)."""


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Used nodes (steps,), of how many, from when on; `test`: days at the end; `above`: steps at which more were in use
    than there are, which have all of them."""

    used: np.ndarray
    total: int
    first: np.datetime64
    test: int
    above: int = 0


@lru_cache(maxsize=4)
def used_in_trace(trace: str, cluster: str) -> NodeUse:
    """Nodes of GPU jobs as they ran. Philly: distinct machines of its log, of all that it names in these days. Helios:
    its log has no machines, so jobs are packed (packing.py), of the most nodes of any day that the paper evaluates."""
    log, capacity = trace_files(trace, cluster)
    days = DAYS[trace]
    if trace == "philly":
        machines, begins, ends = machine_times(log)
        inside = (begins <= _seconds(days.last)) & (ends >= _seconds(days.first))
        total = len(np.unique(machines[inside]))
        begins, ends = united(machines, begins, ends)
    else:
        begins, ends = _packed(log, cluster)
        total = _total(capacity) if capacity is not None else 0
    if not len(begins):
        raise SpecError(f"{log}: has no jobs with GPUs")
    first = max(_seconds(days.first), float(begins.min()) // DAY_S * DAY_S)
    used = counted(begins, ends, np.ones(len(begins), np.int64), first, _seconds(days.last))
    total = total or int(used.max())
    above = int((used > total).sum())
    return NodeUse(np.minimum(used, total), total, np.datetime64(int(first), "s"), days.test, above)


def _packed(log: Path, cluster: str) -> tuple[np.ndarray, np.ndarray]:
    columns = read_columns(log)
    ends_after_its_start(columns)
    gpus = columns.whole("gpu_num")
    chosen = gpus > 0
    vc = np.unique(merged_vcs(columns, cluster)[chosen], return_inverse=True)[1]
    begins, ends = (columns.seconds(name)[chosen] for name in ("start_time", "end_time"))
    return busy_times(begins, ends, gpus[chosen], columns.whole("node_num")[chosen], vc, GPUS_PER_NODE)


def _total(capacity: Path) -> int:
    columns = read_columns(capacity)
    days = columns.texts("date").astype(str)
    return int(columns.whole("total")[(days >= WINDOW[0]) & (days <= WINDOW[1])].max(initial=0)) // GPUS_PER_NODE


def _seconds(moment: str) -> float:
    return float(np.datetime64(moment, "s").astype(float))
