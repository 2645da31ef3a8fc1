"""Per-launch metrics of `train`: throughput over the common wall time, first use, and how well it learned."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scaleproof.claims.calls_in_order import calls_in_order
from scaleproof.claims.finished_launch import SECOND, of_workers, times_count, wall_s
from scaleproof.claims.learning_curve import diverged_at
from scaleproof.claims.made_up import Event, MadeUp, Wanted, events, possible, trained
from scaleproof.claims.metrics_split import step_split
from scaleproof.claims.sample_columns import (
    Columns,
    columns,
    index_in_group,
    largest,
    medians,
    numbered,
    of_last_launch,
    offsets_of,
)
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.networks import Network


def throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Training throughput in samples per second, of all ranks over the common wall time.

    throughput = samples of all ranks / (last `end` - first `start` over all ranks)

    Samples are the timed `step` rows of every rank that trains times its share of the global minibatch. The wall time
    is common to all ranks and measured on rank 0's clock, so a rank that starts or finishes late lowers the
    throughput. It is never one rank's rate times the number of ranks. Ranks that
    go at their own pace begin the timed steps one by one: there it runs from the first one's start to the last one's
    end. Warm-up steps are in the record and not included here. Traced launches
    and arms without compute have no throughput. Evaluations between steps count in the wall time; experiments that
    measure speed have no evaluations. Over launches, the median is taken.

    The throughput cannot exceed what the cores can compute: compare it with [forward_throughput](forward_throughput.md)
    and with `alone` at the same number of ranks.

    A sample is an image or a frame.
    """
    case = record.case
    if not isinstance(case, TrainCase) or case.compute == "none" or not times_count(record):
        return None  # steps that compute nothing train nothing
    wall = _timed_s(record, samples) if case.replicas else wall_s(record, samples)
    trained = len(of_workers(record, samples, columns(record, samples).timed("step"))) * case.batch
    return trained / wall if wall and trained else None


def _timed_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Ranks at their own pace do not begin the timed steps together: from the first one's start to the last one's end,
    in s."""
    rows = columns(record, samples)
    steps = of_workers(record, samples, rows.timed("step"))
    if not len(steps):
        return None
    offsets = offsets_of(record, rows.rank[steps])
    return float((rows.end[steps] + offsets).max() - (rows.start[steps] + offsets).min()) / SECOND


@of_last_launch
def step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Median over steps of the slowest rank's step, in s.

    step_s = median over steps of (the slowest rank's step)

    On one rank, a step runs from the first input byte to the last update. A synchronous step ends when its slowest rank
    ends. Warm-up steps are in the record and not included here. The parts of the [split](other_s.md) are means, because
    means add up. This metric is a median, because one slow step does not change a median. The sum of the parts and this
    metric can therefore differ.
    """
    rows = columns(record, samples)
    steps = of_workers(record, samples, rows.timed("step"))
    if not len(steps) or not times_count(record):
        return None
    _, slowest = largest(rows.step[steps], rows.end[steps] - rows.start[steps])
    return float(np.median(slowest)) / SECOND


def forward_throughput(record: Record, samples: pd.DataFrame) -> float | None:
    """Samples per second of the forward pass alone, on one rank.

    forward_throughput = minibatch / forward_s (one rank only)

    The samples that one rank scores per second, computed from the forward part of its training steps. It is defined for
    1 rank only: several ranks run their forward passes at different times, so the sum of their rates is not a rate that
    ever occurs. A training step keeps activations for the backward pass, so pure inference may be faster. Warm-up steps
    are in the record and not included here.
    """
    case = record.case
    if not isinstance(case, TrainCase) or case.ranks != 1 or not times_count(record):
        return None
    split = step_split(record, samples)
    return case.minibatch / split["forward"] if split and split["forward"] else None


def train_flop(case: AnyCase) -> float | None:
    """Operations of a training step per sample, counted directly (docs/workloads.md); None where no core computes."""
    network = _computed(case)
    return None if network is None else network.train_flop


def forward_flop(case: AnyCase) -> float | None:
    """Those of the forward pass alone."""
    network = _computed(case)
    return None if network is None else network.forward_flop


def _computed(case: AnyCase) -> Network | None:
    return network_of(case) if isinstance(case, TrainCase) and case.compute == "real" and not case.replayed else None


