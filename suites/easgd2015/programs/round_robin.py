"""Elastic averaging in turn on a quadratic, as the paper analyses its stability: rank 0 is the centre, and the workers
step one after the other, each with the centre as the one before has left it.

The objective is x^2 / 2 in each of SIDE coordinates, from random starts, in double precision. Options: `eta`, the
learning rate, and `share`, alpha as a share of the bound (4 - 2 eta) / (4 - eta). Event `norm`: the largest coordinate
of a rank after a round. A state that grows is a result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scaleproof.rank_programs.effects import Charge, Effect, Receive, Send
from scaleproof.rank_programs.rank_program import RankProgram

CENTRE = 0
TURN, DIFFERENCE = 0, 1
SIDE = 16


class RoundRobin(RankProgram):
    """A step is a round: one turn of every worker."""

    def main(self) -> Generator[Effect, Any, None]:
        """See RankProgram."""
        self.eta = float(self.case.options["eta"])
        self.alpha = float(self.case.options["share"]) * (4 - 2 * self.eta) / (4 - self.eta)
        self.x = np.random.default_rng(self.rank).standard_normal(SIDE)
        return self._take_turns() if self.rank == CENTRE else self._work()

    def _take_turns(self) -> Generator[Effect, Any, None]:
        for _ in self.steps():
            for worker in range(1, self.world_size):
                yield Send(worker, self.x, TURN)
                self.x = self.x + (yield Receive(worker, DIFFERENCE)).value
                yield Charge(self.x.nbytes)
            self._clock.note("norm", float(np.abs(self.x).max()))

    def _work(self) -> Generator[Effect, Any, None]:
        for _ in self.steps():
            centre = (yield Receive(CENTRE, TURN)).value
            difference = self.alpha * (self.x - centre)
            self.x = self.x - self.eta * self.x - difference
            yield Charge(self.x.nbytes)
            yield Send(CENTRE, difference, DIFFERENCE)
            self._clock.note("norm", float(np.abs(self.x).max()))


PROGRAM = RoundRobin
