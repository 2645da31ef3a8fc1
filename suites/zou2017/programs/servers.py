"""Lemma 2 in practice: workers compute (sleep) while the gradients of the previous round are sent to the servers, which
sum them and send the sums back.

The first `workers` ranks are workers, the others servers. Parameters are spread over the servers, by default evenly.
Options: `slept: 1`; `workers`; `nbytes` of all parameters; `compute_ms` per round (0: only traffic, which shows the
rate of a server); `first_share`: share of the parameters on the first server (0: equal shares).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import sleep_for_compute, timed_iterations, timed_region
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase
from scaleproof.transports.contract import Array, PointToPoint

ITEM = 4
MILLI = 1e-3


def run(context: RankContext) -> None:
    """See the module. A sample is a round on one rank. The last received parameters are compared with the expected
    sums."""
    case = context.case
    assert isinstance(case, OwnCase) and case.transport is not None
    workers = int(case.options["workers"])
    shards = shard_elements(
        int(case.options["nbytes"]) // ITEM, case.ranks - workers, float(case.options["first_share"])
    )
    transport: PointToPoint = registry.load("transport", case.transport).connect(context)
    with timed_region(context, transport):
        part = (
            _Worker(context, transport, workers, shards)
            if context.rank < workers
            else _Server(context, transport, workers, shards)
        )
        for number in timed_iterations(context, case.warmup, case.iterations):
            context.at(number, "round")
            start = now()
            part.round(number)
            context.recorder.add("round", number, start, now(), part.nbytes)
        if isinstance(part, _Worker):
            part.verify(case.warmup + case.iterations - 1)


def shard_elements(elements: int, servers: int, first_share: float) -> list[int]:
    """Elements of the parameters on each server."""
    first = round(elements * first_share) if first_share else elements // servers
    rest = elements - first
    others = servers - 1
    return [first, *(rest // others + (server < rest % others) for server in range(others))] if others else [elements]


class _Worker:
    """Pushes the gradients of the previous round, pulls the sums, and computes meanwhile."""

    def __init__(self, context: RankContext, transport: PointToPoint, workers: int, shards: Sequence[int]) -> None:
        case = context.case
        assert isinstance(case, OwnCase)
        self.context, self.transport, self.workers = context, transport, workers
        self.pause_s = float(case.options["compute_ms"]) * MILLI
        self.servers = range(workers, workers + len(shards))
        self.gradients = [np.zeros(count, np.float32) for count in shards]
        self.parameters = [np.zeros(count, np.float32) for count in shards]
        self.nbytes = sum(shards) * ITEM
        """Bytes sent per round and direction."""
        self.beside = ThreadPoolExecutor(1)

    def round(self, number: int) -> None:
        """One round; a separate thread communicates while the computation sleeps."""
        for gradient in self.gradients:
            gradient.fill(self.context.rank + number)
        traffic = self.beside.submit(self._exchange)
        sleep_for_compute(self.context, self.pause_s)
        traffic.result()

    def verify(self, last: int) -> None:
        """Checks that every element is the sum of what all workers pushed."""
        self.beside.shutdown()
        expected = sum(rank + last for rank in range(self.workers))
        wrong = sum(int(np.count_nonzero(values != expected)) for values in self.parameters)
        self.context.check("sums", not wrong, f"{wrong} elements are not {expected}")

    def _exchange(self) -> None:
        handles = [
            self.transport.recv(values, server) for values, server in zip(self.parameters, self.servers, strict=True)
        ]
        handles += [
            self.transport.send(values, server) for values, server in zip(self.gradients, self.servers, strict=True)
        ]
        for handle in handles[::-1]:
            handle.wait()


class _Server:
    """Receives every worker's gradients, sums them, sends the sums."""

    def __init__(self, context: RankContext, transport: PointToPoint, workers: int, shards: Sequence[int]) -> None:
        self.transport, self.workers = transport, range(workers)
        count = shards[context.rank - workers]
        self.gradients: list[Array] = [np.zeros(count, np.float32) for _ in self.workers]
        self.nbytes = count * ITEM * workers

    def round(self, number: int) -> None:
        """One synchronous round: the sums are sent when all gradients have arrived."""
        for handle in [
            self.transport.recv(values, worker) for values, worker in zip(self.gradients, self.workers, strict=True)
        ]:
            handle.wait()
        for values in self.gradients[1:]:
            np.add(self.gradients[0], values, out=self.gradients[0])
        for handle in [self.transport.send(self.gradients[0], worker) for worker in self.workers]:
            handle.wait()
