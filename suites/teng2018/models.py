"""Metrics of this paper only: gradients that a step uses, per second, which part of an oracle's gain is recovered, how
many times had to be guessed, and how soon a loss is reached."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.finished_launch import SECOND, Launch, times_count
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_quality import loss_not_reached
from scaleproof.claims.sample_columns import columns, offsets_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.delay_law import delays_of

LOSS = 1.13
"""What waiting for all comes to in 300 steps at its best rate, in nat: the median of experiment `target` in tuned.yaml,
to two digits."""
SERVER = (0,)
SYNC, LEARNED, ORACLE, STATIC = "sync", "learned", "oracle", "static_96"
"""Arms."""
CORRELATION = 5
"""Place of the correlation among the numbers of law `contention`."""


def used_gradients_per_s(record: Record, samples: pd.DataFrame) -> float | None:
    """Gradients that steps use, per second.

    used_gradients_per_s = sum over timed steps of the gradients that the server took / (end of the last of these steps
    - start of the first), on the server's clock

    The paper's throughput. Gradients that came too late are not in it, while [throughput](throughput.md) counts their
    samples: they were computed for nothing. It is no progress: a worker that is dropped often is seen less.
    """
    rows = columns(record, samples)
    used, steps = rows.timed("used_gradients"), rows.timed("step")
    steps = steps[rows.rank[steps] == 0]
    if not len(used) or not len(steps) or not times_count(record):
        return None
    wall = float(rows.end[steps].max() - rows.start[steps].min()) / SECOND
    return float(rows.value[used].sum()) / wall if wall else None


def recovered_share(block: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """How much of what an oracle gains the learned predictor gains too.

    recovered_share = (learned - synchronous) / (oracle - synchronous), of
    [used_gradients_per_s](used_gradients_per_s.md), in one repetition

    1 is as good as knowing the delays of the next step, 0 as good as waiting for all, below 0 worse than that. The
    launches of a repetition have the same seed, hence the same delays by worker and step. Where the oracle gains
    nothing there is no value. With a noise floor the value could be anything that the three rates allow, each moved by
    the floor.
    """
    rates = _rates(block)
    if not {SYNC, LEARNED, ORACLE} <= rates.keys() or rates[ORACLE] <= rates[SYNC]:
        return None
    apart, (sync, learned, oracle) = 1 + (floor or 0.0), (rates[arm] for arm in (SYNC, LEARNED, ORACLE))
    corners = [
        (learned * a - sync * b) / (oracle * c - sync * b)
        for a in (1 / apart, apart)
        for b in (1 / apart, apart)
        for c in (1 / apart, apart)
        if oracle * c > sync * b
    ]
    return FloorRange((learned - sync) / (oracle - sync), min(corners), max(corners))


def gain_over_correlation(block: Sequence[Launch], floor: float | None = None) -> float | None:
    """By how much the learned predictor's lead over a static cut-off grows as contention turns from that of single
    workers to that of whole hosts.

    gain_over_correlation = slope of the least-squares line of (learned / static) over the law's CORRELATION, of
    [used_gradients_per_s](used_gradients_per_s.md), in one repetition

    CORRELATION is the share of the workers that are slow with their host; all have the same probabilities of being
    slow at any correlation. 0.1 means: the lead is larger by a tenth of the static cut-off's rate where all workers of
    a host are slow together than where each is slow by itself.
    """
    by_correlation: dict[float, list[Launch]] = {}
    for launch in block:
        if (correlation := correlation_of(launch.record.case)) is not None:
            by_correlation.setdefault(correlation, []).append(launch)
    leads = {
        correlation: rates[LEARNED] / rates[STATIC]
        for correlation, launches in by_correlation.items()
        if {LEARNED, STATIC} <= (rates := _rates(launches)).keys()
    }
    return float(np.polyfit(list(leads), list(leads.values()), 1)[0]) if len(leads) > 1 else None


def _rates(block: Sequence[Launch]) -> dict[str, float]:
    """Used gradients per second by arm."""
    rates = {launch.record.case.arm: used_gradients_per_s(launch.record, launch.samples) for launch in block}
    return {arm: rate for arm, rate in rates.items() if rate}


def correlation_of(case: AnyCase) -> float | None:
    """That of the case's law `contention`; None for another law."""
    laws = delays_of(case.step_delay).laws if isinstance(case, TrainCase) else ()
    return next((law.numbers[CORRELATION] for law in laws if law.name == "contention"), None)


def imputed_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of the times that a predictor learns from which were not seen, but imputed.

    imputed_share = times of workers that were cut off / (workers x timed steps)

    What was imputed is the next prediction's input: the larger the share, the more a predictor hears of itself.
    """
    return _share(record, samples, "imputed")


def cut_off_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of the workers that a step waits for.

    cut_off_share = mean over timed steps of the number of gradients that the step waits for / workers

    1 means that no worker was cut off.
    """
    return _share(record, samples, "cut_off")


