"""How far the jobs of a case are from the published marginals that they were generated from, or that describe them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from suite_programs.generator import published
from suite_programs.jobs import Jobs
from suite_programs.philly import read_philly
from suite_programs.sources import CLUSTERS, generated_jobs, jobs_of, missing, source_text, trace_files

from scaleproof.rank_programs.effects import Compute, Effect
from scaleproof.rank_programs.rank_program import RankProgram

obstacle = missing
TOP_USERS = 0.05
GPU_JOBS = {"venus": 125_303, "earth": 427_148, "saturn": 698_896, "uranus": 329_117}
"""Of the six months (published.yaml, summary): the weights of the clusters in all of Helios."""


def cumulative(values: np.ndarray, weights: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Share of the weight of values up to each point (points,)."""
    order = np.argsort(values)
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(sums[np.searchsorted(values[order], at, side="right")] / sums[-1])


def top_share(users: np.ndarray, amounts: np.ndarray) -> float:
    """Share of an amount that the 5 % of users with most of it have, in %."""
    sums = np.sort(np.bincount(users, weights=amounts))[::-1]
    sums = sums[sums > 0]
    return 100 * float(sums[: max(1, round(TOP_USERS * len(sums)))].sum() / sums.sum())


def distances(jobs: Jobs, cluster: str) -> dict[str, float]:
    """Largest distance to each published distribution, in percentage points of jobs or of GPU time; shares in %."""
    ones, time = np.ones(jobs.count), jobs.duration * jobs.gpus
    found = {"top_user_gpu_time": top_share(jobs.user, time)}
    for name, quantity, values, weights in (
        ("duration_distance", "duration", jobs.duration, ones),
        ("gpus_distance", "gpus", jobs.gpus, ones),
        ("gpu_time_distance", "gpu_time", jobs.gpus, time),
    )[: 1 if cluster == "philly" else 3]:  # Philly's durations alone were published
        at, share = published(cluster, quantity)
        found[name] = 100 * float(np.abs(cumulative(values, weights, at) - share).max())
    return found


def distance_of_all(clusters: dict[str, Jobs]) -> float:
    """Largest distance of the durations of all clusters together to Fig. 1a, in percentage points."""
    values = np.concatenate([jobs.duration for jobs in clusters.values()])
    weights = np.concatenate([np.full(jobs.count, GPU_JOBS[name] / jobs.count) for name, jobs in clusters.items()])
    at, share = published("helios_all", "duration")
    return 100 * float(np.abs(cumulative(values, weights, at) - share).max())


class MarginalCheck(RankProgram):
    """Options: as of scheduling.py, without a policy."""

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        for _ in self.steps():
            found = yield Compute(0.0, self._distances, "distances")
            for name, value in found.items():
                self._clock.note(name, value)

    def _distances(self) -> dict[str, float]:
        of, seed = self.case.options, self._clock.seed
        trace, cluster = str(of["trace"]), str(of["cluster"])
        self._source = source_text(trace, cluster)
        if cluster == "helios_all":
            every = {name: generated_jobs(self.case, name, int(of["jobs"]), seed) for name in CLUSTERS}
            return {"duration_distance": distance_of_all(every)}
        if trace == "philly":  # Fig. 1a is about all of its VCs
            return distances(read_philly(trace_files(trace, cluster)[0], every_vc=True), cluster)
        return distances(jobs_of(self.case, seed), cluster)

    def checks(self) -> list[tuple[str, bool, str]]:
        """See RankProgram."""
        return [("source", True, self._source)]


PROGRAM = MarginalCheck
