"""Probabilistic synchronous parallel (psp2017): after each step a worker asks a random sample of its peers how far they
are, and waits while one of them is too far behind. The sample's size goes from none (asynchronous) to all (bulk or
stale-synchronous). Gradients go to asynchronous parameter servers."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Call, Effect, Gradient, Send, Sleep
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.replica import check_servers, dedicated_servers
from scaleproof.strategies.server import BORNE, ENDED, PUSH, Server, ServerOptions
from scaleproof.transports.mailbox import Lost

NOTHING = np.empty(0, np.float32)
GONE = float(np.finfo(np.float32).max)
"""The progress of a rank that takes no more steps."""


class BarrierOptions(ServerOptions):
    """Options of sampled barriers."""

    sample: int | None = Field(
        None, ge=0, description="Peers that a worker asks, drawn without replacement; 0: no barrier; null: all others."
    )
    staleness: int = Field(0, ge=0, description="A worker waits while a peer that it asked is further behind.")
    resample: Literal["each_poll", "once"] = Field(
        "each_poll", description="Whether a worker that has to wait asks new peers, or the same ones again."
    )
    poll_s: float = Field(0.1, gt=0, description="True time between two samples of a worker that waits, s.")


class ProbabilisticBarrier(Server):
    """`serve` answers with the steps that this rank has finished."""

    def _work(self) -> Generator[Effect, Any, None]:
        options = self.case.options_of(BarrierOptions)
        yield from self.take_place()
        self.finished = float(self.first_step)
        for step in self.steps():
            yield Gradient(step)
            yield from self.push_and_pull(step)
            self.finished = step + 1
            yield from self._meet(options)
        self.finished = GONE
        for server in range(self.servers):
            yield Send(server, np.array([ENDED, 0], np.float32), PUSH)

    finished = 0.0
    """Steps of this worker, or GONE."""

    def _meet(self, options: BarrierOptions) -> Generator[Effect, Any, None]:
        began, peers = self._clock.now(), self._sample(options)
        while peers:
            least = GONE
            for peer in peers:
                progress = yield Call(peer, NOTHING, "progress", control=True)
                least = min(least, GONE if isinstance(progress, Lost) else float(progress[0]))
            if self.finished - least <= options.staleness:
                break
            yield Sleep(options.poll_s)
            if options.resample == "each_poll":
                peers = self._sample(options)
        self.note("barrier_s", self._clock.now() - began)

    def _sample(self, options: BarrierOptions) -> list[int]:
        gone = {self.rank, *self._clock.lost}
        others = [rank for rank in range(self.servers, self.world_size) if rank not in gone]
        if options.sample is None:
            return others
        count = min(options.sample, len(others))
        return sorted(self.random.choice(others, count, replace=False).tolist()) if count else []

    def serve(self, source: int, name: str, value: np.ndarray) -> np.ndarray:
        """See RankProgram."""
        return np.array([self.finished], np.float32)


def check(case: TrainCase) -> None:
    """Raises FieldError for a sample larger than the cluster."""
    check_servers(case)
    options = case.options_of(BarrierOptions)
    others = case.ranks - options.dedicated_servers - 1
    if options.sample is not None and options.sample > others:
        raise FieldError("strategy.sample", f"{options.sample} peers of {others} other workers")
    if options.update != "each" or options.bound is not None:
        raise FieldError("strategy", "sampled barriers are of asynchronous servers: leave out `update` and `bound`")


def tags(case: TrainCase) -> dict[str, str]:
    """Its place on the axes of the taxonomy."""
    sampled = case.options_of(BarrierOptions).sample
    scheduling = {None: "bounded-asynchronous", 0: "asynchronous"}.get(sampled, "soft-bounded-asynchronous")
    return asynchronous_tags("centralized", scheduling)(case)


PLUGIN = StrategyPlugin(
    name="probabilistic_barrier",
    summary="asynchronous servers whose workers wait for a random sample of their peers",
    implementation=ProbabilisticBarrier,
    options=BarrierOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(
        pace="own", end="apart", evaluated="centre", dedicated_servers=dedicated_servers, bears=BORNE
    ),
    tags=tags,
)
