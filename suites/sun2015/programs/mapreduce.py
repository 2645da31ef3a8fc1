"""Trains the layers with each engine in turn: the harness's all-reduce over all ranks, then jobs of Spark in one
session, on one core of this process (`master: local`) or on a standalone cluster with a worker on every rank."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from suite_programs.all_reduce import AllReduce
from suite_programs.class_archive import NewArchive
from suite_programs.cluster import scratch, start_gateway, start_master, start_worker
from suite_programs.event_log import keep, shuffled
from suite_programs.inputs import digits, pixels_in_range
from suite_programs.jvm import POLL_S, Jvm, SparkDidNotStart, archive, java, spark_home
from suite_programs.map_reduce import IN_MAPPER, JOBS, KILLED, MapReduce
from suite_programs.rbm import Task, Total, difference, reconstruction_error, train, train_serially

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.counters import read_counters
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_region
from scaleproof.spec.case import OwnCase

PRELOAD = ["suite_programs.inputs"]
ALL_REDUCE = "all_reduce"
WARM = "warm"
VICTIM = 1
"""The rank whose worker is killed."""
ARCHIVE_S = 100.0
"""The longest that writing an archive of classes may take."""
SESSION_S = 240.0
"""The longest that the other ranks wait for the driver."""


def obstacle(case: OwnCase) -> tuple[str, str] | None:
    """Why Spark cannot run here."""
    try:
        spark_home()
        java()
    except SparkDidNotStart as error:
        return str(error), "python3 -m tools.setup extras sun2015, and a Java 17 (package openjdk-17-jre-headless)"
    return None


def layer_sizes(text: str) -> tuple[int, ...]:
    """Units of each layer; ValueError says what a text lacks."""
    parts = text.split("-")
    if len(parts) < 2 or not all(part.isdigit() and int(part) for part in parts):
        raise ValueError(f"options.layers: {text!r} is no list of layers; write the units of each, as 64-100-30")
    return tuple(int(part) for part in parts)


def check_jobs(jobs: Sequence[str], ranks: int, workers: int) -> None:
    """ValueError for what cannot be run."""
    known = (ALL_REDUCE, *JOBS)
    for job in jobs:
        if job not in known:
            raise ValueError(f"options.jobs: {job!r} is none of {', '.join(known)}")
    if not 0 <= workers <= ranks:
        raise ValueError(f"options.workers: {workers} is not between 0 (none: Spark in one process) and {ranks} ranks")
    if KILLED in jobs and (workers < 2 or jobs[-1] != KILLED):
        raise ValueError(f"options.jobs: {KILLED!r} ends one of at least two workers, and is the last job")


class Launch:
    """What one rank does. Options: `layers`, as 64-100-30; `images`, `maps`, `reducers`; `decimals` of weights between
    steps (0: all); `jobs`: words of all_reduce, naive, combiner, in_mapper, killed; `workers`: on so many ranks,
    the last ones (0: Spark in one process). `iterations` are the epochs of each layer."""

    def __init__(self, context: RankContext) -> None:
        case = context.case
        assert isinstance(case, OwnCase)
        of = case.options
        self.context, self.jobs = context, str(of["jobs"]).split()
        sizes = layer_sizes(str(of["layers"]))
        self.task = Task(sizes, case.iterations, context.seed, int(of["decimals"]))
        self.exact = Task(sizes, case.iterations, context.seed)
        self.images = digits(int(of["images"]), context.seed)
        if sizes[0] != self.images.shape[1]:
            pixels = self.images.shape[1]
            raise ValueError(f"options.layers: the first layer has {sizes[0]} units, and an image {pixels} pixels")
        self.maps, self.reducers = int(of["maps"]), int(of["reducers"])
        self.workers = int(of["workers"])
        check_jobs(self.jobs, case.ranks, self.workers)
        self.found: dict[str, list[np.ndarray]] = {}
        context.check("pixels", pixels_in_range(self.images), "a pixel is not between 0 and 1")

    def run(self) -> None:
        """All engines, then what came of them. The timed region is that of the harness's transport: Spark has
        connections of its own, which are counted by job."""
        group = open_group(self.context)
        with timed_region(self.context, group):
            if ALL_REDUCE in self.jobs:
                engine = AllReduce(group, self.task, self.images)
                self._warm(engine.total)
                self._timed(ALL_REDUCE, engine.total)
        if self.context.rank == 0:
            self._drive()
            self._compare()
        elif self._has_worker:
            self._serve()

    @property
    def _has_worker(self) -> bool:
        return self.context.rank >= self.context.world_size - self.workers

    def _drive(self) -> None:
        """Rank 0: the driver, and on a cluster the master and perhaps a worker."""
        began = now()
        with ExitStack() as processes:
            address, token = self.context.address, self.context.token
            folder = scratch(self.context, "driver")
            new = NewArchive(archive())
            flags = [new.flag] if new.flag and not self.workers else []
            driver = start_gateway(address, folder, flags)
            processes.callback(driver[0].kill)
            url = "local[1]"
            if self.workers:
                master, url = start_master(address, token, scratch(self.context, "master"))
                processes.callback(master.kill)
                self.context.rendezvous.publish("master", url)
            if self._has_worker and self.workers:
                worker = start_worker(address, token, scratch(self.context, "worker"), url, 0)
                processes.callback(worker.kill)
            self._session(url, driver, began)
            if flags:
                new.settle(driver[0].end(ARCHIVE_S))
            self.context.rendezvous.publish("over", True)
        self._read_log(folder)

    def _session(self, url: str, driver: tuple[Jvm, Path], began: int) -> None:
        from pyspark.cloudpickle import register_pickle_by_value
        from suite_programs import map_reduce, rbm
        from suite_programs.session import spark_context

        for module in (map_reduce, rbm):  # Spark's processes do not have this folder
            register_pickle_by_value(module)
        with spark_context(self.context, url, self.workers, driver) as spark:
            self.context.recorder.add("start_up", 0, began, now())
            spark.setJobGroup(WARM, WARM)
            first = MapReduce(spark, IN_MAPPER, self.task, self.images, self.maps, self.reducers)
            self._warm(first.total)
            for job in self.jobs:
                if job == ALL_REDUCE:
                    continue
                spark.setJobGroup(job, job)
                killing = (str(VICTIM), str(self.context.folder / "killed"))
                engine = MapReduce(spark, job, self.task, self.images, self.maps, self.reducers, killing)
                self._timed(job, engine.total)
                self._note(f"pairs.{job}", float(engine.counter.value))

    def _warm(self, total: Total) -> None:
        """One training before the timed one: processes start and load what they use."""
        self.context.recorder.warmup = True
        self._timed(WARM, total)
        self.context.recorder.warmup = False

    def _serve(self) -> None:
        """Other ranks: a worker, until the driver has ended."""
        url = self.context.rendezvous.get("master", peer=0)
        address, token, rank = self.context.address, self.context.token, self.context.rank
        worker = start_worker(address, token, scratch(self.context, "worker"), url, rank)
        try:
            deadline = time.monotonic() + SESSION_S
            while self.context.rendezvous.find("over") is None and time.monotonic() < deadline:
                if worker.process.poll() is not None and not (self.context.folder / "killed").exists():
                    raise SparkDidNotStart(f"{worker.name} ended: {worker.cause()}")
                time.sleep(POLL_S)
        finally:
            worker.kill()

    def _timed(self, job: str, total: Total) -> None:
        """Trains, with an event for each step."""
        before = self._wire()

        def step(number: int, epoch: int, weights: Sequence[np.ndarray]) -> np.ndarray:
            self.context.at(number, job)
            with self.context.recorder.span(f"step.{job}", number):
                return total(number, epoch, weights)

        self.found[job] = train(self.task, len(self.images), step)
        self._note(f"wire.{job}", float(self._wire() - before))

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
            if job in self.found and job != WARM:
                self._note(f"bytes.{job}", float(of.written))
                self._note(f"remote.{job}", of.remote / max(of.remote + of.local, 1))
                self._note(f"lost.{job}", float(of.lost))
        kept = self.context.folder / "spark-events.json.gz"
        keep(log, kept)
        self.context.artifacts[kept.name] = kept

    def _compare(self) -> None:
        """Weights of each engine beside those of one process."""
        wanted = train_serially(self.exact, self.images)
        exact = reconstruction_error(self.images, wanted)
        for job, weights in self.found.items():
            if job != WARM:
                self._note(f"difference.{job}", difference(weights, wanted))
                self._note(f"penalty.{job}", reconstruction_error(self.images, weights) / exact - 1)


def run(context: RankContext) -> None:
    """See Launch."""
    Launch(context).run()
