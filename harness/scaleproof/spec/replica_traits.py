"""What a strategy that is a program of each rank (strategies/replica.py) says of its replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from scaleproof.spec.faults import Name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaTraits:
    """How replicas go, how they end, and which model is theirs."""

    pace: Literal["lockstep", "own"]
    """Whether all ranks are in the same step."""
    end: Literal["equal", "apart"]
    """How far apart replicas are when all ranks have ended: the same bits, or any distance."""
    evaluated: Literal["first", "average", "centre"]
    """The model that is evaluated: that of the first rank that trains, the average of those ranks, or the servers'."""
    dedicated_servers: Callable[[Any], int] | None = None
    """How many of the first ranks of a case serve and train nothing; None: none."""
    bears: frozenset[Name] = frozenset()
    """Faults of other ranks with which training goes on, besides pauses, which all strategies bear."""
