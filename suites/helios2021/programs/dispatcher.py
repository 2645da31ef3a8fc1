"""A real dispatcher: rank 0 holds the queue and sends jobs to the other ranks, a GPU each, which sleep as long as a job
lasts. The same jobs are simulated by the suite's engine."""

from __future__ import annotations

from bisect import insort
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from suite_programs.audit import Found, most_at_once
from suite_programs.jobs import Jobs, Pools, sorted_jobs
from suite_programs.policies import rule_of
from suite_programs.simulation import PRIOR_S, Rolling, Rule, history_keys, simulate
from suite_programs.traces import read_slice

from scaleproof.rank_programs.effects import Effect, Receive, Send, Sleep
from scaleproof.rank_programs.rank_program import Clock, RankProgram
from scaleproof.spec.case import OwnCase
from scaleproof.spec.program_options import choice
from scaleproof.transports.mailbox import ANY

START, ENDED = 1, 2
"""Tags: a job for a GPU (number, s), and a job that a GPU has finished (number, from, to: s of that rank's clock)."""
SHORTEST_S, LONGEST_S = 0.03, 0.4
"""Of a job that sleeps; those of the slice last from 1 s to days."""
LOAD = 1.4
"""GPU seconds over those of all ranks in the time of submissions, so that a queue forms."""
PRELOAD = ("numba", "duckdb", "pyarrow.csv", "pyarrow.compute")
POLICIES = ("fifo", "sjf", "service", "qssf", "fewest")
CLOSE_S = 1e-3
"""A sleep may be rounded by so much."""


def scaled_jobs(count: int, gpus: int, seed: int) -> tuple[Jobs, float]:
    """So many jobs in a row of the slice, of those that fit on `gpus`: the logarithms of their durations fill the range
    of seconds that are slept, and submissions are even in the time that gives the load. And the estimate before any job
    has ended, in the same scale."""
    whole = read_slice()
    fitting = whole.chosen(whole.gpus <= gpus)
    begin = int(np.random.default_rng([7, seed]).integers(0, fitting.count - count))
    some = fitting.chosen(np.arange(begin, begin + count))
    logs = np.log(np.append(some.duration, PRIOR_S))
    least, most = logs[:-1].min(), logs[:-1].max()
    slept = SHORTEST_S * (LONGEST_S / SHORTEST_S) ** np.clip((logs - least) / max(float(most - least), 1e-9), 0, 1)
    duration = slept[:-1]
    order = np.argsort(np.argsort(some.submit, kind="stable"))
    span = float((duration * some.gpus).sum()) / gpus / LOAD
    jobs = Jobs(
        some.source, Pools(("pool",), np.array([1]), gpus), order / count * span, duration, some.gpus,
        np.zeros(count, np.int32), some.user, some.name, some.line,
    )  # fmt: skip
    return sorted_jobs(jobs), float(slept[-1])


@dataclass
class Run:
    """A job on a GPU: from when until when rank 0 had given it away, and how long the rank says that it slept, s."""

    job: int
    slot: int
    given: float
    returned: float = 0.0
    slept: float = 0.0


def found_wrong(jobs: Jobs, runs: list[Run]) -> list[Found]:
    """Checks of what ranks reported: every job ran on as many GPUs as it needs, each for its whole duration, and no GPU
    was given away before it was returned."""
    slots = {job: {run.slot for run in runs if run.job == job} for job in range(jobs.count)}
    whole = [job for job, of in slots.items() if len(of) == jobs.gpus[job]]
    early = min((run.slept - float(jobs.duration[run.job]) for run in runs), default=0.0)
    times = np.array([(run.given, run.returned) for run in runs]).reshape(-1, 2)
    most = most_at_once(np.array([run.slot for run in runs]), times, np.ones(len(runs), np.int64))
    return [
        ("no_job_lost", len(whole) == jobs.count and len(runs) == jobs.gpus.sum(), f"{len(whole)} of {jobs.count} ran"),
        ("whole_duration", early > -CLOSE_S, f"least slept beyond a duration: {early:.4f} s"),
        ("no_gpu_twice", most <= 1, f"at most {most} jobs of a GPU at once"),
    ]


