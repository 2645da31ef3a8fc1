"""How the ranks of a case hold the stages of its network: groups of as many ranks as stages, each with its own samples,
and inside each group the workers of a schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from scaleproof.pipelines.schedule import Pass, Schedule
from scaleproof.pipelines.schemes import schedule_of
from scaleproof.workloads.networks import Network
from scaleproof.workloads.stages import Balance, cut


@dataclass(frozen=True, slots=True)
class Part:
    """A stage that a rank holds, and where its parameters lie among the rank's."""

    pipeline: int
    stage: int
    network: Network
    elements: slice


@dataclass(frozen=True)
class Division:
    """`stages`: the network's; `groups`: of ranks, each with a schedule of its own samples."""

    schedule: Schedule
    stages: tuple[Network, ...]
    groups: int

    @property
    def ranks(self) -> int:
        """Of all groups."""
        return self.groups * len(self.stages)

    def worker(self, rank: int) -> int:
        """Its number in its group."""
        return rank % len(self.stages)

    def group(self, rank: int) -> int:
        """The group of a rank."""
        return rank // len(self.stages)

    def order(self, rank: int) -> tuple[Pass, ...]:
        """Its passes in an iteration."""
        return self.schedule.orders[self.worker(rank)]

    def rank_of(self, group: int, pipeline: int, stage: int) -> int:
        """Who holds a stage."""
        return group * len(self.stages) + self._workers[pipeline, stage]

    @cached_property
    def _workers(self) -> dict[tuple[int, int], int]:
        return self.schedule.workers_of()

    def holders(self, stage: int) -> tuple[int, ...]:
        """Ranks that hold replicas of a stage, in order."""
        return tuple(
            sorted(
                self.rank_of(group, pipeline, stage)
                for group in range(self.groups)
                for pipeline in range(self.schedule.pipelines)
            )
        )

    def models(self, values: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """All replicas of the network, from the parameters of all ranks, (n,) each; that of the first group and
        pipeline comes first."""
        for group in range(self.groups):
            for pipeline in range(self.schedule.pipelines):
                yield np.concatenate([self._held(values, group, pipeline, stage) for stage in range(len(self.stages))])

    def _held(self, values: Sequence[np.ndarray], group: int, pipeline: int, stage: int) -> np.ndarray:
        rank = self.rank_of(group, pipeline, stage)
        part = next(each for each in self.parts(rank) if (each.pipeline, each.stage) == (pipeline, stage))
        return values[rank][part.elements]

    def parts(self, rank: int) -> tuple[Part, ...]:
        """The stages of a rank, whose parameters lie one after the other."""
        parts, begin = list[Part](), 0
        for pipeline, stage in self.schedule.held(self.worker(rank)):
            network = self.stages[stage]
            parts.append(Part(pipeline, stage, network, slice(begin, begin + network.parameters)))
            begin += network.parameters
        return tuple(parts)


@lru_cache(maxsize=64)
def division_of(
    network: Network, ranks: int, *, scheme: str, stages: int, micro_batches: int, pairs: int, balance: Balance
) -> Division:
    """SpecError, with what would do, where the schedule or the cut cannot be."""
    schedule = schedule_of(scheme, stages, micro_batches, pairs)
    return Division(schedule, cut(network, stages, balance), ranks // stages)
