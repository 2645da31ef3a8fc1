"""Training steps of a workload under a strategy, the same in every framework.

Each rank records the events of a step: this program records `input`, `forward`, `backward` and `step` around them all,
the strategy records `communication`, `wait` and `update`. Exposed communication is computed from these events later
(claims/metrics_split.py, by stats/interval_union.py). train_results.py has what follows the timed region."""

from __future__ import annotations

import math

import numpy as np

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import leave, log_samples, mark, timed_iterations
from scaleproof.programs.handicap import finished
from scaleproof.programs.train_results import (
    MEET_S,
    StepLoss,
    Training,
    check_and_keep,
    check_equal,
    evaluate,
    publish_losses,
)
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plugins import ProgramPlugin
from scaleproof.strategies.base import Strategy
from scaleproof.workloads.case_network import check_workload, network_of
from scaleproof.workloads.data import Batch, Data, initial_parameters
from scaleproof.workloads.inputs.training import checked_data
from scaleproof.workloads.model_contract import Model
from scaleproof.workloads.networks import Network
from scaleproof.workloads.replay import Lateness, NoData, ReplayModel


class Diverged(RuntimeError):
    """A loss is not finite."""

    code = "diverged"


def run(context: RankContext) -> None:
    """Sets up, starts from rank 0's parameters, trains, checks that all replicas are equal, closes the transport."""
    case = context.case
    assert isinstance(case, TrainCase)
    if case.replicas:
        from scaleproof.programs.train_replicas import run_replicas

        run_replicas(context, case)
        return
    training = _set_up(context, case)
    try:
        _broadcast_parameters(training)
        losses = _steps(training)
        publish_losses(training, losses)
        check_and_keep(training)
    finally:
        training.strategy.close()
        if training.group is not None:
            leave(context, training.group)


def _set_up(context: RankContext, case: TrainCase) -> Training:
    network = network_of(case)
    context.at(-1, "data")
    data = _data(context, case, network)
    context.at(-1, "connect")
    # The group is opened before the model: TensorFlow's multi-worker strategy must be the first use of TensorFlow in a
    # process.
    group = open_group(context) if case.transport is not None else None
    strategy: Strategy = registry.load("strategy", case.strategy).open(
        context, group, network, case.value("strategy.bucket_mib", 25.0)
    )
    context.at(-1, "model")
    model = _model(context, case, network, strategy)
    model.bind(strategy.gradients, strategy.gradient_scale, strategy.gradient_ready)
    context.facts["workload"] = {
        "parameters": network.parameters,
        "mac_per_sample": network.mac,
        "train_flop_per_sample": network.train_flop,
        "bucket_nbytes": [bucket.nbytes for bucket in strategy.buckets],
    }
    return Training(context, case, network, data, model, group, strategy)


def _data(context: RankContext, case: TrainCase, network: Network) -> Data:
    if case.compute == "replay":
        return NoData()
    data = checked_data(case, network, context.seed, context.rank, context.inputs)
    log_samples(context, data.batch(0).inputs)
    return data


def _model(context: RankContext, case: TrainCase, network: Network, strategy: Strategy) -> Model:
    """This rank's network in the case's framework, or a replay of the times of its layers."""
    if case.compute == "replay":
        from scaleproof.programs.replayed import replayed_model  # a rank that computes needs none of its imports

        return replayed_model(context, case, strategy.network)
    values = strategy.own_values(initial_parameters(network, context.seed))
    model: Model = registry.load("framework", case.framework)(
        strategy.network,
        values,
        learning_rate=case.learning_rate,
        momentum=case.momentum,
        threads=case.threads_per_rank,
    )
    return model


def _broadcast_parameters(training: Training) -> None:
    """Broadcasts the first rank's parameters to all ranks that hold replicas of them, and checks that they are equal. A
    replayed network has no parameters to send."""
    context = training.context
    if training.case.compute == "replay":
        training.strategy.start(training.model)
        return
    values = [np.ascontiguousarray(value) for value in training.model.values()]
    if training.group is not None:
        context.at(-1, "broadcast")
        for replicas in training.strategy.replica_groups:
            for index in replicas.indices:
                assert replicas.group is not None
                replicas.group.broadcast(values[index].reshape(-1)).wait()
        training.model.load(values)
    check_equal(training, "initial_parameters")
    training.strategy.start(training.model)


def _steps(training: Training) -> list[StepLoss]:
    """Runs all steps, with the marks `start` and `end` of the timed region."""
    context, case, losses = training.context, training.case, list[StepLoss]()
    for step in timed_iterations(context, case.warmup, case.steps):
        if step == case.warmup:
            _barrier(training, "start")
            mark(context, "start", step, training.group)
            if isinstance(training.model, ReplayModel):
                training.model.late = Lateness()
        losses.append(_step(training, step))
        if case.evaluate_every and (step + 1) % case.evaluate_every == 0:
            evaluate(training, step)
            _barrier(training, f"evaluated-{step}")
    mark(context, "end", case.warmup + case.steps - 1, training.group)
    return losses


def _step(training: Training, step: int) -> StepLoss:
    """One step: input, forward and backward pass, and the strategy's exchange during and after them."""
    context, recorder, model, strategy = training.context, training.context.recorder, training.model, training.strategy
    started = now()
    strategy.begin(step)
    context.at(step, "input")
    with recorder.span("input", step):
        batch = training.data.batch(step)
    batch = strategy.own_batch(batch)
    loss = _no_compute(training) if training.case.compute == "none" else _compute(training, step, batch)
    strategy.finish(model.update)
    ended = finished(started, training.case.handicap)
    recorder.add("step", step, started, ended)
    strategy.report()
    return StepLoss(step, recorder.warmup, ended, loss)


def _compute(training: Training, step: int, batch: Batch) -> float:
    """Forward and backward pass. Returns the local mean loss, NaN if they are replayed."""
    context, recorder, model = training.context, training.context.recorder, training.model
    context.at(step, "forward")
    with recorder.span("forward", step):
        loss = model.forward(batch)
    if training.case.compute == "real" and not math.isfinite(loss):
        raise Diverged(
            f"loss is {loss} at step {step}; try a smaller learning_rate than {training.case.learning_rate:g}"
        )
    context.at(step, "backward")
    with recorder.span("backward", step):
        model.backward()
    return loss


def _no_compute(training: Training) -> float:
    """The control arm without compute: all gradients (zeros) are ready immediately, last layer first. There is no
    loss."""
    for index in reversed(range(len(training.strategy.parameters))):
        training.strategy.gradient_ready(index)
    return math.nan


def _barrier(training: Training, name: str) -> None:
    """A barrier of all ranks; without a transport they synchronise through the launch's folder."""
    training.context.at(training.strategy.step, "barrier")
    if training.group is not None:
        training.group.barrier()
    else:
        training.context.rendezvous.exchange(
            f"barrier-{name}", training.context.rank, training.context.world_size, True, MEET_S
        )


PLUGIN = ProgramPlugin(
    name="train",
    summary="training steps of a workload under a strategy",
    implementation=run,
    case=TrainCase,
    network=network_of,
    check_resolved=check_workload,
)
