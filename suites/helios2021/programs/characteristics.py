"""How jobs of a trace ended, who had the GPU time, the core time and the waiting, and how long CPU jobs ran."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from suite_programs.generator import published
from suite_programs.jobs import numbered
from suite_programs.marginal_check import cumulative, top_share
from suite_programs.philly import job_table
from suite_programs.sources import CLUSTERS, missing, source_text, trace_files
from suite_programs.traces import read_columns

from scaleproof.rank_programs.effects import Compute, Effect
from scaleproof.rank_programs.rank_program import RankProgram

obstacle = missing
STATUSES = {
    "completed": ("COMPLETED", "Pass"),
    "cancelled": ("CANCELLED", "CANCELED", "Killed"),
    "failed": ("FAILED", "TIMEOUT", "NODE_FAIL", "Failed"),
}
"""As the paper counts them: time-outs and failures of nodes are failures."""


@dataclass(frozen=True, slots=True)
class Log:
    """Columns of a log (jobs,): GPUs, CPU cores, s that a job ran and waited."""

    user: np.ndarray
    status: np.ndarray
    gpus: np.ndarray
    cpus: np.ndarray
    duration: np.ndarray
    queue: np.ndarray


def helios_log(path: Path) -> Log:
    """All jobs of a `cluster_log.csv`, without GPUs, too."""
    columns = read_columns(path)
    names = ("gpu_num", "cpu_num", "duration", "queue")
    gpus, cpus, duration, queue = (columns.numbers(name) for name in names)
    return Log(columns.texts("user").astype(str), columns.texts("state").astype(str), gpus, cpus, duration, queue)


def philly_log(path: Path) -> Log:
    """All jobs that ran; their waits and cores are not in it: 0."""
    found = job_table(path)
    none = np.zeros(len(found["gpus"]))
    return Log(found["user"], found["status"], found["gpus"], none, found["duration"], none)


def joined(logs: list[Log]) -> Log:
    """Several clusters together."""
    return Log(*(np.concatenate([getattr(log, name) for log in logs]) for name in Log.__slots__))


def shares_of_status(log: Log, weights: np.ndarray) -> dict[str, float]:
    """Share of the weight of each status, in %."""
    total = float(weights.sum())
    return {name: 100 * float(weights[np.isin(log.status, of)].sum()) / total for name, of in STATUSES.items()}


def found_in(log: Log, cluster: str, gpus: int) -> dict[str, float]:
    """What was published of a log. `gpus`: of the jobs whose statuses are compared."""
    on_gpus, users = log.gpus > 0, numbered(log.user)
    time = log.duration * log.gpus
    found = {f"{name}_gpu_time": share for name, share in shares_of_status(log, time).items()}
    found["top_user_gpu_time"] = top_share(users, time)
    if log.queue.any():
        found["top_user_queue_time"] = top_share(users, log.queue * on_gpus)
    if log.cpus.any() and cluster in CLUSTERS:
        found["top_user_cpu_time"] = top_share(users, log.duration * log.cpus * ~on_gpus)
        at, share = published(cluster, "cpu_duration")
        ran = log.duration[~on_gpus]
        found["cpu_duration_distance"] = 100 * float(np.abs(cumulative(ran, np.ones(len(ran)), at) - share).max())
    if (log.gpus == gpus).any() and gpus:
        shares = shares_of_status(log, (log.gpus == gpus).astype(float))
        stated = 100 * published("helios_all", f"status_{gpus}")[1]
        found["status_distance"] = float(np.abs(np.array(list(shares.values())) - stated).max())
    return found


class Characteristics(RankProgram):
    """Options: `trace` (helios, philly), `cluster` (one of Helios, or helios_all), `gpus` (0: all)."""

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        for _ in self.steps():
            found = yield Compute(0.0, self._found, "characteristics")
            for name, value in found.items():
                self._clock.note(name, value)

    def _found(self) -> dict[str, float]:
        of = self.case.options
        trace, cluster = str(of["trace"]), str(of["cluster"])
        names = CLUSTERS if cluster == "helios_all" else (cluster,)
        self._source = "; ".join(source_text(trace, name) for name in names)
        paths = [trace_files(trace, name)[0] for name in names]
        log = philly_log(paths[0]) if trace == "philly" else joined([helios_log(path) for path in paths])
        return found_in(log, cluster, int(of["gpus"]))

    def checks(self) -> list[tuple[str, bool, str]]:
        """See RankProgram."""
        return [("source", True, self._source)]


PROGRAM = Characteristics
