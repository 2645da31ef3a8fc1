"""How far peers lag behind a worker that begins a step, and how that compares with the paper's bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns, of_last_launch, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase

from . import bounds
from .progress import finished_by, in_time, seconds_of, workers


@dataclass(frozen=True, slots=True)
class Lags:
    """Of all pairs of a worker that begins a step and a peer, at that moment. `counts`: pairs by lag, rounded up;
    `longest`: most steps that a worker has finished."""

    counts: np.ndarray
    mean: float
    mean_square: float
    longest: int

    def beyond(self, staleness: int) -> float:
        """Share of lags above the staleness."""
        return float(self.counts[staleness + 1 :].sum() / self.counts.sum())


@of_last_launch
def lags_of(record: Record, samples: pd.DataFrame) -> Lags | None:
    """Lags within the case's seconds; None for a case without, and where no worker has begun a second step."""
    case = record.case
    if not isinstance(case, TrainCase) or case.seconds is None or case.replicas is None:
        return None
    rows = columns(record, samples)
    done, begun = in_time(record, rows, rows.of("finished")), rows.of("step")
    both = np.append(done, begun)
    begins = np.arange(len(both)) >= len(done)
    moments = np.append(rows.end[done], rows.start[begun]) + offsets_of(record, rows.rank[both])
    in_order = np.lexsort((begins, moments))  # what is finished at a moment counts for who begins at it
    in_order = in_order[moments[in_order] <= moments[: len(done)].max(initial=0)]
    ranks, values = rows.rank[both] - (case.ranks - case.workers), rows.value[both]
    finished, lags = np.zeros(case.workers), list[np.ndarray]()
    for place in in_order.tolist():
        worker = ranks[place]
        if not begins[place]:
            finished[worker] = values[place]
        elif finished[worker]:
            lags.append(finished[worker] - finished)
    return _summed(np.maximum(np.concatenate(lags), 0.0), len(lags), int(finished.max())) if lags else None


def _summed(lags: np.ndarray, begun: int, longest: int) -> Lags:
    """Of lags that hold a 0 of each worker that begins, to itself."""
    counts, pairs = np.bincount(np.ceil(lags).astype(int)), len(lags) - begun
    counts[0] -= begun
    return Lags(counts, float(lags.sum()) / pairs, float(np.square(lags).sum()) / pairs, longest)


def lag_mean(record: Record, samples: pd.DataFrame) -> float | None:
    """How many steps peers are behind a worker that begins a step, mean (suite psp2017).

    lag_mean = mean over begun steps and peers of max(0, steps of the worker - steps of the peer)

    Steps count when they are finished ([progress_mean](progress_mean.md)), within the case's `seconds`. First steps,
    before which nothing was finished, do not count. 0 under a bulk-synchronous barrier.
    """
    lags = lags_of(record, samples)
    return None if lags is None else lags.mean


def sample_of(case: AnyCase) -> int:
    """Peers that a worker asks; 0 without a barrier."""
    return int(case.value("strategy.sample") or 0)


