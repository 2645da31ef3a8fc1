"""A parameter server without locks: workers put their gradients into regions of the server and raise a flag; the
server sums what there is, and workers get the parameters whenever they like."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import AwaitFlag, Charge, Compute, Effect, Flag, Get, Put
from scaleproof.rank_programs.rank_program import RankProgram

SERVER = 0


class PutServer(RankProgram):
    """A worker computes for `compute_ms` times its rank. Its gradient has a region of its own, which it writes again
    only when the server has raised its flag."""

    def regions(self) -> dict[str, np.ndarray]:
        """See RankProgram."""
        self.count = self.case.sizes[0] // 4
        self.parameters = np.zeros(self.count, np.float32)
        self.gradients = [np.zeros(self.count, np.float32) for _ in range(self.world_size)]
        if self.rank != SERVER:
            return {}
        named = {f"gradient of {worker}": self.gradients[worker] for worker in range(1, self.world_size)}
        return {"parameters": self.parameters, **named}

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        return self._serve_workers() if self.rank == SERVER else self._work()

    def _serve_workers(self) -> Generator[Effect, Any, None]:
        for step in self.steps():
            for worker in range(1, self.world_size):
                yield AwaitFlag(f"pushed by {worker}", step + 1)
                self.parameters += self.gradients[worker]
                yield Charge(self.parameters.nbytes)
                yield Flag(worker, "summed")

    def _work(self) -> Generator[Effect, Any, None]:
        for step in self.steps():
            gradient = np.full(self.count, self.rank * (step + 1), np.float32)
            yield Compute(self.rank * float(self.case.options["compute_ms"]) / 1e3)
            yield AwaitFlag("summed", step)
            yield Put(SERVER, gradient, f"gradient of {self.rank}")
            yield Flag(SERVER, f"pushed by {self.rank}")
            self.parameters = yield Get(SERVER, "parameters")

    def checks(self) -> list[tuple[str, bool, str]]:
        """The server has every gradient once, and no worker has seen more than that."""
        steps = self.case.warmup + self.case.iterations
        wanted = sum(range(1, self.world_size)) * steps * (steps + 1) / 2
        found = self.parameters[[0, -1]].tolist()
        if self.rank == SERVER:
            return [("parameters", found == [wanted, wanted], f"{found}, wanted {wanted}")]
        return [("seen", max(found) <= wanted, f"{found} of {wanted}")]


PROGRAM = PutServer
