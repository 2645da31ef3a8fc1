"""Arithmetic: buckets that the authors' code can reach, ratios of published times, and the model of an iteration at
published sizes."""

from __future__ import annotations

from pydantic import Field

from scaleproof.claims.arithmetic import Amount, Arguments, Count, Published, RowId, Share
from scaleproof.claims.metrics import Metric

from .costs import FLOAT, HIDDEN, Counts, Rates, full_s, slide_s


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
    """An iteration on a stated machine."""

    labels: Count = Field(description="Labels.")
    batch: Count = Field(description="Samples of a batch.")
    active: Amount = Field(description="Active neurons of a sample.")
    functions: Count = Field(description="Hash functions of all tables (K L).")
    tables: Count = Field(description="Tables (L).")
    period: Count = Field(description="Steps between two rebuilds.")
    gflops: Amount = Field(description="Peak of all cores in single precision, Gflop/s.")
    peak_share: Share = Field(gt=0, description="Share of the peak that products of the full softmax reach.")
    gbytes: Amount = Field(description="Bandwidth of memory, GB/s.")
    scattered: Share = Field(gt=0, description="Share of the bandwidth that rows at random places reach.")


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


def modelled_speedup(x: Machine, rows: Published) -> float:
    """Time of an iteration of the full softmax over that of SLIDE, on a stated machine (suite slide2020).

    modelled_speedup = modelled time of the full softmax / modelled time of SLIDE

    The model of suite slide2020 (suites/slide2020/models/costs.py) with the counts of `x`: Adam is dense on both sides,
    as in the authors' code; a visit of an active neuron moves four rows of weights and gradients; both sides have the
    same rest, which is left out. Its error at the small scale is [iteration_error](iteration_error.md).
    """
    byte, row = 1 / (x.gbytes * 1e9), HIDDEN * FLOAT
    rates = Rates(
        visit=4 * row * byte / x.scattered,
        adam=7 * row * byte,
        hash=2 * HIDDEN * x.functions / (x.gflops * 1e9 * x.peak_share),
        insert=64 * byte / x.scattered,
        flop=1 / (x.gflops * 1e9 * x.peak_share),
        byte=byte,
    )
    counts = Counts(x.labels, x.batch, x.active, x.labels, x.tables, x.period)
    return full_s(counts, rates) / slide_s(counts, rates)


METRICS = [
    Metric("reachable_buckets", "buckets", "higher", model=reachable_buckets, x=Codes),
    Metric("published_time_ratio", "x", None, model=published_time_ratio, x=Rows),
    Metric("modelled_speedup", "x", "higher", model=modelled_speedup, x=Machine),
]
