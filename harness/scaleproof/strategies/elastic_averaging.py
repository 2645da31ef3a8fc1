"""Elastic averaging (Zhang, Choromanska, LeCun 2015): every few steps a worker and the centre move towards each other,
and workers are free to explore in between. Asynchronous, in the order of the authors' code (mpiT, optim-eamsgd.lua)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Charge, Effect, Gradient, Update
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.centre import BORNE, EXCHANGE, GET, MOVE, Centre
from scaleproof.strategies.replica import SERVERS, check_servers, dedicated_servers

BETA = 0.9
"""alpha is this over the number of workers (easgd2015, the authors' launch values)."""


class ElasticOptions(Options):
    """Options of elastic averaging."""

    dedicated_servers: int = Field(1, ge=1, description=SERVERS)
    tau: int = Field(1, ge=1, description="Steps between two exchanges of a rank.")
    alpha: float | None = Field(
        None, ge=0, description="Share of the difference by which both move; null: 0.9 over the number of workers."
    )
    order: Literal["code", "moved_first"] = Field(
        "code",
        description="code: the difference is taken before the local step and subtracted after it; moved_first: it is "
        "subtracted first, and the gradient is taken there.",
    )
    exchange: Literal["difference", "parameters"] = Field(
        "difference",
        description="difference: a worker gets the centre and sends the difference; parameters: it sends its "
        "parameters, gets the centre, and the centre moves by itself (jin2016).",
    )
    momentum: Literal["plain", "nesterov"] = Field(
        "plain",
        description="plain: the optimiser's; nesterov: the gradient is taken at the parameters plus the case's "
        "momentum times the last step.",
    )


class ElasticAveraging(Centre):
    """The centre is evaluated."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        self.options = self.case.options_of(ElasticOptions)
        alpha = self.options.alpha
        self.share = BETA / self.case.workers if alpha is None else alpha
        self.velocity = np.zeros_like(self.x) if self.options.momentum == "nesterov" else None
        return self.hold() if self.worker < 0 else self._work()

    def _work(self) -> Generator[Effect, Any, None]:
        yield from self.take_place()
        for step in self.steps():
            due = step % self.options.tau == 0
            difference = (yield from self._exchange()) if due else None
            if difference is not None and self.options.order == "moved_first":
                yield from self._move(difference)
            yield from self._local_step(step)
            if difference is not None and self.options.order == "code":
                yield from self._move(difference)
        yield from self.leave()

    def _exchange(self) -> Generator[Effect, Any, np.ndarray]:
        """The difference by which this worker moves; the centre moves as far."""
        if self.options.exchange == "parameters":
            centre = yield from self.ask(EXCHANGE, self.x)
            difference = np.float32(self.share) * (self.x - centre)
        else:
            centre = yield from self.ask(GET)
            difference = np.float32(self.share) * (self.x - centre)
            yield from self.ask(MOVE, difference)
        yield Charge(2 * self.x.nbytes)
        return difference

    def _move(self, difference: np.ndarray) -> Generator[Effect, Any, None]:
        self.x -= difference
        yield Charge(self.x.nbytes)

    def _local_step(self, step: int) -> Generator[Effect, Any, None]:
        if self.velocity is None:
            yield Gradient(step)
            yield Update()
            return
        self.velocity *= np.float32(self.case.momentum)
        self.x += self.velocity
        yield Gradient(step)
        self.g *= np.float32(self.case.learning_rate)
        self.x -= self.g
        self.velocity -= self.g
        yield Charge(4 * self.x.nbytes)


PLUGIN = StrategyPlugin(
    name="elastic_averaging",
    summary="asynchronous: workers and a centre are drawn towards each other",
    implementation=ElasticAveraging,
    options=ElasticOptions,
    check=check_servers,
    collective_calls=False,
    rank_program=ReplicaTraits(
        pace="own", end="apart", evaluated="centre", dedicated_servers=dedicated_servers, bears=BORNE
    ),
    tags=asynchronous_tags("decentralized", "asynchronous"),
)
