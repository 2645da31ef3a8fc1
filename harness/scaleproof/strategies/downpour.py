"""DOWNPOUR (Dean et al. 2012, as easgd2015 compares it): a worker adds up its steps, and every few steps pushes the sum
to the centre and takes the centre's parameters."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Charge, Effect, Gradient
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.centre import BORNE, GET, MOVE, Centre
from scaleproof.strategies.replica import SERVERS, check_servers, dedicated_servers
from scaleproof.strategies.strategy_options import PeriodOptions


class DownpourOptions(PeriodOptions):
    """Options of DOWNPOUR."""

    dedicated_servers: int = Field(1, ge=1, description=SERVERS)


class Downpour(Centre):
    """Steps are plain SGD, without momentum."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        return self.hold() if self.worker < 0 else self._work()

    def _work(self) -> Generator[Effect, Any, None]:
        tau, pushed = self.case.options_of(DownpourOptions).tau, np.zeros_like(self.x)
        yield from self.start_successor()
        for step in self.steps():
            yield Gradient(step)
            self.g *= np.float32(-self.case.learning_rate)
            self.x += self.g
            pushed += self.g
            yield Charge(3 * self.x.nbytes)
            if (step + 1) % tau == 0:
                yield from self.ask(MOVE, pushed)
                pushed[:] = 0
                self.x[:] = yield from self.ask(GET)
                yield Charge(self.x.nbytes)
        yield from self.leave()


PLUGIN = StrategyPlugin(
    name="downpour",
    summary="asynchronous: workers push the sum of their steps to a centre and take its parameters",
    implementation=Downpour,
    options=DownpourOptions,
    check=check_servers,
    collective_calls=False,
    rank_program=ReplicaTraits(
        pace="own", end="apart", evaluated="centre", dedicated_servers=dedicated_servers, bears=BORNE
    ),
    tags=asynchronous_tags("centralized", "asynchronous"),
)
