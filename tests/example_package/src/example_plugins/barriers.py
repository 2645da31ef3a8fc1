"""A program: barriers over a transport, one after the other. A sample is one of them on one rank."""

from typing import Literal

from pydantic import Field

from scaleproof.collectives.group import open_group
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import timed_iterations, timed_region
from scaleproof.spec.common_case import CommonCase, Transport
from scaleproof.spec.plugins import ProgramPlugin


class BarriersCase(CommonCase):
    """Fields that these cases have beside those of all cases."""

    program: Literal["barriers"] = "barriers"
    transport_options: Transport = Field(alias="transport", description="How bytes move.")
    iterations: int = Field(20, gt=0, description="Timed barriers.")
    warmup: int = Field(3, ge=0, description="Barriers before the timed region.")


def run(context: RankContext) -> None:
    """See the module."""
    case = context.case
    assert isinstance(case, BarriersCase)
    group = open_group(context)
    with timed_region(context, group):
        for iteration in timed_iterations(context, case.warmup, case.iterations):
            start = now()
            group.barrier()
            context.recorder.add("barrier", iteration, start, now())


PLUGIN = ProgramPlugin(name="barriers", summary="barriers, one after the other", implementation=run, case=BarriersCase)
