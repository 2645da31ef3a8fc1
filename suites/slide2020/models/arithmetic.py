"""Arithmetic: buckets that the authors' code can reach, ratios of published times, and the model of an iteration on
stated machines."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Arguments, Count, Published, RowId, Share
from scaleproof.claims.metrics import Metric

from .costs import ADAM_PASSES, FLOAT, HIDDEN, Counts, Rates, full_s, slide_parts, slide_s
from .learned import evenly_returned


class Codes(Arguments):
    """How the codes of one table become a bucket."""

    codes: Count = Field(le=8, description="Codes of a table (K).")
    values: Count = Field(le=64, description="Values of a code: the coordinates of its bin.")
    shift: int = Field(ge=0, le=6, description="Bits by which a code is moved before the next is added.")


class Rows(Arguments):
    """Two published times."""

    slower: RowId = Field(description="Id of the row with the longer time.")
    faster: RowId = Field(description="Id of the row with the shorter time.")


class Machine(Arguments):
    """An iteration on a stated machine, with any number of labels."""

    batch: Count = Field(description="Samples of a batch.")
    active: Amount = Field(description="Active neurons of a sample.")
    functions: Count = Field(description="Hash functions of all tables (K L).")
    tables: Count = Field(description="Tables (L).")
    period: Count = Field(description="Steps between two rebuilds.")
    gflops: Amount = Field(description="Peak of all cores in single precision, Gflop/s.")
    peak_share: Share = Field(gt=0, description="Share of the peak that products of the full softmax reach.")
    gbytes: Amount = Field(description="Bandwidth of memory, GB/s.")
    scattered: Share = Field(gt=0, description="Share of the bandwidth that rows at random places reach.")


class Layer(Machine):
    """The same with a number of labels."""

    labels: Count = Field(description="Labels.")


class Part(Layer):
    """One part of the iteration."""

    part: Literal["hashing", "forward", "backward", "adam", "rebuild"] = Field(description="The part.")


class Buckets(Arguments):
    """Tables that hold a layer."""

    labels: Count = Field(description="Labels.")
    buckets: Count = Field(description="Buckets of a table.")
    tables: Count = Field(description="Tables (L).")
    room: Count = Field(description="Neurons that a bucket holds.")


def reachable_buckets(x: Codes, rows: Published) -> float:
    """Different buckets that the codes of a table can reach (suite slide2020).

    reachable_buckets = number of different sums of codes, each moved by `shift` bits before the next is added

    Every combination is counted. With bins of 8 the shift should be log2 8 = 3; the authors' code takes the natural
    logarithm, rounded down: 2.
    """
    sums = {0}
    for _ in range(x.codes):
        sums = {(before << x.shift) + code for before in sums for code in range(x.values)}
    return float(len(sums))


def published_time_ratio(x: Rows, rows: Published) -> float:
    """Ratio of two published times (suite slide2020).

    published_time_ratio = published slower time / published faster time

    Arithmetic on published rows, not a measurement.
    """
    return rows.number(x.slower) / rows.positive(x.faster)


def modelled_speedup(x: Layer, rows: Published) -> float:
    """Time of an iteration of the full softmax over that of SLIDE, on a stated machine (suite slide2020).

    modelled_speedup = modelled time of the full softmax / modelled time of SLIDE

    The model of suite slide2020 (suites/slide2020/models/costs.py) with the counts of `x`: Adam is dense on both sides,
    as in the authors' code; a visit of an active neuron moves four rows of weights and gradients; both sides have the
    same rest, which is left out. Its error at the small scale is [iteration_error](iteration_error.md).
    """
    counts, rates = _counts(x, x.labels), _rates(x)
    return full_s(counts, rates) / slide_s(counts, rates)


def stated_crossover(x: Machine, rows: Published) -> float:
    """Labels from which on the model has SLIDE's iteration shorter than the full softmax's, on a stated machine (suite
    slide2020).

    stated_crossover = time of SLIDE without any label / (time of the full softmax per label - time of SLIDE per label)

    Both times are straight lines over the number of labels, with the same active neurons at each. Infinite where the
    full softmax costs no more per label. See [modelled_speedup](modelled_speedup.md).
    """
    rates, few, many = _rates(x), 10**6, 2 * 10**6
    slide = [slide_s(_counts(x, labels), rates) for labels in (few, many)]
    per_label = (slide[1] - slide[0]) / (many - few)
    apart = full_s(_counts(x, few), rates) / few - per_label
    return (slide[0] - few * per_label) / apart if apart > 0 else math.inf


def stated_share(x: Part, rows: Published) -> float:
    """Share of one part in SLIDE's iteration, on a stated machine, in % (suite slide2020).

    stated_share = 100 * modelled time of the part / modelled time of all parts

    Parts: hashing of a batch, forward and backward over active neurons, Adam, and a share of a rebuild. See
    [modelled_speedup](modelled_speedup.md).
    """
    parts = slide_parts(_counts(x, x.labels), _rates(x))
    return 100 * parts[x.part] / sum(parts.values())


def stated_active_share(x: Buckets, rows: Published) -> float:
    """Neurons that tables return for a query that resembles none of them, as a share of all, in % (suite slide2020).

    stated_active_share = 100 * (1 - (1 - p)^L), with p = min(1 / buckets, room / labels)

    Neurons fall evenly into buckets, and a bucket that overflows keeps `room` of them. Trained neurons do not fall
    evenly. Its error for random ones is [active_share_error](active_share_error.md).
    """
    return 100 * evenly_returned(x.labels, x.buckets, x.tables, x.room)


def _counts(x: Machine, labels: int) -> Counts:
    return Counts(labels, x.batch, x.active, labels, x.tables, x.period)


def _rates(x: Machine) -> Rates:
    byte, row = 1 / (x.gbytes * 1e9), HIDDEN * FLOAT
    flop = 1 / (x.gflops * 1e9 * x.peak_share)
    return Rates(
        visit=4 * row * byte / x.scattered,
        adam=ADAM_PASSES * row * byte,
        hash=2 * HIDDEN * x.functions * flop,
        insert=64 * byte / x.scattered,
        flop=flop,
        byte=byte,
    )


METRICS = [
    Metric("reachable_buckets", "buckets", "higher", model=reachable_buckets, x=Codes),
    Metric("published_time_ratio", "x", None, model=published_time_ratio, x=Rows),
    Metric("modelled_speedup", "x", "higher", model=modelled_speedup, x=Layer),
    Metric("stated_crossover", "labels", "lower", model=stated_crossover, x=Machine),
    Metric("stated_share", "%", None, model=stated_share, x=Part),
    Metric("stated_active_share", "%", "lower", model=stated_active_share, x=Buckets),
]
