"""Evaluation of strategies whose replicas differ, after the run: which model is evaluated, and how far apart replicas
are."""

from __future__ import annotations

import math
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
class Evaluation:
    """Snapshots of one evaluation, of all ranks that take part, in rank order."""

    snapshots: tuple[Snapshot, ...]

    def of_model(self, case: TrainCase) -> tuple[Snapshot, ...]:
        """Those of the ranks whose parameters are evaluated."""
        return self.snapshots[_of_model(case)]

    def samples(self, case: TrainCase) -> int | None:
        """Training samples that are in the model; None: only the workers of a centre know."""
        traits = case.replicas
        if traits is None or traits.evaluated == "centre":
            return None
        if traits.evaluated in ("first", "stages"):
            return (self.of_model(case)[0].step + 1) * case.minibatch
        return sum(each.step + 1 for each in self.of_model(case)) * case.batch

    def model(self, case: TrainCase) -> np.ndarray:
        """The parameters that are evaluated."""
        servers, traits = case.ranks - case.workers, case.replicas
        evaluates = traits.evaluated if traits else "first"
        if evaluates == "centre" and servers:
            parts = parts_of(len(self.snapshots[0].values), servers)
            return np.concatenate([each.values[part] for each, part in zip(self.snapshots, parts, strict=False)])
        if evaluates == "stages":
            return self.models(case)[0]
        if evaluates != "average":  # the first rank that trains, or that holds the centre beside its training
            return self.snapshots[servers].values
        replicas = np.stack([each.values for each in self.snapshots[servers:]])
        average: np.ndarray = replicas.mean(axis=0, dtype=np.float64)
        return average.astype(np.float32)

    def replicas(self, case: TrainCase) -> tuple[Snapshot, ...]:
        """Those of the ranks that train. A first one that holds the centre beside its training has kept the centre."""
        servers, traits = case.ranks - case.workers, case.replicas
        beside = not servers and traits is not None and traits.evaluated == "centre"
        return self.snapshots[servers + beside :]

    def models(self, case: TrainCase) -> list[np.ndarray]:
        """Parameters of all replicas of the network."""
        traits = case.replicas
        if traits is None or traits.division is None:
            return [each.values for each in self.replicas(case)]
        return list(traits.division(case).models([each.values for each in self.snapshots]))

    def distance(self, case: TrainCase) -> float:
        """Consensus distance: root of the mean square of the replicas' distances from their average, over that
        average's norm."""
        replicas = np.stack(self.models(case)).astype(np.float64)
        average = replicas.mean(axis=0)
        apart = float(np.sqrt(((replicas - average) ** 2).sum(axis=1).mean()))
        # along an axis NumPy adds by itself; BLAS divides the sum by its threads, and the last digits depend on them
        return apart / float(np.linalg.norm(average, axis=0)) if apart else 0.0


def _of_model(case: TrainCase) -> slice:
    """The ranks whose parameters are evaluated."""
    servers, traits = case.ranks - case.workers, case.replicas
    evaluates = traits.evaluated if traits else "first"
    if evaluates == "centre":
        return slice(0, max(servers, 1))  # 0 servers: the first rank holds it beside its training
    if evaluates == "stages":
        return slice(0, case.ranks)
    return slice(servers, servers + 1 if evaluates == "first" else case.ranks)


def evaluations(case: TrainCase, kept: Sequence[Sequence[Snapshot]]) -> Iterator[Evaluation]:
    """Evaluation k has the k-th snapshot of every rank that was there then; a rank that ended before has its last one,
    and so has each in the last evaluation. `kept`: of each rank that lives, the last at its end."""
    for number in range(max(each[-1].number for each in kept[_of_model(case)])):
        there = [each for each in kept if each[0].number <= number]
        if there:
            yield Evaluation(tuple(each[min(number - each[0].number, len(each) - 1)] for each in there))
    yield Evaluation(tuple(each[-1] for each in kept))


def evaluated(case: TrainCase, kept: Sequence[Sequence[Snapshot]], learner: Learner, data: Data) -> Iterator[Value]:
    """Test accuracy and loss, and the consensus distance, at every evaluation. The learner's parameters are lost."""
    for snapshots in evaluations(case, kept):
        of_model, counted = snapshots.of_model(case), snapshots.samples(case)
        step, moment = max(each.step for each in of_model), max(each.moment for each in of_model)
        yield Value("consensus_distance", step, moment, snapshots.distance(case))
        if counted is not None:
            yield Value("evaluated_samples", step, moment, counted)
        if not len(data.test.labels):
            continue
        learner.parameters[:] = snapshots.model(case)
        if not np.isfinite(learner.parameters).all():
            yield Value("test_accuracy", step, moment, 0.0)
            yield Value("test_loss", step, moment, math.nan)
        else:
            yield Value("test_accuracy", step, moment, learner.accuracy(data.test, data.reference))
            yield Value("test_loss", step, moment, learner.loss(data.test))


def agreement(case: TrainCase, last: Evaluation) -> tuple[bool, str]:
    """Whether the replicas have ended as near to each other as their strategy says, and what was compared."""
    trained = last.snapshots[case.ranks - case.workers :]
    infinite = sum(not np.isfinite(each.values).all() for each in last.snapshots)
    if infinite:
        where = f"parameters of {infinite} of {len(last.snapshots)} ranks are not finite"
        return case.compute == "real", f"nothing compared: the training diverged, {where}"
    traits = case.replicas
    if traits is not None and traits.division is not None:
        models = last.models(case)
        equal = sum(each.tobytes() == models[0].tobytes() for each in models)
        return equal == len(models), f"{equal} of {len(models)} replicas of the stages have the bits of the first"
    if traits is not None and traits.invariant(case) == "equal":
        wrong = [n for n, each in enumerate(trained) if each.values.tobytes() != trained[0].values.tobytes()]
        where = f"rank {wrong[0] + case.ranks - case.workers} differs from the first" if wrong else ""
        return not wrong, where or f"the same bits on {len(trained)} ranks"
    return True, f"all parameters of {len(trained)} ranks are finite; consensus distance {last.distance(case):.3g}"
