"""Gossip when it is worth it: a rank exchanges with a random peer only when its parameters have changed enough since
its last exchange. Our own reading of ho2018, whose abstract says no more than that."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from scaleproof.rank_programs.effects import Charge, Effect
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import StrategyPlugin
from scaleproof.spec.replica_traits import ReplicaTraits
from scaleproof.spec.tags import asynchronous_tags
from scaleproof.strategies.gossip import BORNE, Gossip, GossipOptions
from scaleproof.strategies.gossip import check as check_gossip
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.learner import sizes_of


class TriggeredOptions(GossipOptions):
    """Options of triggered gossip; `tau` is the least number of steps between two exchanges."""

    theta: float = Field(
        ge=0, description="Change of the parameters since the last exchange, over their size then, that starts one."
    )
    measure: Literal["l2", "layer_max", "mean_absolute"] = Field(
        "l2",
        description="l2: norm of the change over the norm of the parameters; layer_max: the largest of these over "
        "tensors; mean_absolute: mean absolute change over mean absolute parameter.",
    )
    decay: float = Field(
        1.0, gt=0, le=1, description="theta falls by this factor each step, as a learning rate does that decays."
    )


class TriggeredGossip(Gossip):
    """The change is counted anew from the parameters after an exchange."""

    def main(self) -> Generator[Effect, Any, None]:
        """See Replica."""
        options = self.case.options_of(TriggeredOptions)
        ends = np.cumsum(sizes_of(network_of(self.case), self.case.shrink)).tolist()
        self.pieces = [slice(low, high) for low, high in zip([0, *ends[:-1]], ends, strict=True)]
        yield from self.start_successor()
        last, last_step, theta = self.x.copy(), -1, options.theta
        for step in self.steps():
            yield from self.stepper.gradient(step)
            yield from self.stepper.update()
            change = self._change(last, options.measure)
            yield Charge(2 * self.x.nbytes)
            self.note("change", change)
            if change >= theta and step - last_step >= options.tau:
                yield from self.exchange()
                last, last_step = self.x.copy(), step
            elif options.form != "pull":
                yield from self.take_arrived(options.weight)
            theta *= options.decay
            yield from self.end_step()

    def _change(self, last: np.ndarray, measure: str) -> float:
        if measure == "mean_absolute":
            return float(np.abs(self.x - last).mean() / max(np.abs(last).mean(), np.finfo(np.float32).tiny))
        pieces = self.pieces if measure == "layer_max" else [slice(None)]
        return max(_relative(self.x[piece], last[piece]) for piece in pieces)


def _relative(now: np.ndarray, before: np.ndarray) -> float:
    # along an axis NumPy adds by itself; BLAS divides the sum by its threads, and the last digits depend on them
    change, size = np.linalg.norm(now - before, axis=0), np.linalg.norm(before, axis=0)
    return float(change / max(size, np.finfo(np.float32).tiny))


def check(case: TrainCase) -> None:
    """Raises FieldError for a rank without a peer, parameters that never change, and a form without a trigger."""
    check_gossip(case)
    options = case.options_of(TriggeredOptions)
    if options.averaged != "after_step":
        raise FieldError("strategy.averaged", "the trigger looks at the parameters after a step; leave it out")
    if case.compute != "real" and options.theta > 0:
        message = "where nothing is learned parameters do not change, and nothing triggers; use gossip with a period"
        raise FieldError("strategy.theta", message)


PLUGIN = StrategyPlugin(
    name="triggered_gossip",
    summary="gossip when the local parameters have changed enough since the last exchange",
    implementation=TriggeredGossip,
    options=TriggeredOptions,
    check=check,
    collective_calls=False,
    rank_program=ReplicaTraits(pace="own", end="apart", evaluated="average", bears=BORNE),
    tags=asynchronous_tags("decentralized", "asynchronous", "p2p-mesh"),
)
