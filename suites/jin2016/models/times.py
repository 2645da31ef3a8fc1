"""How soon an arm reaches a given loss, beside all-reduce, and up to how many nodes it is ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import SECOND, Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_quality import loss_not_reached
from scaleproof.claims.sample_columns import columns, offsets_of
from scaleproof.core.record_schema import Record

from .beside import ALL_REDUCE, FAR, ByRanks, Value, beside_all_reduce, every_value

TARGET = 0.5
"""The given loss, nat: that of the test set, which is 2.3 for guesses."""
SOONER = 0.95
"""Of a time: so much of it, or less, is sooner."""
NOISE = 0.01
"""Of a made-up 0 or 1."""


def time_to_given_loss(record: Record, samples: pd.DataFrame) -> float | None:
    """Time until the test loss is 0.5 nat, in s; in words where it never is.

    time_to_given_loss = moment at which the line between two evaluations falls to 0.5 nat - start of the first rank

    Evaluated is the average of the replicas, or the centre. Evaluations take no time of the training. Suite: jin2016.
    """
    rows = columns(record, samples)
    starts, evaluated = rows.of("start"), rows.of("test_loss")
    if not len(starts) or not len(evaluated):
        return None
    evaluated = evaluated[np.argsort(rows.end[evaluated], kind="stable")]
    losses, moments = rows.value[evaluated], rows.end[evaluated] + offsets_of(record, rows.rank[evaluated])
    reached = np.flatnonzero(losses <= TARGET)
    if not len(reached):
        return None
    place = int(reached[0])
    moment = float(moments[place])
    if place and math.isfinite(losses[place - 1]):
        share = (TARGET - losses[place]) / (losses[place - 1] - losses[place])
        moment -= float(share * (moments[place] - moments[place - 1]))
    first = (rows.start[starts] + offsets_of(record, rows.rank[starts])).min()
    return (moment - float(first)) / SECOND


def _ratios(block: Sequence[Launch]) -> dict[str, ByRanks]:
    return beside_all_reduce(block, _time, _times_as_long)


def _time(launch: Launch) -> Value:
    return launch.value("time_to_given_loss", None, lambda: time_to_given_loss(launch.record, launch.samples))


def _times_as_long(ours: Value, theirs: Value) -> Value:
    """None: neither reaches the loss."""
    if ours is not None and theirs is not None:
        return min(max(ours / theirs, 1 / FAR), FAR)
    if theirs is not None:
        return FAR
    return None if ours is None else 1 / FAR


def time_ratio(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """How many times as long as all-reduce an asynchronous arm needs to reach the loss.

    time_ratio = time_to_given_loss of the arm / time_to_given_loss of all-reduce on as many nodes, with the same seed

    Of several arms the largest. An arm that does not reach the loss counts as 10 times later, and no ratio counts as
    more than 10 or less than 1/10; None where neither reaches it. Suite: jin2016.
    """
    return max(every_value(_ratios(block)), default=None)


def async_sooner(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """1 where every asynchronous arm reaches the loss in at most 0.95 of the time of all-reduce, else 0.

    async_sooner = [time_ratio <= 0.95], with one seed

    Suite: jin2016.
    """
    ratio = time_ratio(block)
    return None if ratio is None else float(ratio <= SOONER)


def crossing(ratios: Mapping[int, float], last: bool) -> float:
    """The number of ranks at which the ratio rises through 1, the first or the last time, on a line of both logarithms.
    Where it does not: the largest number if it is below 1 at the beginning (the first time) or at the end (the last
    time), else the smallest."""
    counts = sorted(ratios)
    logarithms = [math.log(ratios[count]) for count in counts]
    rises = [after for after in range(1, len(counts)) if logarithms[after - 1] < 0 <= logarithms[after]]
    if last and logarithms[-1] < 0 or not last and not rises and logarithms[0] < 0:
        return float(counts[-1])
    if not rises or not last and logarithms[0] >= 0:
        return float(counts[0])
    after = rises[-1 if last else 0]
    share = -logarithms[after - 1] / (logarithms[after] - logarithms[after - 1])
    return float(counts[after - 1] * (counts[after] / counts[after - 1]) ** share)


def async_ahead_to(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Nodes up to which every asynchronous arm reaches the loss before all-reduce.

    async_ahead_to = least over the arms of the number of nodes at which time_ratio first rises through 1, with one seed

    Between two numbers of nodes that were run it lies on a line of the logarithms of nodes and ratio. The smallest
    number where an arm is not ahead there; the largest where all arms stay ahead. Suite: jin2016.
    """
    found = _ratios(block).values()
    return min((crossing(ratios, False) for ratios in found if len(ratios) > 1), default=None)


def all_reduce_ahead_from(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """Nodes from which on all-reduce reaches the loss before every asynchronous arm.

    all_reduce_ahead_from = largest over the arms of the number of nodes at which time_ratio last rises through 1, with
    one seed

    As [async_ahead_to](async_ahead_to.md): the largest number of nodes where an arm is still ahead there. Suite:
    jin2016.
    """
    found = _ratios(block).values()
    return max((crossing(ratios, True) for ratios in found if len(ratios) > 1), default=None)


def made_up_time(wanted: Wanted) -> MadeUp:
    """A launch that reaches the loss after this time."""
    return _reaching(possible(wanted.known))


def _reaching(seconds: float) -> MadeUp:
    return events(Event("start"), Event("test_loss", seconds, seconds, ranks=(0,), value=TARGET))


def _asynchronous(wanted: Wanted, times_as_long: float) -> MadeUp:
    return _reaching(1.0 if wanted.case.arm == ALL_REDUCE else times_as_long)


def made_up_ratio(wanted: Wanted) -> MadeUp:
    """A block whose asynchronous arms need so many times as long as all-reduce."""
    return _asynchronous(wanted, possible(wanted.known, 1 / FAR, FAR))


def made_up_sooner(wanted: Wanted) -> MadeUp:
    """A block whose asynchronous arms need half the time of all-reduce, or twice."""
    sooner = round(wanted.known)
    if abs(wanted.known - sooner) > NOISE:
        raise ImpossibleValue("it is 0 or 1")
    return _asynchronous(wanted, 0.5 if sooner else 2.0)


def made_up_crossing(wanted: Wanted) -> MadeUp:
    """A block whose asynchronous arms are ahead up to so many nodes."""
    counts = [case.ranks for case in wanted.block]
    nodes = possible(wanted.known, min(counts), max(counts))
    return _asynchronous(wanted, math.sqrt(wanted.case.ranks / nodes))


METRICS = [
    Metric(
        "time_to_given_loss",
        "s",
        "lower",
        launch=time_to_given_loss,
        made_up=made_up_time,
        instead=loss_not_reached(TARGET),
    ),
    Metric(
        "time_ratio",
        "x",
        "lower",
        block=time_ratio,
        clocked=True,
        noise_of=("time_to_given_loss",),
        made_up=made_up_ratio,
        range=(0.0, math.inf),
    ),
    Metric(
        "async_sooner",
        "bool",
        "higher",
        block=async_sooner,
        clocked=True,
        noise_of=("time_to_given_loss",),
        made_up=made_up_sooner,
    ),
    *(
        Metric(
            function.__name__,
            "nodes",
            None,
            block=function,
            clocked=True,
            noise_of=("time_to_given_loss",),
            made_up=made_up_crossing,
        )
        for function in (async_ahead_to, all_reduce_ahead_from)
    ),
]
