"""The step as a job of Spark, in three forms: a pair of weight and delta for each weight and image, added up by the
reducers (the authors' form), by a combiner in the mapper first, or in the mapper before there are pairs."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from suite_programs.rbm import Task, gradient_of

Pair = tuple[int, float]
Numbered = tuple[int, np.ndarray]
NAIVE, COMBINER, IN_MAPPER, KILLED = "naive", "combiner", "in_mapper", "killed"
FORMS = (NAIVE, COMBINER, IN_MAPPER)
JOBS = (*FORMS, KILLED)
SIGKILL = 9
PLACE = "SUN2015_RANK"
"""Environment of a worker's processes: its rank."""


def identity(key: int) -> int:
    """Pairs go to reducer key mod reducers."""
    return key


def pairs_of_images(images: Iterable[Numbered], task: Task, weights: Any, epoch: int, counter: Any) -> Iterator[Pair]:
    """RBMMapper: a pair for each weight of each image."""
    for number, image in images:
        delta = gradient_of(task, image[None], [number], weights.value, epoch).ravel()
        counter.add(delta.size)
        yield from enumerate(delta.tolist())


def pairs_of_mapper(images: Iterable[Numbered], task: Task, weights: Any, epoch: int, counter: Any) -> Iterator[Pair]:
    """A pair for each weight of the mapper: images are added up before."""
    mine = list(images)
    if not mine:
        return
    numbers, pixels = [number for number, _ in mine], np.array([image for _, image in mine])
    delta = gradient_of(task, pixels, numbers, weights.value, epoch).ravel()
    counter.add(delta.size)
    yield from enumerate(delta.tolist())


def added_up(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """RBMReducer: the sum of each weight."""
    sums: dict[int, float] = {}
    for key, value in pairs:
        sums[key] = sums.get(key, 0.0) + value
    yield from sums.items()


def added_up_or_killed(pairs: Iterable[Pair], victim: str, marker: str) -> Iterator[Pair]:
    """The same; the first reducer on one rank ends the worker there and its executor, in the middle of the job."""
    if os.environ.get(PLACE) == victim and not Path(marker).exists():
        Path(marker).touch()
        executor = _parent(os.getppid())
        worker = _parent(executor)
        os.kill(worker, SIGKILL)
        os.kill(executor, SIGKILL)
    return added_up(pairs)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


class MapReduce:
    """An engine for `rbm.train`. `counter`: an accumulator of the pairs that mappers have made. `killing`: for job
    `killed`, the rank whose worker dies, and a file that says that it has."""

    def __init__(
        self,
        spark: Any,
        job: str,
        task: Task,
        images: np.ndarray,
        maps: int,
        reducers: int,
        killing: tuple[str, str] = ("", ""),
    ) -> None:
        self.spark, self.job, self.task, self.reducers = spark, job, task, reducers
        self.counter = spark.accumulator(0)
        self.images = spark.parallelize(list(enumerate(images)), maps)
        self.killing = killing

    def total(self, step: int, epoch: int, weights: Sequence[np.ndarray]) -> np.ndarray:
        """See rbm.Total."""
        told = self.spark.broadcast(list(weights))
        mapped = self.images.mapPartitions(self._mapper(told, epoch))
        if self.job == COMBINER:
            reduced = mapped.reduceByKey(operator.add, self.reducers, identity)
        else:
            reduced = mapped.partitionBy(self.reducers, identity).mapPartitions(self._reducer())
        result = np.zeros(weights[-1].size)
        keys, values = zip(*reduced.collect(), strict=True)
        result[list(keys)] = values
        told.destroy()
        return result

    def _mapper(self, told: Any, epoch: int) -> Callable[[Iterable[Numbered]], Iterator[Pair]]:
        task, counter = self.task, self.counter
        made = pairs_of_mapper if self.job == IN_MAPPER else pairs_of_images
        return lambda images: made(images, task, told, epoch, counter)

    def _reducer(self) -> Callable[[Iterable[Pair]], Iterator[Pair]]:
        victim, marker = self.killing
        return (lambda pairs: added_up_or_killed(pairs, victim, marker)) if self.job == KILLED else added_up
