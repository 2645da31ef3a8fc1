"""Jobs of a trace as columns, the virtual clusters (VCs) that run them, and what makes a trace unusable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scaleproof.spec.errors import SpecError

GPUS_PER_NODE = 8
NO_NAME = -1
"""The name of a job whose trace withholds names."""


@dataclass(frozen=True, slots=True)
class Pools:
    """VCs: names, nodes of each, and GPUs of a node. A VC's nodes are its own."""

    names: tuple[str, ...]
    nodes: np.ndarray
    per_node: int = GPUS_PER_NODE

    @property
    def gpus(self) -> int:
        """Of all VCs."""
        return int(self.nodes.sum()) * self.per_node


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs in order of submission, a column each of shape (jobs,): times in s from the trace's begin. `vc` counts in
    `pools`; `user` and `name` are numbers of equal texts. `line`: of the file, 0 where there is none. `left_out`: jobs
    of VCs without nodes, which are not among them."""

    source: str
    pools: Pools
    submit: np.ndarray
    duration: np.ndarray
    gpus: np.ndarray
    vc: np.ndarray
    user: np.ndarray
    name: np.ndarray
    line: np.ndarray
    left_out: int = 0

    @property
    def count(self) -> int:
        """How many jobs there are."""
        return len(self.submit)

    @property
    def load(self) -> float:
        """GPU seconds of all jobs over those that the cluster has from the first submission to the last."""
        span = float(self.submit[-1] - self.submit[0]) if self.count > 1 else 0.0
        return float((self.duration * self.gpus).sum()) / (span * self.pools.gpus) if span else 0.0

    def chosen(self, mask: np.ndarray) -> Jobs:
        """Some of the jobs."""
        columns = ("submit", "duration", "gpus", "vc", "user", "name", "line")
        return replace(self, **{column: getattr(self, column)[mask] for column in columns})

    def of_vc(self, name: str) -> Jobs:
        """The jobs of one VC, and it alone. SpecError names the nearest where there is none."""
        if name not in self.pools.names:
            raise SpecError(f"{self.source}: no VC {name!r}; known: {', '.join(self.pools.names)}")
        number = self.pools.names.index(name)
        some = self.chosen(self.vc == number)
        pools = Pools((name,), self.pools.nodes[[number]], self.pools.per_node)
        return replace(some, pools=pools, vc=np.zeros(some.count, np.int32))


def numbered(texts: Sequence[str] | np.ndarray) -> np.ndarray:
    """Equal texts get equal numbers (texts,)."""
    return np.unique(np.asarray(texts, str), return_inverse=True)[1].astype(np.int32)


def sorted_jobs(jobs: Jobs) -> Jobs:
    """In order of submission; equal times stay in the order of the file."""
    return jobs.chosen(np.argsort(jobs.submit, kind="stable"))


def checked(jobs: Jobs, ordered: bool, place: str = "{source}:{line}") -> Jobs:
    """The jobs, sorted, of 1 s at least. SpecError with the `place` in the file for the first job that no cluster could
    run. `ordered`: the file promises times that never run back."""
    if not jobs.count:
        raise SpecError(f"{jobs.source}: has no jobs with GPUs")
    room = jobs.pools.nodes[jobs.vc] * jobs.pools.per_node
    back = np.zeros(jobs.count, bool)
    back[1:] = (np.diff(jobs.submit) < 0) & ordered
    for wrong, text in (
        (~np.isfinite(jobs.submit), "submit_time is no time"),
        (back, "submit_time runs back: it is before that of the job above"),
        (~(np.isfinite(jobs.duration) & (jobs.duration >= 0)), "duration is not 0 s or more: times run back"),
        (jobs.gpus < 1, "a job needs 1 GPU or more"),
        (jobs.gpus > room, "more GPUs than its VC has"),
    ):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            at = place.format(source=jobs.source, line=jobs.line[first])
            raise SpecError(f"{at}: {text}{_facts(jobs, first, room)}")
    return sorted_jobs(replace(jobs, duration=np.maximum(jobs.duration, 1.0)))


def _facts(jobs: Jobs, job: int, room: np.ndarray) -> str:
    if jobs.gpus[job] > room[job]:
        return f": {jobs.gpus[job]} of {room[job]} in {jobs.pools.names[jobs.vc[job]]!r}"
    return ""
