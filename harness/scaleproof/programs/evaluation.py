"""Evaluation of strategies whose replicas differ, after the run: which model is evaluated, and how far apart replicas
are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scaleproof.spec.case import TrainCase
from scaleproof.strategies.replica import Snapshot, parts_of
from scaleproof.workloads.data import Data
from scaleproof.workloads.learner import Learner


class Value(NamedTuple):
    """A value of an evaluation: event, step, true time in s, value."""

    event: str
    step: int
    moment: float
    value: float


@dataclass(frozen=True, slots=True)
class Together:
    """Snapshots of one evaluation, of all ranks in rank order. Its step and moment are the last of those ranks whose
    parameters are evaluated: nobody waits for the others to evaluate a model."""

    snapshots: tuple[Snapshot, ...]

    def step(self, case: TrainCase) -> int:
        """The most steps that a rank had done."""
        return max(each.step for each in self.snapshots[evaluated_ranks(case)])

    def moment(self, case: TrainCase) -> float:
        """When the last rank had its snapshot."""
        return max(each.moment for each in self.snapshots[evaluated_ranks(case)])

    def model(self, case: TrainCase) -> np.ndarray:
        """The parameters that are evaluated."""
        servers = case.ranks - case.workers
        traits = case.replicas
        evaluates = traits.evaluated if traits else "first"
        if evaluates == "centre":
            parts = parts_of(len(self.snapshots[0].values), servers)
            return np.concatenate([each.values[part] for each, part in zip(self.snapshots, parts, strict=False)])
        if evaluates == "first":
            return self.snapshots[servers].values
        replicas = np.stack([each.values for each in self.snapshots[servers:]])
        average: np.ndarray = replicas.mean(axis=0, dtype=np.float64)
        return average.astype(np.float32)

    def distance(self, case: TrainCase) -> float:
        """Consensus distance: root of the mean square of the replicas' distances from their average, over that
        average's norm."""
        replicas = np.stack([each.values for each in self.snapshots[case.ranks - case.workers :]]).astype(np.float64)
        average = replicas.mean(axis=0)
        apart = float(np.sqrt(((replicas - average) ** 2).sum(axis=1).mean()))
        return apart / float(np.linalg.norm(average)) if apart else 0.0


def evaluated_ranks(case: TrainCase) -> slice:
    """Ranks whose parameters make the model that is evaluated: servers, or those that train."""
    servers, traits = case.ranks - case.workers, case.replicas
    centre = traits is not None and traits.evaluated == "centre"
    return slice(0, servers) if centre else slice(servers, case.ranks)


def together(kept: Sequence[Sequence[Snapshot]]) -> Iterator[Together]:
    """Evaluation k has the k-th snapshot of every rank; a rank that ended before has its last one. `kept`: of each
    rank, the last at its end."""
    for number in range(max(map(len, kept))):
        yield Together(tuple(each[min(number, len(each) - 1)] for each in kept))


def evaluated(case: TrainCase, kept: Sequence[Sequence[Snapshot]], learner: Learner, data: Data) -> Iterator[Value]:
    """Test accuracy and loss, and the consensus distance, at every evaluation. The learner's parameters are lost."""
    for snapshots in together(kept):
        step, moment = snapshots.step(case), snapshots.moment(case)
        yield Value("consensus_distance", step, moment, snapshots.distance(case))
        if len(data.test.labels):
            learner.parameters[:] = snapshots.model(case)
            yield Value("test_accuracy", step, moment, learner.accuracy(data.test, data.reference))
            yield Value("test_loss", step, moment, learner.loss(data.test))


def agreement(case: TrainCase, last: Together) -> tuple[bool, str]:
    """Whether the replicas have ended as near to each other as their strategy says, and what was compared."""
    trained = last.snapshots[case.ranks - case.workers :]
    finite = all(np.isfinite(each.values).all() for each in last.snapshots)
    if not finite:
        return False, "a parameter is not finite"
    traits = case.replicas
    if traits is not None and traits.end == "equal":
        wrong = [n for n, each in enumerate(trained) if each.values.tobytes() != trained[0].values.tobytes()]
        where = f"rank {wrong[0] + case.ranks - case.workers} differs from the first" if wrong else ""
        return not wrong, where or f"the same bits on {len(trained)} ranks"
    return True, f"all parameters of {len(trained)} ranks are finite; consensus distance {last.distance(case):.3g}"