@dataclass
class Queue:
    """Waiting jobs in the order of a rule, and what has ended."""

    jobs: Jobs
    rule: Rule

    def __post_init__(self) -> None:
        self.keys = history_keys(self.jobs, named=False)
        self.past: dict[int, tuple[float, int]] = {}
        self.waiting: list[tuple[float, int]] = []

    def admit(self, job: int) -> None:
        """A job is submitted."""
        key = float(self.rule.given[job]) if self.rule.given is not None else self.jobs.gpus[job] * self._estimate(job)
        insort(self.waiting, (key, job))

    def _estimate(self, job: int) -> float:
        for key in self.keys[job]:
            if key in self.past:
                total, count = self.past[key]
                return total / count
        return self.rule.rolling.prior

    def ended(self, job: int) -> None:
        """A job's duration is known."""
        for key in self.keys[job]:
            total, count = self.past.get(key, (0.0, 0))
            self.past[key] = (total + float(self.jobs.duration[job]), count + 1)

    def next(self, free: int) -> int | None:
        """The first job, if it fits."""
        if not self.waiting or self.jobs.gpus[self.waiting[0][1]] > free:
            return None
        return self.waiting.pop(0)[1]


class Dispatcher(RankProgram):
    """Options: `policy` (fifo, sjf, service, qssf, fewest), `jobs`; `slept: 1`. Each rank but the first is a GPU."""

    def __init__(self, case: OwnCase, rank: int, clock: Clock) -> None:
        super().__init__(case, rank, clock)
        policy = choice(case.options, "policy", POLICIES)
        if rank == 0:
            self.jobs, prior = scaled_jobs(int(case.options["jobs"]), case.ranks - 1, clock.seed)
            self.rule = rule_of(policy, self.jobs, clock.seed, "fungible", Rolling(prior))
            self.ends, self.runs = np.full(self.jobs.count, -1.0), list[Run]()
            self.predicted = simulate(self.jobs, self.rule, "fungible")

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        for _ in self.steps():
            yield from self._dispatch() if self.rank == 0 else self._run_jobs()

    def _run_jobs(self) -> Generator[Effect, Any, None]:
        while True:
            job, seconds = (yield Receive(0, START)).value
            if job < 0:
                return
            began = self._clock.now()
            yield Sleep(float(seconds))
            yield Send(0, np.array([job, began, self._clock.now()]), ENDED)

    def _dispatch(self) -> Generator[Effect, Any, None]:
        queue, free, coming = Queue(self.jobs, self.rule), list(range(1, self.world_size)), 0
        missing, running = self.jobs.gpus.copy(), dict[int, Run]()
        began = self._clock.now()
        while (self.ends < 0).any():
            now = self._clock.now() - began
            while coming < self.jobs.count and self.jobs.submit[coming] <= now:
                queue.admit(coming)
                coming += 1
            while (job := queue.next(len(free))) is not None:
                for slot in [free.pop() for _ in range(self.jobs.gpus[job])]:
                    running[slot] = Run(job, slot, self._clock.now() - began)
                    yield Send(slot, np.array([float(job), float(self.jobs.duration[job])]), START)
            within = max(self.jobs.submit[coming] - now, 1e-4) if coming < self.jobs.count else 60.0
            message = yield Receive(ANY, ENDED, within=float(within))
            if message is None:
                continue
            ended, run = int(message.value[0]), running[message.source]
            run.returned, run.slept = self._clock.now() - began, float(message.value[2] - message.value[1])
            self.runs.append(run)
            free.append(message.source)
            missing[ended] -= 1
            if not missing[ended]:
                self.ends[ended] = run.returned
                queue.ended(ended)
        for slot in range(1, self.world_size):
            yield Send(slot, np.array([-1.0, 0.0]), START)
        self._clock.note("dispatched_jct", float((self.ends - self.jobs.submit).mean()))
        self._clock.note("simulated_jct", float((self.predicted.end - self.jobs.submit).mean()))

    def checks(self) -> list[Found]:
        """See RankProgram."""
        return [] if self.rank else found_wrong(self.jobs, self.runs)


PROGRAM = Dispatcher
