"""Local SGD: every rank steps by itself, and every few steps all ranks take the average of their parameters."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import Charge, Collective, Effect, Gradient, Update
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.replica import Replica, check_replicas
from scaleproof.strategies.strategy_options import PeriodOptions


class LocalSgd(Replica):
    """The sum goes through the same collective in processes and in virtual time."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        tau = self.case.options_of(PeriodOptions).tau
        for step in self.steps():
            yield Gradient(step)
            yield Update()
            if (step + 1) % tau == 0:
                yield Collective("all_reduce", self.x)
                self.x *= np.float32(1 / self.world_size)
                yield Charge(self.x.nbytes)


PLUGIN = StrategyPlugin(
    name="local_sgd",
    summary="every rank steps by itself; every few steps all take the average",
    implementation=LocalSgd,
    options=PeriodOptions,
    check=check_replicas,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="lockstep", end="apart", evaluated="average"),
    tags=synchronous_tags("DP", "data"),
)