def _share(record: Record, samples: pd.DataFrame, event: str) -> float | None:
    """Mean of an event of the server over the workers."""
    rows = columns(record, samples)
    found = rows.timed(event)
    if not len(found) or not isinstance(record.case, TrainCase):
        return None
    return float(rows.value[found].mean()) / record.case.workers


def time_to_loss(record: Record, samples: pd.DataFrame) -> float | None:
    """Time until the test loss of the server's parameters is at most 1.13, in s. A launch in which
    no evaluation found it so low has the words `not reached` with its lowest loss.

    time_to_loss = moment of the first evaluation with a test loss of at most 1.13 - start of the first rank

    Waiting for all comes to this loss in 300 steps at its best rate (experiment `target`).

    Warm-up steps, which wait for all workers in every arm, are in it. Parameters are kept every `evaluate_every` steps
    and evaluated after the run: a difference of fewer steps cannot be seen.
    """
    rows = columns(record, samples)
    starts, losses = rows.of("start"), rows.of("test_loss")
    reached = losses[rows.value[losses] <= LOSS]
    if not len(starts) or not len(reached):
        return None
    began = (rows.start[starts] + offsets_of(record, rows.rank[starts])).min()
    return float((rows.end[reached] + offsets_of(record, rows.rank[reached])).min() - began) / SECOND


def loss_reached_per_s(record: Record, samples: pd.DataFrame) -> float | None:
    """How fast the loss is reached: the inverse of [time_to_loss](time_to_loss.md), higher is better, as the paper's
    rows count convergence.

    loss_reached_per_s = 1 / time_to_loss
    """
    took = time_to_loss(record, samples)
    return 1 / took if took else None


def made_up_rate(wanted: Wanted) -> MadeUp:
    """A step of a second that used so many gradients."""
    return _using(possible(wanted.known))


def _using(gradients: float) -> MadeUp:
    return events(Event("step", 0.0, 1.0, ranks=SERVER), Event("used_gradients", ranks=SERVER, value=gradients))


def made_up_recovered(wanted: Wanted) -> MadeUp:
    """A repetition in which the oracle gains a fifth, about what teng2018.md estimates."""
    gains = {SYNC: 0.0, ORACLE: 0.2, LEARNED: 0.2 * wanted.known}
    return _using(1000 * (1 + possible(gains.get(wanted.case.arm, 0.0), -1.0)))


def made_up_slope(wanted: Wanted) -> MadeUp:
    """A repetition in which the lead has this slope."""
    if (correlation := correlation_of(wanted.case)) is None:
        raise ImpossibleValue("the case has no law `contention`")
    lead = 3 + wanted.known * correlation if wanted.case.arm == LEARNED else 1.0
    return _using(1000 * possible(lead))


def made_up_share(event: str, wanted: Wanted) -> MadeUp:
    """A step with this share."""
    if not isinstance(wanted.case, TrainCase):
        raise ImpossibleValue("no training")
    workers = wanted.case.workers
    return events(Event(event, ranks=SERVER, value=workers * possible(wanted.known, 0.0, 1.0)))


def made_up_cut_off(wanted: Wanted) -> MadeUp:
    """See made_up_share."""
    return made_up_share("cut_off", wanted)


def made_up_imputed(wanted: Wanted) -> MadeUp:
    """See made_up_share."""
    return made_up_share("imputed", wanted)


def made_up_time(wanted: Wanted) -> MadeUp:
    """A launch that reaches the loss after this time."""
    took = possible(wanted.known)
    return events(Event("start"), Event("test_loss", took, took, ranks=SERVER, value=LOSS / 2))


def made_up_speed(wanted: Wanted) -> MadeUp:
    """A launch that reaches the loss after the inverse of the value."""
    took = 1 / possible(wanted.known, 1e-9)
    return events(Event("start"), Event("test_loss", took, took, ranks=SERVER, value=LOSS / 2))


METRICS = [
    Metric("used_gradients_per_s", "gradients/s", "higher", launch=used_gradients_per_s, made_up=made_up_rate),
    Metric(
        "recovered_share",
        "fraction",
        "higher",
        block=recovered_share,
        clocked=True,
        noise_of=("used_gradients_per_s",),
        noise="inside",
        made_up=made_up_recovered,
        range=(-math.inf, math.inf),
    ),
    Metric(
        "gain_over_correlation",
        "1",
        "higher",
        block=gain_over_correlation,
        clocked=True,
        noise_of=("used_gradients_per_s",),
        noise="added",
        made_up=made_up_slope,
        range=(-math.inf, math.inf),
    ),
    Metric("imputed_share", "fraction", "lower", launch=imputed_share, made_up=made_up_imputed),
    Metric("cut_off_share", "fraction", None, launch=cut_off_share, made_up=made_up_cut_off, own_count=True),
    Metric("time_to_loss", "s", "lower", launch=time_to_loss, made_up=made_up_time, instead=loss_not_reached(LOSS)),
    Metric(
        "loss_reached_per_s",
        "1/s",
        "higher",
        launch=loss_reached_per_s,
        made_up=made_up_speed,
        instead=loss_not_reached(LOSS),
    ),
]
