"""Slow momentum (SlowMo: Wang, Tantia, Ballas, Rabbat, ICLR 2020, arXiv 1910.00643): every rank steps by itself, and
every few steps the average of all ranks is not taken as it is: what it differs from the one before goes into a momentum
of its own."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Charge, Collective, Effect, Gradient, Update
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.replica import Replica, check_replicas
from scaleproof.strategies.strategy_options import PeriodOptions


class SlowMomentumOptions(PeriodOptions):
    """Options of slow momentum."""

    slow_momentum: float = Field(0.5, ge=0, lt=1, description="Share of the last slow step that goes into the next.")
    slow_rate: float = Field(1.0, gt=0, description="Factor on the slow step; with slow_momentum 0 and 1.0: local SGD.")


class SlowMomentum(Replica):
    """The optimiser's own momentum goes on through the average. The paper divides the difference by the learning rate
    and multiplies the step by it, which cancels out where it does not change."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        options = self.case.options_of(SlowMomentumOptions)
        before, slow = self.x.copy(), np.zeros_like(self.x)
        for step in self.steps():
            yield Gradient(step)
            yield Update()
            if (step + 1) % options.tau == 0:
                yield Collective("all_reduce", self.x)
                self.x *= np.float32(1 / self.world_size)
                slow *= np.float32(options.slow_momentum)
                slow += before - self.x
                before -= np.float32(options.slow_rate) * slow
                self.x[:] = before
                yield Charge(5 * self.x.nbytes)


PLUGIN = StrategyPlugin(
    name="slow_momentum",
    summary="local SGD whose average steps with a momentum of its own",
    implementation=SlowMomentum,
    options=SlowMomentumOptions,
    check=check_replicas,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="lockstep", end="apart", evaluated="average"),
    tags=synchronous_tags("DP", "data"),
)
