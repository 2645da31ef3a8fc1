"""A region of a rank's shared memory, as other ranks see it."""

from __future__ import annotations

from dataclasses import dataclass, field

from scaleproof.transports.contract import Region


@dataclass(slots=True)
class MappedRegion(Region):
    """A region with the start of its counterparts in every rank's memory."""

    starts: list[int] = field(default_factory=list, repr=False)
