"""The mathematics of all ranks in one process: each replica by itself in the framework, which gives the bits of
processes, or many replicas together as one stacked model, which is faster and equal within rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Protocol

import numpy as np

from scaleproof.pipelines.stage_learner import SizedStages, StageLearner
from scaleproof.programs.stages import computed, division_of_case, stage_times
from scaleproof.spec.case import TrainCase
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.data import Batch, Data, initial_parameters, open_every_rank
from scaleproof.workloads.learner import Learner, NoLearner, model_learner, share_of
from scaleproof.workloads.profile import Profile
from scaleproof.workloads.replay import NoData
from scaleproof.workloads.stacked import stacked_model
from scaleproof.workloads.stacked_contract import StackedModel, flat, momentum_step

LEAST = 8
"""Rows that are computed by themselves: a call for fewer takes longer than to copy them."""


class Learners(Protocol):
    """Of all ranks. `of`: each rank's learner; `data`: what it trains on."""

    @property
    def of(self) -> Sequence[Learner]: ...
    @property
    def data(self) -> Sequence[Data]: ...

    def begin(self, rank: int, step: int) -> None:
        """A gradient at the parameters that the rank has now. It is in the rank's learner only after `end`."""

    def end(self, rank: int) -> float:
        """The loss of the gradient that the rank has begun."""

    def renew(self, rank: int) -> None:
        """The rank has a successor, which begins with the first parameters and has begun nothing."""


class Alone:
    """Each replica by itself."""

    def __init__(self, case: TrainCase, seed: int) -> None:
        network = network_of(case)
        self.data: Sequence[Data] = _data(case, seed)
        self._new = partial(model_learner, case, network, seed)
        self._models = [self._new() for _ in range(case.ranks)]
        self.of: Sequence[Learner] = self._models
        self._losses = [math.nan] * case.ranks

    def begin(self, rank: int, step: int) -> None:
        """See Learners."""
        self._losses[rank] = self._models[rank].compute(self.data[rank].batch(step))

    def end(self, rank: int) -> float:
        """See Learners."""
        return self._losses[rank]

    def renew(self, rank: int) -> None:
        """See Learners."""
        self._models[rank] = self._new()


class Stacked:
    """Gradients that are begun are computed together as soon as one of them is needed."""

    def __init__(self, case: TrainCase, seed: int) -> None:
        network = network_of(case)
        self.data: Sequence[Data] = _data(case, seed)
        self._model = stacked_model(network, case.framework, case.threads_per_rank)
        self._start = flat(initial_parameters(network, seed))
        self._rows = np.tile(self._start, (case.ranks, 1))
        self._gradients, self._velocities = np.zeros_like(self._rows), np.zeros_like(self._rows)
        self.of: Sequence[Learner] = [
            Row(self._model, case, self._rows[one], self._gradients[one], self._velocities[one])
            for one in (slice(rank, rank + 1) for rank in range(case.ranks))
        ]
        self._begun_at = np.empty_like(self._rows)
        """Parameters at which each rank has begun its gradient."""
        self._batches: dict[int, Batch] = {}
        """Of ranks whose gradients are begun and not computed."""
        self._losses = np.full(case.ranks, np.nan, np.float32)

    def begin(self, rank: int, step: int) -> None:
        """See Learners."""
        self._begun_at[rank] = self._rows[rank]
        self._batches[rank] = self.data[rank].batch(step)

    def end(self, rank: int) -> float:
        """See Learners."""
        if rank in self._batches:
            self._compute()
        return float(self._losses[rank])

    def _compute(self) -> None:
        """Neighbouring rows are computed where they lie, others are copied together and back."""
        ranks, apart = sorted(self._batches), list[int]()
        for neighbours in _runs(ranks):
            if len(neighbours) < LEAST:
                apart += neighbours
                continue
            rows = slice(neighbours[0], neighbours[-1] + 1)
            batches = [self._batches[rank] for rank in neighbours]
            self._losses[rows] = self._model.gradients(self._begun_at[rows], batches, self._gradients[rows]).losses
        if apart:
            computed = self._model.gradients(self._begun_at[apart], [self._batches[rank] for rank in apart])
            self._losses[apart], self._gradients[apart] = computed
        self._batches.clear()

    def renew(self, rank: int) -> None:
        """See Learners."""
        self._batches.pop(rank, None)  # whoever has begun it is gone
        self._rows[rank] = self._start
        self._gradients[rank] = self._velocities[rank] = 0


