"""Policies by name: what a queue is ordered by."""

from __future__ import annotations

import numpy as np
from suite_programs import engine
from suite_programs.forest import QUEUE_TREES, Trees, predictions
from suite_programs.jobs import Jobs
from suite_programs.simulation import ROLLING, Rolling, Rule, simulate

from scaleproof.spec.program_options import choice

POLICIES = {
    "fifo": "time of submission",
    "sjf": "true duration",
    "service": "true duration times GPUs",
    "fewest": "GPUs: a baseline of ours that knows no duration",
    "srtf": "true time that is left; running jobs are stopped (the artifact's goes with `queue: backfill`)",
    "qssf": "GPUs times the rolling estimate, from jobs that have ended in this schedule",
    "qssf_lightgbm": "the same with a share of a LightGBM prediction mixed in, from jobs that have ended under FIFO: "
    "some of them end later under QSSF, so that a model may know them too early",
    "shuffled": "control: true service with the durations of other jobs",
    "leaky": "control: the rolling estimate from jobs when they are submitted, before they have ended",
}


def rule_of(
    policy: str,
    jobs: Jobs,
    seed: int,
    placement: str = "consolidate",
    rolling: Rolling = ROLLING,
    trees: Trees = QUEUE_TREES,
) -> Rule:
    """The rule of a policy for these jobs. `trees`: of the prediction by LightGBM."""
    if policy == "qssf_lightgbm":
        ended = simulate(jobs, Rule(engine.GIVEN, jobs.submit), placement).end
        return Rule(engine.MIXED, predictions(jobs, ended, seed, trees), rolling=rolling)
    random = np.random.default_rng([5, seed])
    rules = {
        "fifo": lambda: Rule(engine.GIVEN, jobs.submit),
        "sjf": lambda: Rule(engine.GIVEN, jobs.duration),
        "service": lambda: Rule(engine.GIVEN, jobs.duration * jobs.gpus),
        "fewest": lambda: Rule(engine.GIVEN, jobs.gpus),
        "srtf": lambda: Rule(engine.REMAINING),
        "qssf": lambda: Rule(engine.ROLLING, rolling=rolling),
        "shuffled": lambda: Rule(engine.GIVEN, random.permutation(jobs.duration) * jobs.gpus),
        "leaky": lambda: Rule(engine.ROLLING, leaky=True, rolling=rolling),
    }
    return rules[choice({"policy": policy}, "policy", POLICIES)]()
