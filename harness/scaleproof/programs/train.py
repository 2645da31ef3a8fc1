"""Training steps of a workload under a strategy, the same in every framework."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import leave, log_samples, mark, timed_iterations
from scaleproof.programs.handicap import finished
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.plugins import ProgramPlugin
from scaleproof.strategies.base import Strategy
from scaleproof.transports.contract import Collectives
from scaleproof.workloads.case_network import check_workload, network_of
from scaleproof.workloads.data import Batch, Data, initial_parameters
from scaleproof.workloads.inputs.training import checked_data
from scaleproof.workloads.model_contract import Model
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import FILE, read
from scaleproof.workloads.replay import Lateness, NoData, ReplayModel

MEET_S = 600.0
"""How long ranks wait for each other outside the timed region; a rank that is gone ends the launch long before."""
ARTIFACT_LIMIT = 200_000
"""Parameters up to which rank 0 keeps the trained values in the record (0.8 MB)."""


class Diverged(RuntimeError):
    """A loss is not finite."""

    code = "diverged"


@dataclass(slots=True)
class Training:
    """What one rank works with."""

    context: RankContext
    case: TrainCase
    network: Network
    data: Data
    model: Model
    group: Collectives | None
    strategy: Strategy


def run(context: RankContext) -> None:
    """Set up, start from rank 0's parameters, train, check that all replicas are equal, leave."""
    case = context.case
    assert isinstance(case, TrainCase)
    training = _set_up(context, case)
    try:
        _same_start(training)
        losses = _steps(training)
        _publish_losses(training, losses)
        _end(training)
    finally:
        training.strategy.close()
        if training.group is not None:
            leave(context, training.group)


def _set_up(context: RankContext, case: TrainCase) -> Training:
    network = network_of(case)
    context.at(-1, "data")
    data = _data(context, case, network)
    context.at(-1, "connect")
    # Before the model: TensorFlow's multi-worker strategy must be made before anything else of TensorFlow runs in a
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
    """This rank's network in the case's framework, or asleep for as long as its layers take."""
    if case.compute == "replay":
        return ReplayModel(strategy.network, read(context.folder / FILE), case.dilation, case.shrink)
    values = strategy.own_values(initial_parameters(network, context.seed))
    model: Model = registry.load("framework", case.framework)(
        strategy.network,
        values,
        learning_rate=case.learning_rate,
        momentum=case.momentum,
        threads=case.threads_per_rank,
    )
    return model


def _same_start(training: Training) -> None:
    """Broadcast the first rank's parameters to all that hold the same (outside the timed region) and check their
    equality; a replayed network has none."""
    context = training.context
    if training.case.compute == "replay":
        training.strategy.start(training.model)
        return
    values = [np.ascontiguousarray(value) for value in training.model.values()]
    if training.group is not None:
        context.at(-1, "broadcast")
        for family in training.strategy.replica_groups:
            for index in family.indices:
                assert family.group is not None
                family.group.broadcast(values[index].reshape(-1)).wait()
        training.model.load(values)
    _check_equal(training, "initial_parameters")
    training.strategy.start(training.model)


def _steps(training: Training) -> list[tuple[int, bool, int, float]]:
    """All steps; per step its number, whether it is warm-up, the time of its end and the local mean loss."""
    context, case, losses = training.context, training.case, []
    for step in timed_iterations(context, case.warmup, case.steps):
        if step == case.warmup:
            _barrier(training, "start")
            mark(context, "start", step, training.group)
            if isinstance(training.model, ReplayModel):
                training.model.late = Lateness()
        losses.append((step, context.recorder.warmup, *_step(training, step)))
        if case.evaluate_every and (step + 1) % case.evaluate_every == 0:
            _evaluate(training, step)
            _barrier(training, f"evaluated-{step}")
    mark(context, "end", case.warmup + case.steps - 1, training.group)
    return losses


def _step(training: Training, step: int) -> tuple[int, float]:
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
    return ended, loss


def _compute(training: Training, step: int, batch: Batch) -> float:
    """Forward and backward pass; the local mean loss, NaN where they are replayed."""
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
    """The control arm without a pass: all gradients (zeros, as the buckets were made) are ready at once, last layer
    first; there is no loss."""
    for index in reversed(range(len(training.strategy.parameters))):
        training.strategy.gradient_ready(index)
    return math.nan


def _evaluate(training: Training, step: int) -> None:
    """Test accuracy on rank 0, with the ranks that hold the rest of its network; outside any step."""
    test: Batch = training.data.test
    if training.context.rank in training.strategy.evaluators and len(test.labels):
        moment, accuracy = now(), training.model.accuracy(training.strategy.own_batch(test))
        if training.context.rank == 0:
            training.context.recorder.add("test_accuracy", step, moment, moment, value=accuracy)


def _publish_losses(training: Training, losses: Sequence[tuple[int, bool, int, float]]) -> None:
    """After the timed region every rank records the mean over ranks, which is the loss of the global minibatch, at the
    time its own step ended."""
    context = training.context
    if training.case.compute != "real":
        return
    everyone = context.rendezvous.exchange(
        "losses", context.rank, context.world_size, [loss for *_, loss in losses], MEET_S
    )
    for (step, warmup, ended, _), values in zip(losses, zip(*everyone, strict=True), strict=True):
        context.recorder.warmup = warmup
        context.recorder.add("loss", step, ended, ended, value=math.fsum(values) / len(values))
    context.recorder.warmup = False


def _end(training: Training) -> None:
    """Checks and artifacts after the timed region."""
    context, case = training.context, training.case
    if isinstance(training.model, ReplayModel):
        context.facts["late"] = asdict(training.model.late)
        return
    if training.group is not None:
        _check_equal(training, "final_parameters")
    last = case.warmup + case.steps - 1
    if not case.evaluate_every or (last + 1) % case.evaluate_every:
        _evaluate(training, last)
    if training.network.parameters > ARTIFACT_LIMIT:
        return
    values = training.strategy.whole_values(training.model.values())
    if context.rank == 0:
        path = context.folder / "parameters.npy"
        np.save(path, np.concatenate([value.reshape(-1) for value in values]))
        context.artifacts["parameters.npy"] = path


def _check_equal(training: Training, name: str) -> None:
    """Ranks that hold the same parameters hold the same bits."""
    context, values, digests = training.context, training.model.values(), {}
    for family in training.strategy.replica_groups:
        digest = hashlib.blake2b(digest_size=16)
        for index in family.indices:
            digest.update(np.ascontiguousarray(values[index]).data)
        digests[family.name] = digest.hexdigest()
    first: dict[str, tuple[int, str]] = {}
    wrong = []
    for rank, theirs in enumerate(context.rendezvous.exchange(name, context.rank, context.world_size, digests, MEET_S)):
        for label, found in theirs.items():
            other, known = first.setdefault(label, (rank, found))
            wrong += [f"rank {rank} differs from rank {other}"] if found != known else []
    context.check(name, not wrong, wrong[0] if wrong else f"the same bits on {context.world_size} ranks")


def _barrier(training: Training, name: str) -> None:
    """All ranks are here; without a transport they meet through the launch's folder."""
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
