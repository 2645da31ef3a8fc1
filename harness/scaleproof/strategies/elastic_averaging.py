"""Elastic averaging (Zhang, Choromanska, LeCun 2015): every few steps a worker and the centre move towards each other,
and workers are free to explore in between. Asynchronous, in the order of the authors' code (mpiT, optim-eamsgd.lua), or
synchronous, as the paper defines it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Charge, Effect, Gradient, Update
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import Options, StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.centre import BORNE, EXCHANGE, GET, MOVE
from scaleproof.strategies.replica import SERVERS, check_servers, dedicated_servers
from scaleproof.strategies.synchronous_centre import SynchronousCentre

BETA = 0.9
"""alpha is this over the number of workers (easgd2015, the authors' launch values)."""


class ElasticOptions(Options):
    """Options of elastic averaging."""

    dedicated_servers: int = Field(1, ge=1, description=SERVERS)
    tau: int = Field(1, ge=1, description="Steps between two exchanges of a rank.")
    alpha: float | None = Field(
        None, ge=0, description="Share of the difference by which both move; null: 0.9 over the number of workers."
    )
    order: Literal["code", "textbook", "moved_first"] = Field(
        "code",
        description="code: the difference is taken before the local step and subtracted after it; textbook: it is "
        "subtracted before the local step, whose gradient was taken before (the same but for rounding); moved_first: "
        "it is subtracted first, and the gradient is taken there.",
    )
    exchange: Literal["difference", "parameters"] = Field(
        "difference",
        description="difference: a worker gets the centre and sends the difference; parameters: it sends its "
        "parameters, gets the centre, and the centre moves by itself (jin2016).",
    )
    moves: Literal["one_by_one", "together"] = Field(
        "one_by_one",
        description="one_by_one: the centre moves whenever a worker exchanges; together: it waits for all workers, and "
        "moves by the sum of their differences from where it was (synchronous), with `exchange: parameters`.",
    )
    momentum: Literal["plain", "nesterov"] = Field(
        "plain",
        description="plain: the optimiser's; nesterov: the gradient is taken at the parameters plus the case's "
        "momentum times the last step.",
    )
    lrd: float = Field(
        0.0,
        ge=0,
        description="With `momentum: nesterov`: the learning rate of step t is the case's over (1 + t lrd)^lrp.",
    )
    lrp: float = Field(1.0, ge=0, description="The power in the decay of the learning rate by lrd.")


class ElasticAveraging(SynchronousCentre):
    """The centre is evaluated."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        self.options = self.case.options_of(ElasticOptions)
        alpha = self.options.alpha
        self.share = BETA / self.case.workers if alpha is None else alpha
        self.velocity = np.zeros_like(self.x) if self.options.momentum == "nesterov" else None
        if self.worker >= 0:
            return self._work()
        return self.hold_together() if self.options.moves == "together" else self.hold()

    def _work(self) -> Generator[Effect, Any, None]:
        yield from self.take_place()
        for step in self.steps():
            due = step % self.options.tau == 0
            difference = (yield from self._exchange()) if due else None
            if difference is not None and self.options.order == "moved_first":
                yield from self._move(difference)
                difference = None
            yield from self._local_step(step, difference)
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

    def _local_step(self, step: int, difference: np.ndarray | None) -> Generator[Effect, Any, None]:
        """The optimiser's step, and a difference that is subtracted once the gradient is known."""
        if self.velocity is not None:
            self.velocity *= np.float32(self.case.momentum)
            self.x += self.velocity
        yield Gradient(step)
        if difference is not None and self.options.order == "textbook":
            yield from self._move(difference)
            difference = None
        if self.velocity is None:
            yield Update()
        else:
            self.g *= np.float32(self._rate(step))
            self.x -= self.g
            self.velocity -= self.g
            yield Charge(4 * self.x.nbytes)
        if difference is not None:
            yield from self._move(difference)

    def _rate(self, step: int) -> float:
        """The learning rate, as the authors' code lets it decay."""
        rate: float = self.case.learning_rate / (1 + step * self.options.lrd) ** self.options.lrp
        return rate


def check(case: TrainCase) -> None:
    """Raises FieldError for servers without workers, and options that do not go together."""
    check_servers(case)
    options = case.options_of(ElasticOptions)
    if options.moves == "together" and options.exchange != "parameters":
        message = "a centre that waits for all takes their parameters: set `exchange: parameters`"
        raise FieldError("strategy.moves", message)
    if options.lrd and options.momentum == "plain":
        message = "the optimiser's learning rate is fixed: set `momentum: nesterov` (plain SGD if momentum is 0)"
        raise FieldError("strategy.lrd", message)


def tags(case: TrainCase) -> dict[str, str]:
    """Its place on the axes of the taxonomy."""
    of_case = asynchronous_tags("decentralized", "asynchronous")(case)
    if case.options_of(ElasticOptions).moves == "together":
        of_case |= {"scheduling": "synchronous", "consistency": "synchronous"}
    return of_case


PLUGIN = StrategyPlugin(
    name="elastic_averaging",
    summary="workers and a centre are drawn towards each other: asynchronous, or all together",
    implementation=ElasticAveraging,
    options=ElasticOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(
        pace="own", end="apart", evaluated="centre", dedicated_servers=dedicated_servers, bears=BORNE
    ),
    tags=tags,
)
