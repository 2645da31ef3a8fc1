"""Nodes of other types in one case, as people write them: `2*xeon_e5_2666v3_x2@0.5, 1*p5@0.4`."""

from __future__ import annotations

import re
from dataclasses import dataclass

ENTRY = re.compile(r"([0-9]+)\*([A-Za-z0-9_-]+)@([0-9.eE+-]+)")


@dataclass(frozen=True, slots=True)
class OtherNodes:
    """So many nodes of another type, and the share of its peak rate that their ranks reach."""

    count: int
    profile: str
    efficiency: float


def other_nodes(text: str) -> tuple[OtherNodes, ...]:
    """Parses them. Raises ValueError, with what is wrong and how it is written."""
    return tuple(_entry(part.strip()) for part in text.split(","))


def _entry(text: str) -> OtherNodes:
    matched = ENTRY.fullmatch(text)
    if matched is None:
        raise ValueError(f"{text!r} is no COUNT*NODE_TYPE@EFFICIENCY, as 2*xeon_e5_2666v3_x2@0.5")
    try:
        count, efficiency = int(matched[1]), float(matched[3])
    except ValueError:
        raise ValueError(f"{text!r}: {matched[3]!r} is no number") from None
    if count < 1 or not 0 < efficiency <= 1:
        raise ValueError(f"{text!r}: give at least one node, and a share of the peak rate above 0 and at most 1")
    return OtherNodes(count, matched[2], efficiency)
