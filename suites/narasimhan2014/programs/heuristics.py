"""The heuristics of the paper, by name: after how many iterations samples are first looked through, and how gamma of
dropped samples is made good (Narasimhan et al. 2014)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal, cast

from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError

Way = Literal["none", "single", "multi", "never"]
WAYS: tuple[Way, ...] = ("single", "multi", "never")
FIRST = ("2", "500", "1000", "5pc", "10pc", "50pc", "beyond")
"""First thresholds, the paper's: iterations, or per cent of the samples; and one that no run reaches (a control)."""
ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class Heuristic:
    """`way`: none: nothing is dropped; single: once at the loose tolerance, then nothing is dropped any more; multi:
    dropping goes on; never: dropped samples never come back (a control). `parts`: the next look is after as many
    iterations as samples are active, over so many; None: those of the case."""

    name: str
    first: float
    way: Way
    parts: int | None = None


def heuristic(name: str, samples: int) -> Heuristic:
    """By name: `original`, or a threshold and a way, as `5pc_multi`, and `5pc_multi_of_256`: with the looks of 256
    processes, whatever the case says. SpecError for another one."""
    if name == ORIGINAL:
        return Heuristic(name, math.inf, "none")
    matched = re.fullmatch(r"(?:(\d+)|(\d+)pc|(beyond))_([a-z]+)(?:_of_([1-9]\d*))?", name)
    if matched is None or matched[4] not in WAYS:
        known = [ORIGINAL, *(f"{first}_{way}" for first in FIRST for way in WAYS)]
        raise SpecError(f"options.variants: unknown heuristic {name!r}; {registry.nearest(name, known)}")
    count, percent, way = matched[1], matched[2], cast(Way, matched[4])
    parts = int(matched[5]) if matched[5] else None
    if count:
        return Heuristic(name, float(count), way, parts)
    return Heuristic(name, max(1.0, samples * float(percent) / 100) if percent else math.inf, way, parts)
