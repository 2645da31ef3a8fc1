"""Probabilistic synchronous parallel (psp2017): after each step a worker asks a random sample of its peers how far they
are, and waits while one of them is too far behind. The sample's size goes from none (asynchronous) to all (bulk or
stale-synchronous). Gradients go to asynchronous parameter servers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import Field

from scaleproof.rank_programs.effects import Effect, Poll
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.peer_sample import PeerSample
from scaleproof.strategies.replica import check_servers, dedicated_servers
from scaleproof.strategies.server import BORNE, Server, ServerOptions


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
    """Every rank answers with the steps that it has finished."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        self.barrier = self.case.options_of(BarrierOptions)
        others = [rank for rank in range(self.servers, self.world_size) if rank != self.rank]
        self.size = len(others) if self.barrier.sample is None else self.barrier.sample
        self.sample = PeerSample(others, self.size, self.random)
        return super().main()

    def meet(self) -> Generator[Effect, Any, None]:
        """See Server."""
        if not self.size:
            return
        began, barrier = self._clock.now(), self.barrier
        each_time = barrier.resample == "each_poll"
        peers: Callable[[], Sequence[int]] = self.sample if each_time else partial(list, self.sample())
        yield Poll(peers, self.finished - barrier.staleness, barrier.poll_s)
        self.note("barrier_s", self._clock.now() - began)


def check(case: TrainCase) -> None:
    """Raises FieldError for a sample larger than the cluster."""
    check_servers(case)
    options = case.options_of(BarrierOptions)
    others = case.ranks - options.dedicated_servers - 1
    if options.sample is not None and options.sample > others:
        raise FieldError("strategy.sample", f"{options.sample} peers of {others} other workers")
    if options.update != "asynchronous" or options.bound is not None:
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
