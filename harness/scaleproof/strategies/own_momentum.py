"""Steps of a replica whose strategy says where the gradient is taken, or what happens to its momentum: then the last
step is kept here, and not by the optimiser."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Charge, Effect, Gradient, Update
from scaleproof.spec.plugins import Options
from scaleproof.strategies.replica import Replica

MomentumForm = Literal["plain", "nesterov"]


class MomentumOptions(Options):
    """Options of strategies whose steps a Stepper makes."""

    momentum: MomentumForm = Field(
        "plain",
        description="plain: the gradient is taken at the parameters; nesterov: at the parameters plus the case's "
        "momentum times the last step, which is taken back before the step (Nesterov, as in jin2016).",
    )


class Stepper:
    """Gradients and steps of a replica. `velocity`: its last step, where it is kept here: v = m v - lr g, x = x + v, as
    the optimiser does; None: the optimiser keeps its own. `shared`: whether others see the last step."""

    def __init__(self, replica: Replica, form: MomentumForm, shared: bool = False) -> None:
        self._replica, self._ahead = replica, form == "nesterov"
        self.velocity = np.zeros_like(replica.x) if self._ahead or shared else None

    def gradient(self, step: int) -> Generator[Effect, Any, None]:
        """The parameters are the same before and after it."""
        if self.velocity is None or not self._ahead:
            yield Gradient(step)
            return
        x = self._replica.x
        kept = x.copy()
        x += np.float32(self._replica.case.momentum) * self.velocity
        yield Charge(2 * x.nbytes)
        yield Gradient(step)
        x[:] = kept

    def update(self) -> Generator[Effect, Any, None]:
        """One step along the gradient."""
        if self.velocity is None:
            yield Update()
            return
        replica, velocity = self._replica, self.velocity
        velocity *= np.float32(replica.case.momentum)
        velocity -= np.float32(replica.case.learning_rate) * replica.g
        replica.x += velocity
        yield Charge(3 * velocity.nbytes)
