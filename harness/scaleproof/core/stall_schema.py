"""The part of run.json that says how a launch stalled: who was silent first, and what the others waited for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from scaleproof.core.node_schema import RecordPart

SilenceReason = Literal["failed", "waited_for", "deadlock", "furthest_behind", "all_ended"]


class RankDoing(RecordPart):
    """What one rank was doing when the supervisor noticed the failure."""

    rank: int
    step: int
    operation: str
    waits_for: int = Field(description="the rank that it waited for; -1: none, or a library that does not say which")
    still_s: float = Field(description="seconds since it last moved")
    stack: list[str] = Field(
        default_factory=list,
        description="Python frames of all its threads as faulthandler prints them, or its traceback",
    )
    no_stack: str = Field("", description="why there is no stack, for people; empty: there is one")


class Stall(RecordPart):
    """The flight recorder of a launch that stalled or lost a rank: the rank that was silent first, and what all other
    ranks waited for."""

    first_silent: int = Field(description="the rank that was silent first; -1: none")
    why: str = Field(description="how that was decided, for people")
    ranks: list[RankDoing]
    reason: SilenceReason | None = Field(
        None, description="how that was decided; None: the record is older than this field"
    )
    path: list[int] = Field(
        default_factory=list,
        description="ranks of which each waited for the next one, to the first silent rank; a circle: a deadlock",
    )
