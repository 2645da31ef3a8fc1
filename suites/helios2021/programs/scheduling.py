"""Simulates a cluster's queue under a policy. Time is that of the simulation: the launch itself takes none."""

from __future__ import annotations

from collections.abc import Generator
from importlib.util import find_spec
from typing import Any

import numpy as np
from suite_programs import forest
from suite_programs.audit import audit
from suite_programs.jobs import Jobs
from suite_programs.options import rolling_of, trees_of
from suite_programs.policies import rule_of
from suite_programs.simulation import PLACEMENTS, Schedule, simulate
from suite_programs.sources import jobs_of, missing, source_text

from scaleproof.rank_programs.effects import Compute, Effect
from scaleproof.rank_programs.rank_program import RankProgram
from scaleproof.spec.case import AnyCase
from scaleproof.spec.program_options import choice

QUEUES = ("blocking", "backfill")
"""blocking: nobody passes the first that does not fit; backfill: whoever fits starts, in order of priority (SRTF of the
artifact does so)."""
MOST_RECORDED = 50_000
"""Jobs up to which who had which GPUs when is recorded and checked in every launch."""


def obstacle(case: AnyCase) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py."""
    if case.value("options.policy") == "qssf_lightgbm" and find_spec("lightgbm") is None:
        return forest.MISSING
    return missing(case)


def results(jobs: Jobs, made: Schedule) -> dict[str, float]:
    """The numbers of a schedule, times in s."""
    jct = made.end - jobs.submit
    queue = jct - jobs.duration - made.added
    known = made.guess > 0
    error = np.abs(np.log2(made.guess[known] / jobs.duration[known]))
    return {
        "avg_jct": float(jct.mean()),
        "avg_queue": float(queue.mean()),
        "queued_jobs": float((queue > 0.5).sum()),
        "queue_share": 100 * float(queue.sum() / jct.sum()),
        "blocking_share": made.blocked / made.waited if made.waited else 0.0,
        "stopped_jobs": float(made.stopped),
        "estimate_error": float(np.median(error)) if len(error) else 0.0,
        "load": jobs.load,
        "jobs": float(jobs.count),
    }


class Scheduling(RankProgram):
    """Options: `trace` (slice, generated, helios, philly), `cluster`, `policy`, `placement`, `queue`; of a generated
    cluster `jobs`, `nodes`, `vcs`, `load`, `equal_s`, `equal_gpus`, and `names` (known, withheld); of a trace `vc`. Of
    QSSF `decay` and `prior_count`, with LightGBM also `share`, `leaves` and `rate`: see Rolling and Trees."""

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        for _ in self.steps():
            found = yield Compute(0.0, self._schedule, "schedule")
            for name, value in found.items():
                self._clock.note(name, value)

    def _schedule(self) -> dict[str, float]:
        of, seed = self.case.options, self._clock.seed
        placement, queue = choice(of, "placement", PLACEMENTS), choice(of, "queue", QUEUES)
        jobs = jobs_of(self.case, seed)
        rolling, trees = rolling_of(of), trees_of(of, forest.QUEUE_TREES)
        rule = rule_of(str(of["policy"]), jobs, seed, placement, rolling, trees)
        passing = queue == "backfill"
        made = simulate(jobs, rule, placement, passing, recorded=jobs.count <= MOST_RECORDED)
        text = f"{source_text(str(of['trace']), str(of['cluster']))}, {jobs.count} jobs"
        if jobs.left_out:
            text += f", {jobs.left_out} of VCs without nodes left out"
        self._found = [*audit(jobs, made, passing), ("source", True, text)]
        return results(jobs, made)

    def checks(self) -> list[tuple[str, bool, str]]:
        """See RankProgram."""
        return self._found


PROGRAM = Scheduling
