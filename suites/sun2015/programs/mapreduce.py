"""Trains the layers with each engine in turn: the harness's all-reduce over all ranks, then jobs of Spark in one
session, on one core of this process (`workers: 0`) or on a standalone cluster with workers on the last ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from suite_programs.all_reduce import AllReduce
from suite_programs.archive_writer import ensure
from suite_programs.cluster import scratch, start_gateway, start_master, start_worker
from suite_programs.event_log import keep, shuffled
from suite_programs.inputs import digits, pixels_in_range
from suite_programs.jvm import SparkDidNotStart, java, pause, spark_home
from suite_programs.map_reduce import FORMS, KILLED, MapReduce
from suite_programs.options import ALL_REDUCE, options_of
from suite_programs.rbm import Task, Total, difference, train, train_serially
from suite_programs.session import spark_context

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.counters import read_counters
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_region
from scaleproof.spec.case import OwnCase

PRELOAD = ["suite_programs.inputs"]
WARM = "warm"
VICTIM = 1
"""The rank whose worker is killed."""
AGAIN = 4
"""How often the all-reduce trains once more: its steps take milliseconds, and a median of three would be noise."""
_ORDER = 4
"""Random stream of the order of jobs."""


def obstacle(case: OwnCase) -> tuple[str, str] | None:
    """Why the case cannot run here."""
    try:
        options_of(case)
    except ValueError as error:
        return str(error), "correct it in suite.yaml"
    try:
        spark_home()
        java()
    except SparkDidNotStart as error:
        return str(error), "python3 -m tools.setup extras sun2015, and a Java 17 (package openjdk-17-jre-headless)"
    return None


def order_of(jobs: Sequence[str], seed: int) -> list[str]:
    """The jobs of Spark in an order of the launch's own, so that none is always the first; `killed` stays the last."""
    forms = [job for job in jobs if job in FORMS]
    drawn = np.random.default_rng([seed, _ORDER]).permutation(len(forms))
    return [*(forms[number] for number in drawn), *(job for job in jobs if job == KILLED)]


