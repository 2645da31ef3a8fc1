"""Metrics of this paper only: what a trigger saves in bytes and time against exchanges in every step, what it costs in
accuracy, and whether it beats a fixed period that sends as much."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Published, RowId
from scaleproof.claims.finished_launch import Launch, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_replicas import MODEL_EVENTS, test_loss
from scaleproof.claims.metrics_train import test_accuracy, throughput
from scaleproof.claims.metrics_wire import link_bytes
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

POINTS = 100.0
"""Percentage points of a share of 1."""
KEPT_POINTS = 0.5
"""Loss of accuracy up to which accuracy counts as kept (the plan for this suite)."""


class OfRows(Arguments):
    """Rows with a reduction of time, and of the traffic that caused it, in %."""

    time: RowId = Field(description="The reduction of time.")
    traffic: RowId = Field(description="The reduction of traffic.")


def implied_share(x: OfRows, rows: Published) -> float:
    """implied_share = 100 x time saved / traffic saved

    The communication share of the baseline's time, in %, if time is saved in proportion to traffic (suite ho2018).
    """
    return 100 * rows.number(x.time) / rows.positive(x.traffic)


def saved_traffic(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """saved_traffic = 100 x (1 - bytes / bytes of the base), in %

    Bytes of one training, of all ranks (suite ho2018). Where each rank has a node of its own these are bytes that the
    kernel counted on the nodes' links, headers and warm-up included; in virtual time bytes of the models that ranks
    send each other. The base has the same seed, data and number of steps. How many exchanges there are is decided by
    how the parameters change in training, and not by the program.
    """
    ours, theirs = _traffic(launch.record, launch.samples), _traffic(base.record, base.samples)
    return None if ours is None or not theirs else 100 * (1 - ours / theirs)


def accuracy_lost(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """accuracy_lost = 100 x (test accuracy of the base - test accuracy), in percentage points

    Test accuracy is that of the average of all replicas at the end (suite ho2018). The base has the same seed, data and
    number of steps. Below 0: more accurate than the base.
    """
    ours, theirs = test_accuracy(launch.record, launch.samples), test_accuracy(base.record, base.samples)
    return None if ours is None or theirs is None else POINTS * (theirs - ours)


def accuracy_kept(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """accuracy_kept = 1 if accuracy_lost <= 0.5 percentage points, else 0

    The paper says that accuracy is preserved. 0.5 points are our tolerance (suite ho2018);
    [accuracy_lost](accuracy_lost.md) is the number itself.
    """
    lost = accuracy_lost(launch, base)
    return None if lost is None else float(lost <= KEPT_POINTS)


def time_saved(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """time_saved = 100 x (1 - time / time of the base), in %

    Time of the same number of steps, from the start of the first one to the end of the last one of all ranks (suite
    ho2018), as in [throughput](throughput.md).
    """
    ours, theirs = throughput(launch.record, launch.samples), throughput(base.record, base.samples)
    return None if not ours or not theirs else 100 * (1 - theirs / ours)


def saving_missed(launch: Launch, base: Launch, _floor: float | None = None) -> float | None:
    """saving_missed = time_saved - exchange_share of the base x saved_traffic, in percentage points

    If time is saved in proportion to traffic, this is 0 (suite ho2018). Links that are congested by fewer exchanges
    carry each of them faster, and so make it larger.
    """
    time, traffic = time_saved(launch, base), saved_traffic(launch, base)
    share = exchange_share(base.record, base.samples)
    return None if time is None or traffic is None or share is None else time - share * traffic


def exchange_share(record: Record, samples: pd.DataFrame) -> float | None:
    """exchange_share = time in which ranks wait for parameters of a peer / time of their steps

    Timed steps of all ranks, of strategies that call a peer and wait for its answer (suite ho2018).
    """
    rows = columns(record, samples)
    steps, calls = rows.timed("step"), rows.timed("call")
    if not len(steps) or not times_count(record):
        return None
    return float((rows.end[calls] - rows.start[calls]).sum() / (rows.end[steps] - rows.start[steps]).sum())


def loss_over_fixed(block: Sequence[Launch], _floor: float | None = None) -> float | None:
    """loss_over_fixed = test loss / lowest test loss of fixed periods that send as many bytes or fewer

    Below 1 the trigger is better than exchanges that are equally many and equally far apart, and than fewer of them
    (suite ho2018). In one repetition, so with the same seed and data. The loss of the period that sends as many bytes
    is interpolated between the two that send a little more and a little less, over the logarithm of bytes. None where
    no period sends less, or none sends more.
    """
    fixed, ours = list[tuple[float, float]](), list[tuple[float, float]]()
    for launch in block:
        traffic, loss = _traffic(launch.record, launch.samples), test_loss(launch.record, launch.samples)
        if traffic and loss is not None:
            (ours if _is_triggered(launch.record.case) else fixed).append((math.log(traffic), loss))
    fixed.sort()
    if len(ours) != 1 or len(fixed) < 2 or not fixed[0][0] <= ours[0][0] <= fixed[-1][0]:
        return None
    traffic, loss = ours[0]
    places, losses = zip(*fixed, strict=True)
    as_many = float(np.interp(traffic, places, losses))
    return loss / min([as_many, *(each for place, each in fixed if place < traffic)])


def _traffic(record: Record, samples: pd.DataFrame) -> float | None:
    counted = link_bytes(record)
    if counted is not None:
        return float(sum(counted.values()))
    rows = columns(record, samples)
    return float(rows.nbytes[rows.timed(*MODEL_EVENTS)].sum()) if len(rows.timed("step")) else None


def _is_triggered(case: AnyCase) -> bool:
    return case.value("strategy.theta") is not None


SENT = 1_000_000
"""Bytes that a made-up base sends, and a made-up fixed period of 1."""


def made_up_traffic(wanted: Wanted) -> MadeUp:
    """A base, and a training that saves so many % of its bytes."""
    saved = 0.0 if wanted.value is None else possible(wanted.value, -math.inf, 100)
    return events(Event("step", 0.0, 1.0), Event("call", 0.0, 0.5, nbytes=round(SENT * (1 - saved / 100))))


def made_up_lost(wanted: Wanted) -> MadeUp:
    """A base, and a training that is so many points less accurate."""
    return events(Event("test_accuracy", ranks=(0,), value=0.5 - (wanted.value or 0.0) / POINTS))


def made_up_kept(wanted: Wanted) -> MadeUp:
    """A base, and a training as accurate (1) or not (0)."""
    value = 1.0 if wanted.value is None else possible(wanted.value, 0, 1)
    if min(value, 1 - value) > 0.05:
        raise ImpossibleValue("accuracy is kept or not")
    return made_up_lost(Wanted(wanted.case, 0.0 if value > 0.5 else 10.0))


def made_up_time(wanted: Wanted) -> MadeUp:
    """A base of 1 s, and a training that saves so many % of its time."""
    saved = 0.0 if wanted.value is None else wanted.value
    if saved >= 100:
        raise ImpossibleValue("a training takes time")
    return events(Event("step", 0.0, 1 - saved / 100))


def made_up_missed(wanted: Wanted) -> MadeUp:
    """A base that exchanges for half of its time, and a training that exchanges nothing and saves so much more."""
    if wanted.value is None:
        return events(Event("step", 0.0, 1.0), Event("call", 0.0, 0.5, nbytes=SENT))
    return made_up_time(Wanted(wanted.case, 50 + wanted.value))


def made_up_share(wanted: Wanted) -> MadeUp:
    """A training whose ranks wait for this share of a step."""
    return events(Event("step", 0.0, 1.0), Event("call", 0.0, possible(wanted.known, 0, 1)))


def made_up_over_fixed(wanted: Wanted) -> MadeUp:
    """A block whose fixed periods all have a loss of 1; the trigger sends as much as a period between them."""
    periods = [case.value("strategy.tau") for case in wanted.block if not _is_triggered(case)]
    if len(periods) < 2:
        raise ImpossibleValue("a block without fixed periods")
    triggered = _is_triggered(wanted.case)
    period = math.sqrt(min(periods) * max(periods)) if triggered else wanted.case.value("strategy.tau")
    loss = Event("test_loss", ranks=(0,), value=possible(wanted.known) if triggered else 1.0)
    return events(Event("step", 0.0, 1.0), Event("call", nbytes=round(SENT / period)), loss)


_OF_TIME = ("throughput",)
SAME_SAMPLES = ("workload", "workload.width", "workload.data", "minibatch", "steps", "warmup", "momentum")
"""Fields that two launches share: each arm has a learning rate of its own (tuned.yaml)."""
METRICS = [
    Metric("implied_share", "%", None, model=implied_share, x=OfRows),
    Metric(
        "saved_traffic",
        "%",
        "higher",
        pair=saved_traffic,
        same=SAME_SAMPLES,
        made_up=made_up_traffic,
        range=(-math.inf, 100.0),
    ),
    Metric(
        "accuracy_lost",
        "points",
        "lower",
        pair=accuracy_lost,
        same=SAME_SAMPLES,
        made_up=made_up_lost,
        range=(-100.0, 100.0),
    ),
    Metric("accuracy_kept", "bool", "higher", pair=accuracy_kept, same=SAME_SAMPLES, made_up=made_up_kept),
    Metric(
        "time_saved",
        "%",
        "higher",
        pair=time_saved,
        same=SAME_SAMPLES,
        clocked=True,
        noise_of=_OF_TIME,
        noise="gain",
        made_up=made_up_time,
        range=(-math.inf, 100.0),
    ),
    Metric(
        "saving_missed",
        "points",
        None,
        pair=saving_missed,
        same=SAME_SAMPLES,
        clocked=True,
        noise_of=_OF_TIME,
        noise="gain",
        made_up=made_up_missed,
        range=(-math.inf, math.inf),
    ),
    Metric("exchange_share", "fraction", None, launch=exchange_share, clocked=True, made_up=made_up_share),
    Metric("loss_over_fixed", "1", "lower", block=loss_over_fixed, made_up=made_up_over_fixed),
]
