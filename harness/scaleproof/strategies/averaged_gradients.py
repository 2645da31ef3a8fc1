"""All-reduce SGD as a program of each rank (jin2016): every step all ranks take the mean of their gradients, and step.
What `sync` does, on every clock of rank programs, with stragglers and delays."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import Charge, Collective, Effect
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import synchronous_tags
from scaleproof.strategies.own_momentum import MomentumOptions, Stepper
from scaleproof.strategies.replica import Replica, check_replicas


class AveragedGradients(Replica):
    """All replicas have the same bits after every step."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        stepper = Stepper(self, self.case.options_of(MomentumOptions).momentum)
        for step in self.steps():
            yield from stepper.gradient(step)
            yield Collective("all_reduce", self.g)
            self.g *= np.float32(1 / self.world_size)
            yield Charge(self.g.nbytes)
            yield from stepper.update()


PLUGIN = StrategyPlugin(
    name="averaged_gradients",
    summary="synchronous: all ranks step with the mean of their gradients, as programs of each rank",
    implementation=AveragedGradients,
    options=MomentumOptions,
    check=check_replicas,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="lockstep", end="equal", evaluated="first"),
    tags=synchronous_tags("DP", "data"),
)
