"""Whether one rank is slower than the others. A rank's own time in a step is the step without waiting and exchanging:
all ranks of a synchronous step take equally long, and only their own times show which rank the others wait for
(docs/decomposition.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics_split import part_arrays
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase

ALPHA = 0.05
SHARE = 0.05
"""A straggler's own time is longer than the median of the other ranks by more than this share."""
PERMUTATIONS, BATCH = 9999, 1000
"""Number of random permutations, and how many are drawn at a time to bound the memory."""
SEED = 20160222


@dataclass(frozen=True, slots=True)
class SlowestRank:
    """The slowest rank; a straggler when the difference is significant over launches and larger than SHARE. `p` None:
    too few launches for a test."""

    rank: int
    share: float
    """Own time above the median of the other ranks, over launches in the median."""
    p: float | None
    n: int

    @property
    def straggler(self) -> bool:
        """Whether the slowest rank is a straggler."""
        return self.p is not None and self.p <= ALPHA and self.share > SHARE


def rank_times(record: Record, samples: pd.DataFrame) -> pd.DataFrame | None:
    """Per rank (index), mean s per timed step: `step`, `own` (without exposed communication), `imbalance`. None where
    nothing was trained, or traced."""
    if not isinstance(record.case, TrainCase) or not times_count(record):
        return None
    ranks, times = _own_times(record, samples)
    return pd.DataFrame(times, index=pd.Index(ranks, name="rank")) if len(ranks) else None


def _own_times(record: Record, samples: pd.DataFrame) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Ranks that trained, and the columns of `rank_times`."""
    parts = part_arrays(record, samples)
    counts = np.bincount(parts["rank"])
    ranks = np.flatnonzero(counts)
    totals = {
        "step": parts["step"],
        "own": parts["step"] - parts["communication"],
        "imbalance": parts.get("imbalance", np.zeros_like(parts["step"])),
    }
    return ranks, {
        name: np.bincount(parts["rank"], values)[ranks] / counts[ranks] / SECOND for name, values in totals.items()
    }


def rank_spread(record: Record, samples: pd.DataFrame) -> float | None:
    """Longest over shortest mean own time of a rank, minus 1. None with one rank.

        rank_spread = longest / shortest own time of a rank - 1
        own time    = mean step - exposed communication, per rank

    In a synchronous step all ranks take equally long, since each waits for the slowest. Only a rank's own time, without
    exposed communication and waiting, shows which rank is slow. If all ranks have equal work, 0 is perfect balance. The
    value is for one launch. Whether a rank is generally slower than the others needs several launches:
    docs/decomposition.md, stragglers.
    """
    if not isinstance(record.case, TrainCase) or not times_count(record):
        return None
    own = _own_times(record, samples)[1]["own"]
    return float(own.max() / own.min() - 1) if len(own) > 1 and own.min() > 0 else None


def made_up_spread(wanted: Wanted) -> MadeUp:
    """A step of 1 s on all ranks but the last, which takes longer by this share."""
    last = wanted.case.ranks - 1
    if not last:
        raise ImpossibleValue("one rank has no spread")
    slow = Event("step", 0.0, 1.0 + possible(wanted.known), ranks=(last,))
    return events(Event("step", 0.0, 1.0, ranks=tuple(range(last))), slow, Event("forward"))


def find(own: Sequence[Sequence[float]]) -> SlowestRank | None:
    """The slowest rank. `own`: own times, a row per launch, a column per rank. None with fewer than two ranks or
    without launches.

    The launch is the unit. Under the null hypothesis ranks are exchangeable within a launch, so their values are
    permuted there; the statistic is the largest sum of within-launch ranks, which accounts for the choice of the
    slowest among all of them. With 2 ranks at least 6 launches are needed to reach 5 %.
    """
    from scipy.stats import rankdata  # half a second, which a table of metrics does not need

    values = np.asarray(own, dtype=float)
    if values.ndim != 2 or values.shape[1] < 2 or not len(values):
        return None
    ranked = rankdata(values, axis=1)
    slowest = int(ranked.sum(axis=0).argmax())
    others = np.median(np.delete(values, slowest, axis=1), axis=1)
    share = float(np.median(values[:, slowest] / others) - 1)
    return SlowestRank(slowest, share, _p(ranked) if len(values) > 1 else None, len(values))


def _p(ranked: np.ndarray) -> float:
    """The p-value, exact where there are no more permutations than PERMUTATIONS."""
    from scipy.stats import permutation_test

    test = permutation_test(
        tuple(ranked.T),
        lambda *ranks, axis: np.max([rank.sum(axis=axis) for rank in ranks], axis=0),
        permutation_type="samples",
        alternative="greater",
        n_resamples=PERMUTATIONS,
        batch=BATCH,
        vectorized=True,
        rng=SEED,
    )
    return float(test.pvalue)
