"""The stages of a pipeline that a rank holds, in processes, and the training of the whole network beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.pipelines.division import Division
from scaleproof.pipelines.stage_learner import RealStages, SizedStages, StageLearner, StageTimes, times_of
from scaleproof.spec.case import TrainCase
from scaleproof.spec.relative_times import relative_times
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.data import Batch, Data, open_every_rank
from scaleproof.workloads.learner import model_learner
from scaleproof.workloads.pace import SECOND, Burn, Pace, Sleep
from scaleproof.workloads.profile import FILE, Profile, read


def stages_of_rank(context: RankContext, case: TrainCase, data: Data) -> tuple[StageLearner, Pace | None]:
    """Computed or, with a pace, replayed."""
    division = division_of_case(case)
    if case.compute != "replay":
        return computed(case, division, context.rank, context.seed, data, {}), None
    pace: Pace = Burn() if case.compute_options.burns else Sleep()
    profile = read(context.folder / FILE)
    times = relative_times(case)
    longer = case.dilation * (times[context.rank] if times else 1.0)
    return ReplayedStages(case, division, context.rank, profile, pace, longer), pace


def division_of_case(case: TrainCase) -> Division:
    """How its ranks hold the network's stages."""
    traits = cast(ReplicaTraits, case.replicas)
    assert traits.division is not None
    return cast(Division, traits.division(case))


def computed(case: TrainCase, division: Division, rank: int, seed: int, data: Data, times: StageTimes) -> RealStages:
    """A rank's stages, computed for real."""
    updates = case.minibatch if case.value("strategy.scheme") != "pipedream" else case.batch * division.groups
    return RealStages(
        case,
        division,
        rank,
        seed,
        data,
        scale=lambda samples: samples / updates,
        recompute=case.value("strategy.activations") == "recomputed",
        times=times,
    )


def stage_times(case: TrainCase, division: Division, profile: Profile) -> StageTimes:
    """Those that the case states, else of the layers."""
    forward, backward = case.value("strategy.forward_ms"), case.value("strategy.backward_ms")
    if forward is None:
        return times_of(division, profile)
    return dict.fromkeys(range(len(division.stages)), (forward / 1e3, backward / 1e3))


class ReplayedStages(SizedStages):
    """An update takes its share of the network's."""

    def __init__(
        self, case: TrainCase, division: Division, rank: int, profile: Profile, pace: Pace, longer: float
    ) -> None:
        super().__init__(case, division, rank, stage_times(case, division, profile))
        self._pace, self._update_ns = pace, profile.update_s.median * self.share * longer * SECOND

    def update(self) -> None:
        """See StageLearner."""
        self._pace.wait_until(self._pace.now() + round(self._update_ns))


def difference_alone(case: TrainCase, seed: int, parameters: np.ndarray) -> float:
    """Largest difference between these parameters and those of one process that has trained the whole network with the
    same micro-batches."""
    network = network_of(case)
    learner, shares = model_learner(case, network, seed), open_every_rank(case, network, seed)
    total = np.zeros_like(learner.gradient)
    for step in range(case.warmup + case.steps):
        total.fill(0)
        for micro_batch in _micro_batches(shares, step, case.batch):
            learner.compute(micro_batch)
            total += learner.gradient * np.float32(case.batch / case.minibatch)
        learner.gradient[:] = total
        learner.update()
    return float(np.abs(learner.parameters - parameters).max())


def _micro_batches(shares: Sequence[Data], step: int, size: int) -> list[Batch]:
    found = []
    for share in shares:
        whole = share.batch(step)
        found += [
            Batch(whole.inputs[begin : begin + size], whole.labels[begin : begin + size])
            for begin in range(0, len(whole.labels), size)
        ]
    return found
