"""Program `train` under a strategy that is a program of each rank (strategies/replica.py), in processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.pipelines.stage_learner import StageLearner
from scaleproof.programs.common import log_samples
from scaleproof.programs.evaluation import Evaluation, agreement, evaluated
from scaleproof.programs.process_driver import Driven
from scaleproof.programs.process_faults import FaultyDriver
from scaleproof.programs.replayed import factors_of, replayed_model
from scaleproof.programs.stages import difference_alone, stages_of_rank
from scaleproof.rank_programs.effects import Call, Compute, Gradient, Send, Update
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plugins import loaded
from scaleproof.spec.relative_times import relative_times
from scaleproof.strategies.replica import CaseDelays, Replica, Snapshot
from scaleproof.transports.mailbox import Mailbox
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.data import Data, open_data
from scaleproof.workloads.inputs.training import checked_data
from scaleproof.workloads.learner import ModelLearner, model_learner, sizes_of
from scaleproof.workloads.networks import Network
from scaleproof.workloads.pace import SECOND, Pace
from scaleproof.workloads.replay import NoData


def run_replicas(context: RankContext, case: TrainCase) -> None:
    """Trains this rank's replica, and evaluates on rank 0."""
    network = network_of(case)
    context.at(-1, "data")
    data = _data(context, case, network)
    context.at(-1, "model")
    learner, pace = _learner(context, case, network, data)
    context.at(-1, "connect")
    mailbox = loaded(cast(str, case.plugin("transport").mailbox))(context)
    driver = ReplicaDriver(context, case, mailbox, learner, data, pace)
    strategy = cast(Callable[..., Replica], registry.load("strategy", case.strategy))
    driver.run(lambda: strategy(case, context.rank, driver, learner, context.seed))


def _data(context: RankContext, case: TrainCase, network: Network) -> Data:
    worker = context.rank - (case.ranks - case.workers)
    if case.compute == "replay" or worker < 0 and context.rank != 0:
        return NoData()
    share, place = divmod(max(worker, 0), case.workers // case.shares)
    if place:  # draws what the first rank of its share draws
        return open_data(case, network, context.seed, share)
    data = checked_data(case, network, context.seed, share, context.inputs)
    if worker >= 0:
        log_samples(context, data.batch(0).inputs)
    return data


def _learner(
    context: RankContext, case: TrainCase, network: Network, data: Data
) -> tuple[ModelLearner | StageLearner, Pace | None]:
    """What the rank trains, and how the time of replayed compute passes."""
    traits = case.replicas
    if traits is not None and traits.division is not None:
        return stages_of_rank(context, case, data)
    if case.compute == "replay":
        model = replayed_model(context, case, network)
        return ModelLearner(model, sizes_of(network, case.shrink)), model.pace
    return model_learner(case, network, context.seed), None


class ReplicaDriver(FaultyDriver):
    """Also computes gradients and updates, with their times."""

    def __init__(
        self,
        context: RankContext,
        case: TrainCase,
        mailbox: Mailbox,
        learner: ModelLearner | StageLearner,
        data: Data,
        pace: Pace | None,
    ) -> None:
        super().__init__(context, case, mailbox)
        self._train_case, self._learner, self._data = case, learner, data
        self._delays = CaseDelays(case, context.seed)
        self._replayed = pace
        if pace is not None and context.byte_s:
            self._pace = pace
            self._byte_ns = context.byte_s * case.shrink * case.dilation * SECOND
        times = relative_times(case) or [1.0] * case.ranks
        self._longer, self._factors = case.dilation * times[context.rank], factors_of(context, case) if pace else []
        self._perform |= {Gradient: self._gradient, Update: self._update}
        if case.message_delay is not None:
            self._perform |= {kind: self._delayed(self._perform[kind]) for kind in (Send, Call)}

    def _gradient(self, effect: Gradient) -> float:
        recorder, context, learner = self._context.recorder, self._context, cast(ModelLearner, self._learner)
        context.at(effect.step, "input")
        with recorder.span("input", effect.step):
            batch = self._data.batch(effect.step)
        context.at(effect.step, "forward")
        with recorder.span("forward", effect.step):
            loss = learner.model.forward(batch)
        context.at(effect.step, "backward")
        with recorder.span("backward", effect.step):
            learner.model.backward()
        if not math.isnan(loss) or self._train_case.compute == "real":
            moment = now()
            recorder.add("loss", effect.step, moment, moment, value=loss)
        if effect.delayed:
            self._delay(self._delays.of_step(context.rank, effect.step))
        return loss

    def _delay(self, seconds: float) -> None:
        """A delay of the case."""
        if seconds:
            began = now()
            time.sleep(seconds * self._train_case.dilation)
            self._record("delay", began)

    def _delayed(self, perform: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """An effect that sends, after the case's delay."""

        def later(effect: Send | Call) -> Any:
            if not (isinstance(effect, Send) and effect.tag < 0):
                self._delay(self._delays.of_message(self._context.rank))
            return perform(effect)

        return later

    def _update(self, effect: Update) -> None:
        with self._context.recorder.span("update", self._step):
            self._learner.update()

    def after(self, program: Driven) -> None:
        """Evaluates all snapshots on the first rank that lives, and checks how far apart the replicas have ended."""
        assert isinstance(program, Replica)
        program.end()
        program.keep()
        kept, path = program.snapshots, self._context.folder / f"snapshots-{self._context.rank}.npz"
        np.savez(
            path.with_suffix(".part.npz"),
            values=np.stack([each.values for each in kept]),
            numbers=[each.number for each in kept],
            steps=[each.step for each in kept],
            moments=[each.moment for each in kept],
        )
        path.with_suffix(".part.npz").rename(path)
        context = self._context
        if (kept_bound := program.bound_kept()) is not None:
            context.check("bound", *kept_bound)
        context.rendezvous.gather("snapshots", context.rank, self.living, True, lambda rank: False)
        if context.rank == self.living[0]:
            self._evaluate()

    def _compute(self, effect: Compute) -> Any:
        """See ProcessDriver; replayed compute takes its time."""
        if self._replayed is None:
            return super()._compute(effect)
        began, factor = self._replayed.now(), self._factors[self._step] if self._factors else 1.0
        result = effect.work() if effect.work else None
        self._replayed.wait_until(began + round(effect.seconds * self._longer * factor * SECOND))
        return result

    def _evaluating(self) -> ModelLearner:
        """A learner of the whole network."""
        if isinstance(self._learner, ModelLearner):
            return self._learner
        return model_learner(self._train_case, network_of(self._train_case), self._context.seed)

    def _evaluate(self) -> None:
        context, case = self._context, self._train_case
        kept = [_read(context, rank) for rank in self.living]
        if case.compute == "real":
            for value in evaluated(case, kept, self._evaluating(), self._data):
                moment = self._zero + round(value.moment * 1e9 * case.dilation)
                context.recorder.add(value.event, value.step, moment, moment, value=value.value)
            if case.value("strategy.compare") == "one_process":
                last = Evaluation(tuple(each[-1] for each in kept)).model(case)
                self.note("difference", difference_alone(case, context.seed, last))
        passed, detail = agreement(case, Evaluation(tuple(each[-1] for each in kept)))
        context.check("final_parameters", passed, detail)


def _read(context: RankContext, rank: int) -> list[Snapshot]:
    with np.load(context.folder / f"snapshots-{rank}.npz") as kept:
        return [
            Snapshot(int(number), int(step), float(moment), values)
            for number, step, moment, values in zip(
                kept["numbers"], kept["steps"], kept["moments"], kept["values"], strict=True
            )
        ]
