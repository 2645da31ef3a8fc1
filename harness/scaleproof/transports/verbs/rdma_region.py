"""A region in registered memory: where every rank's part of it begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from scaleproof.transports.contract import Region


@dataclass(slots=True)
class RdmaRegion(Region):
    """`starts`: offset of the region in every rank's registered memory; `queue_pair_index`: the queue pair that its
    writes use."""

    starts: list[int] = field(default_factory=list, repr=False)
    queue_pair_index: int = 0
