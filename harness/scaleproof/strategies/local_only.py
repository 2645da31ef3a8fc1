"""No communication: every rank trains only on its slice. This is the control arm, which shows the cost of a step
without any exchange."""

from __future__ import annotations

from collections.abc import Callable

from scaleproof.rank_programs.effects import Compute
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.strategies.base import Strategy
from scaleproof.strategies.step_program import Passed, Plan, Step


class LocalOnly(Strategy):
    """Replicas differ after the first step; gradients are those of the local mean loss."""

    @property
    def gradient_scale(self) -> float:
        """1, for the gradient of the local mean loss."""
        return 1.0

    def gradient_ready(self, index: int) -> None:
        """Nothing to exchange."""

    def finish(self, update: Callable[[], None]) -> None:
        """See Strategy."""
        self.apply(update)


def simulated_step(plan: Plan, passed: Passed, update: Compute, across: bool) -> Step:
    """Only computing."""
    for _, before, after in passed:
        yield Compute(before + after, event="backward")
    yield update
    return {}


PLUGIN = StrategyPlugin(
    name="local_only",
    summary="no communication: the control arm",
    implementation=LocalOnly,
    communicates=False,
    collective_calls=False,
    simulated_step=simulated_step,
)
