"""The same step over an all-reduce: each rank adds up its own images, and a collective adds up the ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from suite_programs.rbm import Task, gradient_of

from scaleproof.transports.contract import Collectives


class AllReduce:
    """An engine for `rbm.train`. Each rank has its share of the images, in their order: as many, but for one."""

    def __init__(self, group: Collectives, task: Task, images: np.ndarray) -> None:
        self.group, self.task = group, task
        self.numbers = np.array_split(np.arange(len(images)), group.world_size)[group.rank]
        self.images = images[self.numbers]
        most = max(below * above for below, above in zip(task.sizes, task.sizes[1:], strict=False))
        self.memory = group.allocate(most * 8).view(np.float64)

    def total(self, step: int, epoch: int, weights: Sequence[np.ndarray]) -> np.ndarray:
        """See rbm.Total."""
        buffer = self.memory[: weights[-1].size]
        buffer[:] = gradient_of(self.task, self.images, self.numbers.tolist(), weights, epoch).ravel()
        self.group.all_reduce(buffer).wait()
        return buffer
