"""Training under a strategy that is a program of each rank, in virtual time: the event engine decides when things
happen, and gradients are those of real data at the parameters that a replica has at that moment."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa

from scaleproof.core.collection_paused import collection_paused
from scaleproof.pipelines.stage_learner import StageLearner
from scaleproof.programs.evaluation import Evaluation, agreement, evaluated
from scaleproof.programs.stages import difference_alone
from scaleproof.rank_programs.effects import Call, Compute, Gradient, Send, Update
from scaleproof.rank_programs.rank_program import Clock
from scaleproof.simulate.answered_calls import AnsweredCall, CallsInOrder
from scaleproof.simulate.buffered import buffered_nbytes
from scaleproof.simulate.cost_model import MessageCosts
from scaleproof.simulate.link_network import Network
from scaleproof.simulate.simulated_program import samples
from scaleproof.simulate.virtual_faults import FaultyRun
from scaleproof.simulate.virtual_learners import Learners, Stages, learners_of
from scaleproof.simulate.virtual_rank import Rank, Then
from scaleproof.simulate.virtual_run import Happened, VirtualRun
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.cluster import Cluster, slowed
from scaleproof.spec.relative_times import relative_times
from scaleproof.strategies.replica import CaseDelays, Replica
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.learner import Learner, model_learner
from scaleproof.workloads.profile import Profile

Factor = Callable[[int, int], float]
"""On the compute time of a rank in a step."""


Perform = Callable[[Rank, Any, Then], None]
Orders = Mapping[int, Sequence[int]]
"""Of ranks: the sources of their receives from any rank, as another run had them."""
AnsweredCalls = Mapping[int, Sequence[AnsweredCall]]
"""Of ranks: the calls that they answered, as in another run."""


@dataclass(frozen=True, slots=True)
class Passes:
    """Seconds of a step's passes, undilated, and how they vary."""

    forward: float
    backward: float
    update: float
    factor: Factor


