"""Results of program train after the timed steps: losses of all ranks, test accuracy, equality of replicas, trained
parameters."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.spec.case import TrainCase
from scaleproof.strategies.base import Strategy
from scaleproof.transports.contract import Collectives
from scaleproof.workloads.data import Batch, Data
from scaleproof.workloads.model_contract import Model
from scaleproof.workloads.networks import Network
from scaleproof.workloads.replay import ReplayModel

MEET_S = 600.0
"""How long ranks wait for each other outside the timed region. The launch ends much earlier if a rank is lost."""
ARTIFACT_LIMIT = 200_000
"""Networks with at most this many parameters have their trained values in the record (0.8 MB)."""


class StepLoss(NamedTuple):
    """A finished step: its number, whether it is warm-up, its end, and the rank's local mean loss."""

    number: int
    warmup: bool
    ended_ns: int
    loss: float


@dataclass(slots=True)
class Training:
    """All objects of one rank's training."""

    context: RankContext
    case: TrainCase
    network: Network
    data: Data
    model: Model
    group: Collectives | None
    strategy: Strategy


def evaluate(training: Training, step: int) -> None:
    """Records the test accuracy on rank 0, computed together with the ranks that hold the rest of its network. Called
    between steps. Where ranks divide layers, batch normalisations use the test set's own mean and variance."""
    test: Batch = training.data.test
    if training.context.rank in training.strategy.evaluators and len(test.labels):
        moment, divided = now(), training.case.plugin("strategy").divides_layers
        reference = None if divided else training.data.reference
        accuracy = training.model.accuracy(training.strategy.own_batch(test), reference)
        if training.context.rank == 0:
            training.context.recorder.add("test_accuracy", step, moment, moment, value=accuracy)


def publish_losses(training: Training, losses: Sequence[StepLoss]) -> None:
    """After the timed region every rank records the mean loss over ranks, which is the loss of the global minibatch, at
    the end of its own step."""
    context = training.context
    if training.case.compute != "real":
        return
    own = [step.loss for step in losses]
    everyone = context.rendezvous.exchange("losses", context.rank, context.world_size, own, MEET_S)
    for step, values in zip(losses, zip(*everyone, strict=True), strict=True):
        context.recorder.warmup = step.warmup
        context.recorder.add("loss", step.number, step.ended_ns, step.ended_ns, value=math.fsum(values) / len(values))
    context.recorder.warmup = False


def check_and_keep(training: Training) -> None:
    """After the timed region: checks that replicas are equal, records the accuracy and the parameters of small
    networks."""
    context, case = training.context, training.case
    if isinstance(training.model, ReplayModel):
        context.facts["late"] = asdict(training.model.late)
        return
    if training.group is not None:
        check_equal(training, "final_parameters")
    last = case.warmup + case.steps - 1
    if not case.evaluate_every or (last + 1) % case.evaluate_every:
        evaluate(training, last)
    if training.network.parameters > ARTIFACT_LIMIT:
        return
    values = training.strategy.whole_values(training.model.values())
    if context.rank == 0:
        path = context.folder / "parameters.npy"
        np.save(path, np.concatenate([value.reshape(-1) for value in values]))
        context.artifacts["parameters.npy"] = path


def check_equal(training: Training, name: str) -> None:
    """Checks that ranks with replicas of the same parameters hold the same bits."""
    context, values, digests = training.context, training.model.values(), {}
    for replicas in training.strategy.replica_groups:
        digest = hashlib.blake2b(digest_size=16)
        for index in replicas.indices:
            digest.update(np.ascontiguousarray(values[index]).data)
        digests[replicas.name] = digest.hexdigest()
    first: dict[str, tuple[int, str]] = {}
    holders = Counter[str]()
    wrong = list[str]()
    everyone = context.rendezvous.exchange(name, context.rank, context.world_size, digests, MEET_S)
    for rank, of_rank in enumerate(everyone):
        holders.update(of_rank.keys())  # of a mapping it would add the digests
        for label, digest_of_rank in of_rank.items():
            other, expected = first.setdefault(label, (rank, digest_of_rank))
            if digest_of_rank != expected:
                wrong.append(f"rank {rank} differs from rank {other}")
    context.check(
        name, not wrong, wrong[0] if wrong else comparison_in_words(list(holders.values()), context.world_size)
    )


def comparison_in_words(holders: Sequence[int], world_size: int) -> str:
    """What was compared, in words. `holders`: the ranks of each group of replicas."""
    if set(holders) == {world_size}:
        return f"the same bits on {world_size} ranks"
    least, most = min(holders), max(holders)
    ranks = f"{least}" if least == most else f"{least} to {most}"
    return f"the same bits in each of {len(holders)} groups of replicas, of {ranks} ranks"