def _runs(ranks: Sequence[int]) -> Iterator[list[int]]:
    """Parts of ascending numbers without gaps."""
    for _, part in groupby(enumerate(ranks), lambda each: each[1] - each[0]):
        yield [rank for _, rank in part]


class Row:
    """Implements Learner on one row of the stacked parameters."""

    share = 1.0

    def __init__(
        self, model: StackedModel, case: TrainCase, row: np.ndarray, gradient: np.ndarray, velocity: np.ndarray
    ) -> None:
        """All (1, n)."""
        self.parameters, self.gradient = row[0], gradient[0]
        self._model, self._case = model, case
        self._stepped = row, velocity, gradient

    def own(self, piece: slice) -> None:
        """See Learner."""
        self.share = share_of(piece, self.parameters)
        row, velocity, gradient = self._stepped
        self._stepped = row[:, piece], velocity[:, piece], gradient[:, piece]

    def update(self) -> None:
        """See Learner."""
        momentum_step(*self._stepped, self._case.learning_rate, self._case.momentum)

    def accuracy(self, batch: Batch, reference: Batch | None = None) -> float:
        """See Learner."""
        return self._model.accuracy(self.parameters, batch, reference)

    def loss(self, batch: Batch) -> float:
        """See Learner."""
        return float(self._model.gradients(self.parameters[None], [batch]).losses[0])


class Nothing:
    """No mathematics: only times."""

    def __init__(self, case: TrainCase) -> None:
        self.of: Sequence[Learner] = [NoLearner(network_of(case), case.shrink) for _ in range(case.ranks)]
        self.data: Sequence[Data] = [NoData() for _ in range(case.ranks)]

    def begin(self, rank: int, step: int) -> None:
        """See Learners."""

    def end(self, rank: int) -> float:
        """See Learners."""
        return math.nan

    def renew(self, rank: int) -> None:
        """See Learners."""


def _data(case: TrainCase, seed: int) -> list[Data]:
    """Servers have the first worker's, to evaluate with."""
    workers: list[Data] = [*open_every_rank(case, network_of(case), seed)]
    return [workers[0]] * (case.ranks - case.workers) + workers


class Stages:
    """Of ranks that hold stages of the network: their passes compute, and no rank has a whole gradient or a
    successor."""

    def __init__(self, case: TrainCase, seed: int, profile: Profile) -> None:
        division = division_of_case(case)
        times, ranks = stage_times(case, division, profile), range(case.ranks)
        self.data: Sequence[Data] = [NoData()] * case.ranks
        if case.compute != "real":
            self.of: Sequence[StageLearner] = [SizedStages(case, division, rank, times) for rank in ranks]
            return
        shares: list[Data] = [*open_every_rank(case, network_of(case), seed)]
        self.data = [shares[division.group(rank)] for rank in ranks]
        self.of = [computed(case, division, rank, seed, self.data[rank], times) for rank in ranks]


def learners_of(case: TrainCase, seed: int, profile: Profile) -> Learners | Stages:
    """The mathematics that the case asks for."""
    if case.replicas is not None and case.replicas.division is not None:
        return Stages(case, seed, profile)
    if case.compute != "real":
        return Nothing(case)
    if case.value("fabric.mathematics", "stacked") == "alone":
        return Alone(case, seed)
    return Stacked(case, seed)