def first_step_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Additional time of the first step compared with a steady step, in s.

    first_step_s = longest step number 0 over ranks - step_s

    In the first step, memory is touched, buffers are registered, kernels are chosen and connections are warmed up for
    the first time. The metric needs `warmup` of at least 1: a first step that is timed is part of the result and not
    reported here. It is never part of throughput or of any other metric. It contains the noise of one step, so a small
    value may be negative.
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
    """Additional time of the first all-reduce of each bucket compared with its steady median, in s, on the rank where
    the sum over buckets is largest.

    first_exchange_s = max over ranks of the sum over buckets of (first all-reduce of the bucket - median of its
    timed all-reduces)

    This is the exchange's share of [first_step_s](first_step_s.md). Libraries that register each tensor at its first
    use, or negotiate its name, spend this time. Waiting for a rank whose first backward pass was longer is included.
    Systems that pay this cost at first use and systems that pay it earlier are comparable in steady state only. This
    metric shows the cost that the steady state leaves out.
    """
    if not times_count(record):
        return None
    rows = columns(record, samples)
    calls, _ = calls_in_order(rows, rows.of("communication"), rows.of("queue"))
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

    It is the mean of the ranks' local means. All ranks have equal shares, so it is also the mean over the minibatch. Of
    ranks at their own pace it is that of the last step that all of them have; in a pipeline the ranks with the last
    stage have losses. A launch that has diverged has its step in place of a number.
    The loss of one minibatch is noisy: compare curves ([max_loss_difference](max_loss_difference.md)), not end points.
    """
    if diverged_at(record, samples) is not None:
        return None
    rows, case = columns(record, samples), record.case
    losses = rows.timed("loss")
    if not isinstance(case, TrainCase) or case.replicas is None:
        return _last(rows, losses)
    steps, counts = np.unique(rows.step[losses], return_counts=True)
    whole = steps[counts == case.loss_ranks]
    return float(rows.value[losses[rows.step[losses] == whole[-1]]].mean()) if len(whole) else None


def test_accuracy(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of test samples that are classified correctly at the last evaluation.

    test_accuracy = right answers / test samples, at the last evaluation

    Where all ranks hold the same parameters (checked bit by bit after every launch) it is rank 0's replica; of
    strategies whose ranks go at their own pace it is the model that the strategy evaluates
    ([strategies](../strategies.md#programs-of-each-rank)). A launch that has diverged has its step in place of a
    number. Digits: the launch's seed selects 359 of scikit-learn's 1797 images as test samples, so one sample is 0.28
    percentage points.
    """
    if diverged_at(record, samples) is not None:
        return None
    rows = columns(record, samples)
    found = rows.of("test_accuracy")
    return float(rows.value[found[rows.end[found].argmax()]]) if len(found) else None


def _last(rows: Columns, indices: np.ndarray) -> float | None:
    """The value of the last step's first row."""
    return float(rows.value[indices[rows.step[indices].argmax()]]) if len(indices) else None


def made_up_throughput(wanted: Wanted) -> MadeUp:
    """A launch that trains at this rate."""
    return trained(wanted.case, wanted.known)


def made_up_forward_throughput(wanted: Wanted) -> MadeUp:
    """A launch of one rank whose forward pass takes the whole step."""
    took = wanted.case.value("minibatch") / possible(wanted.known, 1e-9)
    return events(Event("step", 0.0, took), Event("forward", 0.0, took))


def made_up_first_step(wanted: Wanted) -> MadeUp:
    """A launch whose first step takes this much longer than a steady one of at least a second."""
    steady = 1.0 + max(0.0, -wanted.known)
    first = Event("step", 0.0, steady + wanted.known, warmup=True)
    return events(first, Event("step", 10.0, 10.0 + steady, step=1))


def made_up_first_exchange(wanted: Wanted) -> MadeUp:
    """A launch whose first all-reduce takes this much longer than a steady one of at least a second."""
    steady = 1.0 + max(0.0, -wanted.known)
    first = Event("communication", 0.0, steady + wanted.known, warmup=True)
    return events(first, Event("communication", 10.0, 10.0 + steady, step=1))


def made_up_loss(wanted: Wanted) -> MadeUp:
    """A launch that ends with this loss."""
    having = wanted.case.loss_ranks if isinstance(wanted.case, TrainCase) else 0
    last = tuple(range(wanted.case.ranks - having, wanted.case.ranks))
    return events(Event("loss", ranks=last or None, value=wanted.known))


def made_up_accuracy(wanted: Wanted) -> MadeUp:
    """A launch that ends with this accuracy."""
    return events(Event("test_accuracy", ranks=(0,), value=possible(wanted.known, 0, 1)))
