"""Elastic averaging (Zhang, Choromanska, LeCun 2015): every few steps a worker and the centre move towards each other,
and workers are free to explore in between. Asynchronous, in the order of the authors' code (mpiT, optim-eamsgd.lua), or
synchronous, as the paper defines it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Charge, Effect, Gradient, Update
from scaleproof.rank_programs.rank_program import Clock
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.faults import faults_of
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.centre import BORNE, EXCHANGE, GET, MOVE
from scaleproof.strategies.centre_forms import CentreForms
from scaleproof.strategies.own_momentum import Stepper
from scaleproof.strategies.replica import SERVERS, check_peers, check_servers, dedicated_servers
from scaleproof.strategies.strategy_options import PeriodOptions
from scaleproof.strategies.synchronous_centre import SynchronousCentre
from scaleproof.strategies.update_option import UpdateOptions, UpdateOrder
from scaleproof.workloads.learner import Learner

BETA = 0.9
"""easgd2015, the authors' launch values."""


class ElasticOptions(UpdateOptions, PeriodOptions):
    """Options of elastic averaging."""

    dedicated_servers: int = Field(
        1, ge=0, description=f"{SERVERS} 0: rank 0 holds the centre beside its own training (jin2016)."
    )
    alpha: float | None = Field(
        None, ge=0, description="Share of the difference by which both move; null: beta over the number of workers."
    )
    beta: float = Field(BETA, gt=0, description="alpha times the number of workers, where alpha is null; jin2016: 0.8.")
    order: Literal["code", "textbook", "moved_first", "after_gradient"] = Field(
        "code",
        description="code: the difference is taken before the local step and subtracted after it; textbook: it is "
        "subtracted before the local step, whose gradient was taken before (the same but for rounding); moved_first: "
        "it is subtracted first, and the gradient is taken there; after_gradient: the gradient is taken, then the "
        "difference is taken and subtracted, then the local step (jin2016).",
    )
    exchange: Literal["difference", "parameters", "locked"] = Field(
        "difference",
        description="difference: a worker gets the centre and sends the difference; parameters: it sends its "
        "parameters, gets the centre, and the centre moves by itself (jin2016); locked: the same by puts and gets, "
        "under a lock word that a worker takes by compare-and-swap.",
    )
    poll_us: float = Field(50.0, gt=0, description="locked: pause between two tries to take the lock, us.")
    update: UpdateOrder = Field(
        "asynchronous",
        description="asynchronous: the centre moves whenever a worker exchanges; synchronous: it waits for all "
        "workers, and moves by the sum of their differences from where it was, with `exchange: parameters`.",
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


class ElasticAveraging(CentreForms, SynchronousCentre):
    """The centre is evaluated."""

    def __init__(self, case: TrainCase, rank: int, clock: Clock, learner: Learner, seed: int) -> None:
        super().__init__(case, rank, clock, learner, seed)
        self.options = case.options_of(ElasticOptions)
        alpha = self.options.alpha
        self.share = self.options.beta / case.workers if alpha is None else alpha
        self.locked, self.poll_s = self.options.exchange == "locked", self.options.poll_us / 1e6
        self.velocity = np.zeros_like(self.x) if self.options.momentum == "nesterov" else None
        self.stepper = Stepper(self, self.options.momentum)

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        if self.worker < 0:
            return self._hold()
        return self._work_after_gradients() if self.options.order == "after_gradient" else self._work()

    def _hold(self) -> Generator[Effect, Any, None]:
        if self.options.update == "synchronous":
            return self.hold_synchronously()
        return self.hold_locked() if self.locked else self.hold()

    def _work_after_gradients(self) -> Generator[Effect, Any, None]:
        yield from self.start_successor()
        for step in self.steps():
            yield from self.stepper.gradient(step)
            if (step + 1) % self.options.tau == 0:
                difference = yield from self._exchange()
                yield from self._move(difference)
            yield from self.stepper.update()
        yield from self._leave()

    def _work(self) -> Generator[Effect, Any, None]:
        yield from self.start_successor()
        for step in self.steps():
            due = step % self.options.tau == 0
            difference = (yield from self._exchange()) if due else None
            if difference is not None and self.options.order == "moved_first":
                yield from self._move(difference)
                difference = None
            yield from self._local_step(step, difference)
        yield from self._leave()

    def _leave(self) -> Generator[Effect, Any, None]:
        yield from self.leave_locked() if self.locked else self.leave()

    def _exchange(self) -> Generator[Effect, Any, np.ndarray]:
        """The difference by which this worker moves; the centre moves as far."""
        if self.options.exchange != "difference":
            centre = yield from self._swap()
            difference = np.float32(self.share) * (self.x - centre)
        else:
            centre = yield from self.ask(GET)
            difference = np.float32(self.share) * (self.x - centre)
            yield from self.ask(MOVE, difference)
        yield Charge(2 * self.x.nbytes)
        return difference

    def _swap(self) -> Generator[Effect, Any, np.ndarray]:
        """The parameters go to the centre; the centre as it was."""
        if self.locked:
            return (yield from self.move_locked())
        return (yield from self.move_beside() if self.beside else self.ask(EXCHANGE, self.x))

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
    if options.update == "synchronous" and options.exchange != "parameters":
        message = "a centre that waits for all takes their parameters: set `exchange: parameters`"
        raise FieldError("strategy.update", message)
    if options.lrd and options.momentum == "plain":
        message = "the optimiser's learning rate is fixed: set `momentum: nesterov` (plain SGD if momentum is 0)"
        raise FieldError("strategy.lrd", message)
    if options.lrd and options.order == "after_gradient":
        raise FieldError("strategy.lrd", "order after_gradient has the case's learning rate: leave it out")
    _check_place(case)


def _check_place(case: TrainCase) -> None:
    """Where the centre is, and how it is reached."""
    options = case.options_of(ElasticOptions)
    if options.dedicated_servers == 0:
        check_peers(case)
        if options.exchange != "parameters":
            message = f"rank 0 beside its training is sent parameters, not asked by exchange {options.exchange!r}"
            raise FieldError("strategy.dedicated_servers", f"{message}; set exchange: parameters")
    if (options.exchange == "locked" or not options.dedicated_servers) and faults_of(case.faults).mortal:
        raise FieldError(
            "faults", "a worker that is killed is known to a server that is asked: not to a lock, or rank 0"
        )
    if options.exchange == "locked" and options.dedicated_servers != 1:
        raise FieldError("strategy.dedicated_servers", "a locked centre is that of one server; leave it out")


def tags(case: TrainCase) -> dict[str, str]:
    """Its place on the axes of the taxonomy."""
    of_case = asynchronous_tags("decentralized", "asynchronous")(case)
    if case.options_of(ElasticOptions).update == "synchronous":
        of_case |= {"scheduling": "synchronous", "consistency": "synchronous"}
    return of_case


PLUGIN = StrategyPlugin(
    name="elastic_averaging",
    summary="workers and a centre are drawn towards each other, asynchronously or synchronously",
    implementation=ElasticAveraging,
    options=ElasticOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(
        pace="own", end="apart", evaluated="centre", dedicated_servers=dedicated_servers, bears=BORNE
    ),
    tags=tags,
)
