"""An asynchronous parameter server: rank 0 serves and is no worker, and each worker takes its own number of steps."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import ANY, Charge, Compute, Effect, Receive, Send
from scaleproof.rank_programs.rank_program import RankProgram

GRADIENT, PARAMETERS, LAST = 0, 1, 2
SERVER = 0


class AsyncServer(RankProgram):
    """A worker computes for `compute_ms` times its rank, pushes a gradient, and waits for the parameters. Gradients are
    whole numbers, so that their sum does not depend on the order in which they arrive."""

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        self.parameters = np.zeros(self.case.sizes[0] // 4, np.float32)
        return self._serve_workers() if self.rank == SERVER else self._work()

    def _serve_workers(self) -> Generator[Effect, Any, None]:
        left = sum(self._steps_of(worker) for worker in range(1, self.world_size))
        for _ in self.steps(left - self.case.warmup):
            gradient = yield Receive(ANY, GRADIENT)
            self.parameters += gradient.value
            yield Charge(gradient.value.nbytes)
            yield Send(gradient.source, self.parameters, PARAMETERS)

    def _work(self) -> Generator[Effect, Any, None]:
        for step in self.steps(self._steps_of(self.rank) - self.case.warmup):
            seconds = self.rank * float(self.case.options["compute_ms"]) / 1e3
            gradient = yield Compute(seconds, partial(self._gradient, step))
            yield Send(SERVER, gradient, GRADIENT)
            self.parameters = (yield Receive(SERVER, PARAMETERS)).value

    def _steps_of(self, worker: int) -> int:
        """Steps of a worker, warm-up included: the faster it is, the more."""
        return self.case.warmup + self.case.iterations * (self.world_size - worker)

    def _gradient(self, step: int) -> np.ndarray:
        return np.full(len(self.parameters), self.rank * (step + 1), np.float32)

    def checks(self) -> list[tuple[str, bool, str]]:
        """The server has every gradient once."""
        if self.rank != SERVER:
            return []
        wanted = sum(
            worker * (step + 1) for worker in range(1, self.world_size) for step in range(self._steps_of(worker))
        )
        found = self.parameters[[0, -1]].tolist()
        return [("parameters", found == [wanted, wanted], f"{found}, wanted {wanted}")]


PROGRAM = AsyncServer