def staleness_of(case: AnyCase) -> int:
    """Steps that a peer may be behind."""
    return int(case.value("strategy.staleness") or 0)


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of the paper on a number of the lags. `groups_of`: how many workers of a made-up launch are behind, and
    by how many steps, so that the number has a value; from the value, the workers, and the staleness."""

    largest: Callable[[float, int, int, int], float]
    number: Callable[[Lags, int], float]
    groups_of: Callable[[float, int, int], tuple[int, float]]

    def reached(self, block: Sequence[Launch], floor: float | None = None) -> float | None:
        """The number in the sampled launch of a repetition over the bound, which has the lags of the launch without a
        barrier."""
        free = [launch for launch in block if not sample_of(launch.record.case)]
        sampled = [launch for launch in block if sample_of(launch.record.case)]
        if len(free) != 1 or len(sampled) != 1:
            return None
        case, before, after = sampled[0].record.case, _lags(free[0]), _lags(sampled[0])
        if before is None or after is None:
            return None
        staleness = staleness_of(case)
        steps = max(after.longest, staleness + 1)
        largest = self.largest(1 - before.beyond(staleness), sample_of(case), staleness, steps)
        return self.number(after, staleness) / largest if 0 < largest < math.inf else None

    def made_up(self, wanted: Wanted) -> MadeUp:
        """A block whose launch without a barrier has a few workers far behind, and whose sampled one has so many so far
        behind as gives the wanted value."""
        case, count = wanted.case, workers(wanted.case)
        few = max(1, count // FEW)
        if count < 2:
            raise ImpossibleValue("one worker has no lag")
        if not sample_of(case):
            return _behind(case, few, APART)
        staleness = staleness_of(case)
        largest = self.largest(1 - few / (count - 1), sample_of(case), staleness, MANY)
        return _behind(case, *self.groups_of(possible(wanted.known) * largest, count, staleness))


FEW, APART = 20, 20.0
"""Of made-up launches without a barrier: one of so many workers is behind, by so many steps."""
MANY = 10_000
"""Steps of a sequence that is long for every sample."""


def _lags(launch: Launch) -> Lags | None:
    return lags_of(launch.record, launch.samples)


def _by_mean(value: float, count: int, staleness: int) -> tuple[int, float]:
    half = count // 2
    return half, value * (count - 1) / half


def _by_mean_square(value: float, count: int, staleness: int) -> tuple[int, float]:
    half = count // 2
    return half, math.sqrt(value * (count - 1) / half)


def _by_share(value: float, count: int, staleness: int) -> tuple[int, float]:
    return round(possible(value, 0.0, 1.0) * (count - 1)), float(MANY)


def _behind(case: AnyCase, behind: int, steps: float) -> MadeUp:
    """The last worker begins a step, so many steps ahead of the first ones and level with the others."""
    moment, count = seconds_of(case) / 4, workers(case)
    last = Event("step", moment, moment, ranks=(case.ranks - 1,))
    return events(Event("start"), *finished_by(case, [(behind, 0.0), (count - behind, steps)]), last)


def made_up_mean(wanted: Wanted) -> MadeUp:
    """A launch in which half of the peers are behind the one worker that begins a step."""
    count = workers(wanted.case)
    if count < 2 or not wanted.known:
        raise ImpossibleValue("of such lags")
    return _behind(wanted.case, *_by_mean(possible(wanted.known), count, 0))


_BOUNDS = {
    "mean_lag_over_bound": Bound(bounds.mean_bound, lambda lags, staleness: lags.mean, _by_mean),
    "square_lag_over_bound": Bound(bounds.square_bound, lambda lags, staleness: lags.mean_square, _by_mean_square),
    "far_lags_over_bound": Bound(bounds.beyond, Lags.beyond, _by_share),
}
_PAGES = {
    "mean_lag_over_bound": """
        Mean lag under a sampled barrier over the bound P1 (suite psp2017).

        mean_lag_over_bound = [lag_mean](lag_mean.md) of the sampled arm / S (r (r + 1) / 2 + a (r + 2) / (1 - a)^2)

        One value per repetition. F(r), of which a is the power beta, is the share of lags up to the staleness r in the
        arm without a barrier of the same repetition, beta and r are those of the sampled arm, and T is the most steps
        that one of its workers has finished. Above 1 the bound is broken.
        """,
    "square_lag_over_bound": """
        Mean square lag under a sampled barrier over the bound P2 (suite psp2017).

        square_lag_over_bound = mean square lag / S (r (r + 1) (2 r + 1) / 6 + a (r^2 + 4) / (1 - a)^3)

        As [mean_lag_over_bound](mean_lag_over_bound.md), with squares of lags.
        """,
    "far_lags_over_bound": """
        Share of lags above the staleness under a sampled barrier over that of the paper's distribution (psp2017).

        far_lags_over_bound = share of lags above r in the sampled arm / (1 - S F(r))

        As [mean_lag_over_bound](mean_lag_over_bound.md). The paper's distribution of lags above r, S a^(s - r), is made
        to bound the real one: a value of 1 or less says that it does.
        """,
}
METRICS = [
    Metric("lag_mean", "steps", "lower", launch=lag_mean, clocked=True, made_up=made_up_mean),
    *(
        Metric(
            name,
            "1",
            "lower",
            block=bound.reached,
            clocked=True,
            noise_of=("lag_mean",),
            noise="inside",
            made_up=bound.made_up,
            doc=_PAGES[name],
        )
        for name, bound in _BOUNDS.items()
    ),
]