class VirtualTraining(VirtualRun):
    """`learners` and `data` of each rank."""

    def __init__(
        self,
        case: TrainCase,
        cluster: Cluster,
        costs: MessageCosts,
        passes: Passes,
        learners: Learners | Stages,
        seed: int,
    ) -> None:
        self._passes, self._learners, self._train_case = passes, learners, case
        strategy = cast(Callable[..., Replica], registry.load("strategy", case.strategy))

        def form(_: Any, rank: int, clock: Clock) -> Replica:
            return strategy(case, rank, clock, learners.of[rank], seed)

        network = Network(slowed(cluster, case.dilation, case.shrink), costs.goodput)
        nodes = [rank * case.nodes // case.ranks for rank in range(case.ranks)]
        super().__init__(form, case, network, nodes, costs, buffered_nbytes(case), seed)
        self._delays = CaseDelays(case, seed)
        self._lasts = list(relative_times(case) or [1.0] * case.ranks)
        """By which factor each rank computes longer in its present step."""
        self._perform[Update] = self._update
        if not isinstance(learners, Stages):
            self._perform[Gradient] = partial(self._gradient, learners)
        if case.message_delay is not None:
            self._perform |= {kind: self._delayed(self._perform[kind]) for kind in (Send, Call)}

    def renew(self, number: int) -> None:
        """See FaultyRun: with the parameters that all began with."""
        if not isinstance(self._learners, Stages):
            self._learners.renew(number)
        self._delays.restart(number)

    def _gradient(self, learners: Learners, rank: Rank, effect: Gradient, then: Then) -> None:
        number, dilation = rank.number, self._train_case.dilation
        self._lasts[number] = self._passes.factor(number, effect.step)
        factor = self._lasts[number] * dilation
        delay = self._delays.of_step(number, effect.step) * dilation if effect.delayed else 0.0
        passed = self.now + self._passes.forward * factor
        ready, began = passed + self._passes.backward * factor, self.now
        learners.begin(number, effect.step)

        def ended() -> None:
            if rank.dead:
                return
            loss = learners.end(number)
            self.happened(rank, "forward", began, end=passed)
            self.happened(rank, "backward", passed, end=ready)
            if not math.isnan(loss) or self._train_case.compute == "real":
                self.happened(rank, "loss", ready, loss, end=ready)
            if delay:
                self.happened(rank, "delay", ready)
            then(loss)

        self._moves.after(ready + delay - began, ended)

    def _compute(self, rank: Rank, effect: Compute, then: Then) -> None:
        """See VirtualRun; as long as the rank takes in its step."""
        factor = self._lasts[rank.number] = self._passes.factor(rank.number, rank.step)
        super()._compute(rank, replace(effect, seconds=effect.seconds * factor), then)

    def _wait(self, rank: Rank, seconds: float, then: Callable[[], None]) -> None:
        """A delay of the case."""
        began = self.now

        def ended() -> None:
            self.happened(rank, "delay", began)
            then()

        if seconds:
            self._moves.after(seconds * self._train_case.dilation, ended)
        else:
            then()

    def _delayed(self, perform: Perform) -> Perform:
        """An effect that sends, after the case's delay."""

        def later(rank: Rank, effect: Send | Call, then: Then) -> None:
            seconds = 0.0
            if not (isinstance(effect, Send) and effect.tag < 0):
                seconds = self._delays.of_message(rank.number)
            self._wait(rank, seconds, partial(perform, rank, effect, then))

        return later

    def _update(self, rank: Rank, effect: Update, then: Then) -> None:
        learner = self._learners.of[rank.number]
        seconds = self._passes.update * learner.share * self._lasts[rank.number]
        began = self.now

        def ended() -> None:
            if rank.dead:
                return
            learner.update()
            self.happened(rank, "update", began)
            then(None)

        self._moves.after(seconds * self._train_case.dilation, ended)


class FaultyTraining(VirtualTraining, FaultyRun):
    """With the case's faults."""


@collection_paused()
def simulate_training(
    case: TrainCase,
    cluster: Cluster,
    costs: MessageCosts,
    profile: Profile,
    factor: Factor,
    seed: int,
    orders: Orders,
    answered: AnsweredCalls,
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The samples of a record, in true time, and its checks. `seed`: of parameters, data and the strategy's draws.
    `orders`, `answered`: of another run that is played back."""
    gc.collect(1)  # frees an earlier run, which is one reference cycle and still in the young generations
    passes = Passes(profile.forward_s, profile.backward_s, profile.update_s.median, factor)
    learners = learners_of(case, seed, profile)
    kind = VirtualTraining if case.faults is None else FaultyTraining
    run = kind(case, cluster, costs, passes, learners, seed)
    run.orders = {rank: iter(sources) for rank, sources in orders.items()}
    run.calls = {rank: CallsInOrder(calls) for rank, calls in answered.items()}
    with np.errstate(over="ignore", invalid="ignore"):  # a training may diverge
        checks = _trained(case, run, learners, seed)
    return samples(run.events, case.dilation), checks


def _whole(case: TrainCase, learner: Learner | StageLearner, seed: int) -> Learner:
    """A learner of the whole network."""
    divided = case.replicas is not None and case.replicas.division is not None
    return model_learner(case, network_of(case), seed) if divided else cast(Learner, learner)


def _trained(case: TrainCase, run: VirtualTraining, learners: Learners | Stages, seed: int) -> list[dict[str, Any]]:
    """Runs all ranks and evaluates what they have kept. The checks of the record."""
    run.run()
    programs = [cast(Replica, rank.program) for rank in run.living]
    for program in programs:
        program.end()
        program.keep()
    kept = [program.snapshots for program in programs]
    zero = min(event.start for event in run.events if event.event == "start")
    if case.compute == "real":
        first = programs[0].rank
        for value in evaluated(case, kept, _whole(case, learners.of[first], seed), learners.data[first]):
            moment = zero + value.moment * case.dilation
            run.events.append(Happened(first, value.event, value.step, False, moment, moment, 0, value.value))
        if case.value("strategy.compare") == "one_process":
            last = Evaluation(tuple(each[-1] for each in kept)).model(case)
            apart = difference_alone(case, seed, last)
            run.events.append(Happened(first, "difference", case.steps, False, run.now, run.now, 0, apart))
    final = agreement(case, Evaluation(tuple(each[-1] for each in kept)))
    bounds = [(program.rank, program.bound_kept()) for program in programs]
    checks = [(rank, "bound", bound) for rank, bound in bounds if bound is not None]
    return [
        {"rank": rank, "name": name, "passed": passed, "detail": detail}
        for rank, name, (passed, detail) in [(programs[0].rank, "final_parameters", final), *checks]
    ]
