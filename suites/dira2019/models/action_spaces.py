"""How many schedules there are."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Published
from scaleproof.claims.metrics import Metric


class Schedule(Arguments):
    """What a scheduler chooses at once."""

    systems: Annotated[int, Field(ge=1, le=1000, description="Plants.")]
    channels: Annotated[int, Field(ge=1, le=1000, description="Channels, of which each goes to one plant.")]
    ordered: bool = Field(description="Whether it matters which plant has which channel.")


def action_space(x: Schedule, rows: Published) -> float:
    """Number of schedules that give each of M channels to a plant of its own, of N plants (suite dira2019).

    action_space = N! / (N - M)!, where it matters which plant has which channel; else N! / (N - M)! / M!

    A scheduler that chooses a whole schedule at once has an output for each. Arithmetic, no measurement.
    """
    return float(math.perm(x.systems, x.channels) if x.ordered else math.comb(x.systems, x.channels))


METRICS = [Metric("action_space", "actions", "lower", model=action_space, x=Schedule)]