class Launch:
    """What one rank does. Options: `layers`, as 64-100-30; `images`, `maps`, `reducers`; `decimals` of weights between
    steps (0: all); `jobs`: words of all_reduce, naive, combiner, in_mapper, killed; `workers`: on so many ranks,
    the last ones (0: Spark in one process). `iterations` are the epochs of each layer, after `warmup` that are not
    timed; job `killed` has one epoch, and no other before it."""

    def __init__(self, context: RankContext) -> None:
        case = context.case
        assert isinstance(case, OwnCase)
        self.context, self.options = context, options_of(case)
        self.task = Task(self.options.sizes, case.iterations, context.seed, self.options.decimals)
        self.warmup = case.warmup
        self.images = digits(self.options.images, context.seed)
        units, pixels = self.options.sizes[0], self.images.shape[1]
        if units != pixels:
            raise ValueError(f"options.layers: the first layer has {units} units, and an image {pixels} pixels")
        self.found: dict[str, list[np.ndarray]] = {}
        context.check("pixels", pixels_in_range(self.images), "a pixel is not between 0 and 1")

    def run(self) -> None:
        """All engines, then what came of them. The timed region is that of the harness's transport: Spark has
        connections of its own, which are counted by job."""
        group = open_group(self.context)
        with timed_region(self.context, group):
            if ALL_REDUCE in self.options.jobs:
                engine = AllReduce(group, self.task, self.images)
                self._warm(ALL_REDUCE, engine.total)
                self._timed(ALL_REDUCE, engine.total)
                for _ in range(AGAIN):
                    self._train(ALL_REDUCE, engine.total, self.task)
        if self.context.rank == 0:
            self._drive()
            self._compare()
        elif self._has_worker:
            self._serve()

    @property
    def _has_worker(self) -> bool:
        return self.context.rank >= self.context.world_size - self.options.workers

    def _drive(self) -> None:
        """Rank 0: the driver, and on a cluster the master and perhaps a worker."""
        address, token, workers = self.context.address, self.context.token, self.options.workers
        self._note("class_archive", float(ensure(address, scratch(self.context, "archive"))))
        began, folder = now(), scratch(self.context, "driver")
        with ExitStack() as processes:
            driver = start_gateway(address, folder)
            processes.callback(driver[0].kill)
            url = "local[1]"
            if workers:
                master, url = start_master(address, token, scratch(self.context, "master"))
                processes.callback(master.kill)
                self.context.rendezvous.publish("master", url)
            if self._has_worker and workers:
                worker = start_worker(address, token, scratch(self.context, "worker"), url, 0)
                processes.callback(worker.kill)
            with spark_context(address, token, folder, url, workers, driver) as spark:
                self.context.recorder.add("start_up", 0, began, now())
                for job in order_of(self.options.jobs, self.context.seed):
                    self._job(spark, job)
            self.context.rendezvous.publish("over", True)
        self._read_log(folder)

    def _job(self, spark: Any, job: str) -> None:
        """One form of the job: epochs that are not timed, then the timed ones."""
        if job != KILLED:
            spark.setJobGroup(WARM, WARM)
            self._warm(job, self._engine(spark, job).total)
        spark.setJobGroup(job, job)
        engine = self._engine(spark, job)
        self._timed(job, engine.total)
        self._note(f"pairs.{job}", float(engine.counter.value))

    def _engine(self, spark: Any, job: str) -> MapReduce:
        of, killing = self.options, (str(VICTIM), str(self._marker))
        return MapReduce(spark, job, self.task, self.images, of.maps, of.reducers, killing)

    @property
    def _marker(self) -> Path:
        """A file that says that the worker has been killed."""
        return self.context.folder / "killed"

    def _serve(self) -> None:
        """Other ranks: a worker, until the driver has ended. The launch's deadline ends a rank that waits too long."""
        url = self.context.rendezvous.get("master", math.inf, peer=0)
        address, token, rank = self.context.address, self.context.token, self.context.rank
        worker = start_worker(address, token, scratch(self.context, "worker"), url, rank)
        try:
            while self.context.rendezvous.find("over") is None:
                if worker.process.poll() is not None and not self._marker.exists():
                    raise SparkDidNotStart(f"{worker.name} ended: {worker.cause()}")
                pause()
        finally:
            worker.kill()

    def _task_of(self, job: str) -> Task:
        """What a job trains. One epoch is enough to lose a worker in."""
        return replace(self.task, epochs=1) if job == KILLED else self.task

    def _warm(self, job: str, total: Total) -> None:
        """Epochs before the timed ones: processes start and load what they use."""
        self.context.recorder.warmup = True
        self._train(job, total, replace(self.task, epochs=self.warmup))
        self.context.recorder.warmup = False

    def _timed(self, job: str, total: Total) -> None:
        """Trains, and keeps the weights and the bytes on the links."""
        before = self._wire()
        self.found[job] = self._train(job, total, self._task_of(job))
        self._note(f"wire.{job}", float(self._wire() - before))

    def _train(self, job: str, total: Total, task: Task) -> list[np.ndarray]:
        """Trains, with an event for each step."""

        def step(number: int, epoch: int, weights: Sequence[np.ndarray]) -> np.ndarray:
            self.context.at(number, job)
            with self.context.recorder.span(f"step.{job}", number):
                return total(number, epoch, weights)

        return train(task, len(self.images), step)

    def _wire(self) -> int:
        """Bytes that this rank's interfaces have sent and received so far, without loopback."""
        counters = read_counters()
        return sum(of["tx_bytes"] + of["rx_bytes"] for name, of in counters.items() if name != "lo")

    def _note(self, event: str, value: float) -> None:
        moment = now()
        self.context.recorder.add(event, 0, moment, moment, 0, value)

    def _read_log(self, folder: Path) -> None:
        """Spark's own counts, from its event log, which stays with the record."""
        (log,) = [path for path in folder.iterdir() if path.name.startswith(("app-", "local-")) and path.is_file()]
        for job, of in shuffled(log).items():
            if job in self.found:
                self._note(f"bytes.{job}", float(of.written))
                self._note(f"remote.{job}", of.remote / max(of.remote + of.local, 1))
                self._note(f"lost.{job}", float(of.lost))
        kept = self.context.folder / "spark-events.json.gz"
        keep(log, kept)
        self.context.artifacts[kept.name] = kept

    def _compare(self) -> None:
        """Weights of each engine beside those of one process with all decimals."""
        wanted: dict[Task, list[np.ndarray]] = {}
        for job, weights in self.found.items():
            task = replace(self._task_of(job), decimals=0)
            if task not in wanted:
                wanted[task] = train_serially(task, self.images)
            self._note(f"difference.{job}", difference(weights, wanted[task]))


def run(context: RankContext) -> None:
    """See Launch."""
    Launch(context).run()
