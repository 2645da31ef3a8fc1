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
    bounded: Callable[[Any], bool] | None = None
    """In which cases no rank gets further ahead of the slowest than a bound while they train, which ranks check
    (`Replica.bound_kept`); None: in none."""
    evaluated: Literal["first", "average", "centre", "stages"]
    """The model that is evaluated: that of the first rank that trains, the average of those ranks, the servers', or the
    stages of the first group of ranks together."""
    dedicated_servers: Callable[[Any], int] | None = None
    """How many of the first ranks of a case serve and train nothing; None: none."""
    shares: Callable[[Any], int] | None = None
    """Parts of a minibatch, each read by other ranks; None: one for each rank that trains."""
    batch: Callable[[Any], int] | None = None
    """Samples that a rank of a case computes at once; None: its share of a minibatch."""
    loss_ranks: Callable[[Any], int] | None = None
    """Ranks of a case that have a loss in each step; None: all that train."""
    division: Callable[[Any], Any] | None = None
    """How the ranks of a case hold stages of its network (pipelines/division.py); None: each has all of it."""
    bears: frozenset[Name] = frozenset()
    """Faults of other ranks with which training goes on, besides pauses, which all strategies bear."""

    def invariant(self, case: Any) -> Literal["equal", "bounded", "apart"]:
        """What the strategy promises of the replicas of a case."""
        if self.end == "equal":
            return "equal"
        return "bounded" if self.bounded is not None and self.bounded(case) else "apart"
