"""Per-launch metrics of `train`: throughput over the common wall time, first use, and how well it learned."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, times_count, wall_s
from scaleproof.claims.metrics_split import step_split
from scaleproof.claims.sample_columns import (
    Columns,
    columns,
    index_in_group,
    largest,
    medians,
    numbered,
    of_last_launch,
)
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import TrainCase


def throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s: those of all ranks over the common wall time, never one rank's times the number of ranks.

    throughput = samples of all ranks / (last `end` - first `start` over all ranks)

    Samples are the timed `step` rows of every rank times its share of the global minibatch. The wall time is common to
    all ranks, taken on rank 0's clock, so a rank that starts late or finishes late costs what it costs. Never one
    rank's rate times the number of ranks. Warm-up steps are kept in the record and left out here. A traced launch and
    an arm without compute have none. Evaluations between steps lie inside the wall time; experiments that measure
    speed have none. Over launches: the median.

    May it exceed a bound? Not the compute of the cores: compare with [forward_throughput](forward_throughput.md) and
    with `alone` at the same number of ranks.

    A sample is an image or a frame.
    """
    case = record.case
    if not isinstance(case, TrainCase) or case.compute == "none" or not times_count(record):
        return None  # steps that compute nothing train nothing
    wall = wall_s(record, samples)
    trained = len(columns(record, samples).timed("step")) * (case.minibatch // case.ranks)
    return trained / wall if wall and trained else None


@of_last_launch
def step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Median over steps of the slowest rank's step, in s.

    step_s = median over steps of (the slowest rank's step)

    A step runs from the first input byte to the last update on one rank. A synchronous step is over when its slowest
    rank is done. Warm-up steps are kept in the record and left out here. The parts of the [split](other_s.md) are
    means, which add up; this is a median, which one slow step does not move. The two need not agree.
    """
    rows = columns(record, samples)
    steps = rows.timed("step")
    if not len(steps) or not times_count(record):
        return None
    _, slowest = largest(rows.step[steps], rows.end[steps] - rows.start[steps])
    return float(np.median(slowest)) / SECOND


def forward_throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per s of the forward pass alone; of one rank only, since ranks run their forward passes at different
    times.

    forward_throughput = minibatch / forward_s        (one rank only)

    Samples that one rank scores per second, from the forward part of its training steps. Defined for 1 rank: several
    ranks run their forward passes at different times, and a sum of their rates would be a rate that nobody saw. A
    training step keeps activations for the backward pass, so pure inference may be faster. Warm-up steps are kept in
    the record and left out here.
    """
    case = record.case
    if not isinstance(case, TrainCase) or case.ranks != 1 or not times_count(record):
        return None
    split = step_split(record, samples)
    return case.minibatch / split["forward"] if split and split["forward"] else None


def first_step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """What the first step costs above a steady one, in s: memory touched and buffers registered for the first time.
    Only where it is warm-up.

    first_step_s = longest step number 0 over ranks - step_s

    What the first step costs above a steady one: memory touched, buffers registered, kernels chosen, connections
    warmed up for the first time. Needs `warmup` of at least 1: a first step that is timed is part of the result and
    not reported here. Never part of throughput or of any other metric. Noise of a step is in it, so a small value may
    be negative.
    """
    rows = columns(record, samples)
    first = rows.of("step")
    first = first[rows.warmup[first] & (rows.step[first] == 0)]
    steady = step_s(record, samples)
    return (
        float((rows.end[first] - rows.start[first]).max()) / SECOND - steady
        if len(first) and steady is not None
        else None
    )


def first_exchange_s(record: Record, samples: pd.DataFrame) -> float | None:
    """What the first all-reduce of each bucket costs above its steady median, in s: summed over buckets, of the rank
    where that is most.

    first_exchange_s = max over ranks of the sum over buckets of (first all-reduce of the bucket - median of its timed
    all-reduces)

    The exchange's share of [first_step_s](first_step_s.md), tensor by tensor: libraries that register each tensor at
    its first use, or negotiate its name, pay here. Waiting for a rank whose first backward pass was longer is inside.
    Systems that pay at first use and systems that pay before are comparable in steady state only; this number says
    what was left out.
    """
    if not times_count(record):
        return None
    rows = columns(record, samples)
    calls = rows.of("communication")
    calls = calls[np.lexsort((rows.start[calls], rows.step[calls], rows.rank[calls]))]
    ranks, lengths, warmup = rows.rank[calls], rows.end[calls] - rows.start[calls], rows.warmup[calls]
    bucket = numbered(ranks, index_in_group(numbered(ranks, rows.step[calls])))
    first = np.flatnonzero(warmup & (rows.step[calls] == 0))
    timed_buckets, steady, _ = medians(bucket[~warmup], lengths[~warmup])
    first = first[np.isin(bucket[first], timed_buckets)]
    above = lengths[first] - steady[np.searchsorted(timed_buckets, bucket[first])]
    if not len(above):
        return None
    return max(float(above[ranks[first] == rank].sum()) for rank in np.unique(ranks[first])) / SECOND


def final_loss(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean loss over the global minibatch of the last step.

    final_loss = mean cross-entropy over the global minibatch of the last step

    Every rank's local mean, averaged over ranks; shares are equal, so this is the mean over the minibatch. One
    minibatch is noisy: compare curves ([max_loss_difference](max_loss_difference.md)), not end points.
    """
    rows = columns(record, samples)
    return _last(rows, rows.timed("loss"))


def test_accuracy(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of test samples that the last evaluation got right.

    test_accuracy = right answers / test samples, at the last evaluation, rank 0's replica

    Ranks hold the same parameters (checked bit by bit after every launch). Digits: 359 of scikit-learn's 1797 images
    are held out by the launch's seed. One sample is 0.28 percentage points.
    """
    rows = columns(record, samples)
    return _last(rows, rows.of("test_accuracy"))


def _last(rows: Columns, indices: np.ndarray) -> float | None:
    """The value of the last step's first row."""
    return float(rows.value[indices[rows.step[indices].argmax()]]) if len(indices) else None
