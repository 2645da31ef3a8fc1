"""What launches learned, retrieved and touched."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible, reporting
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noted import value_of
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase, OwnCase

COSINES = (0.9, 0.7, 0.5)
"""Of queries with their neuron (programs/retrieval.py)."""
HUNDREDTHS = tuple(round(100 * cosine) for cosine in COSINES)
Z = 2.394
"""Of a normal variable: 1 - 0.05 / (2 * 3) of it lies below, for 95 % of three intervals together."""


def option(case: AnyCase, name: str) -> float | None:
    """A number among the options of a case; None where it has none."""
    return float(case.options[name]) if isinstance(case, OwnCase) and name in case.options else None


def precision_at_1(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of test samples whose label has the largest output of all labels (suite slide2020).

    precision_at_1 = test samples whose best label is one of theirs / test samples

    Every arm is tested over all labels, whatever it was trained with.
    """
    return value_of(record, samples, "precision")


def active_share(record: Record, samples: pd.DataFrame) -> float | None:
    """Active output neurons of a sample in training, mean, as a share of all, in % (suite slide2020).

    active_share = 100 * mean active neurons of a sample / labels
    """
    active, labels = value_of(record, samples, "active"), option(record.case, "labels")
    return 100 * active / labels if active is not None and labels else None


def changed_rows(record: Record, samples: pd.DataFrame) -> float | None:
    """Rows of the output layer that Adam changes in an iteration, mean (suite slide2020)."""
    return value_of(record, samples, "changed_rows")


def page_faults(record: Record, samples: pd.DataFrame) -> float | None:
    """Page faults of a launch's process from the first timed step to the last, as the kernel counts them (getrusage;
    suite slide2020)."""
    return value_of(record, samples, "page_faults")


def huge_memory(record: Record, samples: pd.DataFrame) -> float | None:
    """MiB of a launch's process in huge pages after its last step, as the kernel counts them (suite slide2020)."""
    return value_of(record, samples, "huge_mib")


def dtlb_misses(record: Record, samples: pd.DataFrame) -> float | None:
    """Misses of reads in the data TLB during the timed steps, as the processor counts them; None where it gives no
    counter (suite slide2020)."""
    return value_of(record, samples, "dtlb_misses")


def retrieval_error(record: Record, samples: pd.DataFrame) -> float | None:
    """How far the share of queries whose neuron was found is from what theory says, at the cosine where it is furthest
    (suite slide2020).

    retrieval_error = max over cosines of |found / queries - (1 - (1 - p^K)^L)|, with p = 1 - arccos(cosine) / pi

    p is that of projections on normal vectors; those that ran have entries of +1, 0 and -1. None for other families.
    """
    apart = _from_theory(record, samples)
    return max(abs(found - theory) for found, theory in apart) if apart else None


def retrieval_deviation(record: Record, samples: pd.DataFrame) -> float | None:
    """How far the share of queries whose neuron was found is from what theory says, in half-widths of the binomial
    interval, at the cosine where it is furthest (suite slide2020).

    retrieval_deviation = max over cosines of |found / queries - theory| / half-width

    Theory as in [retrieval_error](retrieval_error.md). The half-width is that of Wilson's interval of the theory with
    all queries of the launch, 95 % for the three cosines together (z = 2.394). Queries of a step share their hash
    functions, so that they are not independent. None for other families.
    """
    apart, queries = _from_theory(record, samples), _queries(record.case)
    if not apart or not queries:
        return None
    return max(abs(found - theory) / half_width(theory, queries) for found, theory in apart)


def half_width(share: float, count: float) -> float:
    """Of Wilson's interval of a share of so many trials."""
    return float(Z / (1 + Z**2 / count) * np.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2)))


def _queries(case: AnyCase) -> float | None:
    """Of a launch at each cosine."""
    queries = option(case, "queries")
    return queries * int(case.value("iterations")) if queries else None


def _from_theory(record: Record, samples: pd.DataFrame) -> list[tuple[float, float]]:
    """At each cosine the share that was found and that of theory; empty for other families."""
    rows, bits, tables = columns(record, samples), option(record.case, "bits"), option(record.case, "tables")
    found = rows.timed("retrieved")
    if not len(found) or bits is None or tables is None or record.case.value("options").get("hash") != "simhash":
        return []
    apart = []
    for number in np.unique(rows.nbytes[found]):
        at = found[rows.nbytes[found] == number]
        apart.append((float(rows.value[at].mean()), retrieval_theory(number / 100, bits, tables)))
    return apart


def evenly_returned(labels: float, buckets: float, tables: float, room: float) -> float:
    """Share of the neurons that tables return for a query that resembles none of them, if neurons fall evenly into
    buckets and one that overflows keeps `room` of them."""
    return 1 - (1 - min(1 / buckets, room / labels)) ** tables


def _returned_by_model(case: AnyCase) -> float | None:
    """None for a case that looks up nothing."""
    labels, bits, tables, room = (option(case, name) for name in ("labels", "bits", "tables", "room"))
    if labels is None or bits is None or tables is None or room is None:
        return None
    return evenly_returned(labels, 2**bits, tables, room)


def retrieval_theory(cosine: float, bits: float, tables: float) -> float:
    """Probability that two vectors share a bucket of at least one table (section 3.2 of the paper)."""
    agree = 1 - float(np.arccos(cosine)) / np.pi
    return float(1 - (1 - agree**bits) ** tables)


def active_share_error(record: Record, samples: pd.DataFrame) -> float | None:
    """How far the model of how many neurons tables return is from what they return, of neurons with random weights
    (suite slide2020).

    active_share_error = |[stated_active_share](stated_active_share.md) / share of all neurons that is found - 1|
    """
    rows = columns(record, samples)
    share, modelled = rows.value[rows.timed("share")], _returned_by_model(record.case)
    if not len(share) or not share.mean() or modelled is None:
        return None
    return abs(modelled / float(share.mean()) - 1)


def recall_gain(record: Record, samples: pd.DataFrame) -> float | None:
    """How much likelier tables find a neuron of the ten largest inner products than any neuron (suite slide2020).

    recall_gain = share of the ten largest that is found / share of all neurons that is found

    1: as good as neurons drawn at random, as many as the tables return.
    """
    rows = columns(record, samples)
    recall, share = rows.value[rows.timed("recall")], rows.value[rows.timed("share", "retrieved_share")]
    if not len(recall) or not len(share) or not share.mean():
        return None
    return float(recall.mean() / share.mean())


def top_recall(record: Record, samples: pd.DataFrame) -> float | None:
    """Share of the neurons of the ten largest inner products that tables find, mean over queries (suite slide2020).

    top_recall = neurons of the ten largest inner products in the buckets of a query / 10

    After a training the queries are test samples and the tables are built anew.
    """
    rows = columns(record, samples)
    recall = rows.value[rows.timed("recall")]
    return float(recall.mean()) if len(recall) else None


def best_cosine(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean cosine of test samples, as activations of the hidden layer, with the ten neurons of their largest inner
    products, after a training (suite slide2020).

    Signs of a projection agree with probability 1 - arccos(cosine) / pi: below 0 less often than not.
    """
    return value_of(record, samples, "cosine")


def made_up_error(wanted: Wanted) -> MadeUp:
    """Launches whose queries are found more or less often than theory says, by the value."""
    return _made_up_apart(wanted, lambda theory: 1.0)


def made_up_deviation(wanted: Wanted) -> MadeUp:
    """The same by so many half-widths."""
    queries = _queries(wanted.case)
    if queries is None:
        raise ImpossibleValue("the case looks up nothing")
    return _made_up_apart(wanted, lambda theory: half_width(theory, queries))


def _made_up_apart(wanted: Wanted, unit: Callable[[float], float]) -> MadeUp:
    bits, tables = option(wanted.case, "bits"), option(wanted.case, "tables")
    if bits is None or tables is None:
        raise ImpossibleValue("the case looks up nothing")
    made = []
    for hundredths in HUNDREDTHS:
        theory = retrieval_theory(hundredths / 100, bits, tables)
        apart = wanted.known * unit(theory)
        value = theory + apart if theory + apart <= 1 else possible(theory - apart, 0, 1)
        made.append(Event("retrieved", nbytes=hundredths, value=value))
    return events(*made)


def made_up_gain(wanted: Wanted) -> MadeUp:
    """Launches that find so many times as large a share of the ten largest."""
    share = min(0.01, 1 / max(possible(wanted.known), 1.0))
    return events(Event("recall", value=share * wanted.known), Event("share", value=share))


def made_up_share(wanted: Wanted) -> MadeUp:
    """Launches with such a share of active neurons."""
    labels = option(wanted.case, "labels")
    if not labels:
        raise ImpossibleValue("the case has no labels")
    return events(Event("active", value=possible(wanted.known, 0, 100) / 100 * labels))


def made_up_returned(wanted: Wanted) -> MadeUp:
    """Launches that return fewer neurons than the model says."""
    modelled = _returned_by_model(wanted.case)
    if modelled is None:
        raise ImpossibleValue("the case looks up nothing")
    return events(Event("share", value=modelled / (1 + possible(wanted.known))))


METRICS = [
    Metric(
        "precision_at_1",
        "fraction",
        "higher",
        launch=precision_at_1,
        made_up=reporting("precision"),
        range=(0, math.inf),  # of ratios of two arms
    ),
    Metric("active_share", "%", "lower", launch=active_share, own_count=True, made_up=made_up_share, range=(0, 100)),
    Metric("changed_rows", "rows", "lower", launch=changed_rows, own_count=True, made_up=reporting("changed_rows")),
    Metric("page_faults", "faults", "lower", launch=page_faults, made_up=reporting("page_faults")),
    Metric("huge_memory", "MiB", "higher", launch=huge_memory, made_up=reporting("huge_mib")),
    Metric("dtlb_misses", "misses", "lower", launch=dtlb_misses, made_up=reporting("dtlb_misses")),
    Metric("retrieval_deviation", "half-widths", "lower", launch=retrieval_deviation, made_up=made_up_deviation),
    Metric("retrieval_error", "fraction", "lower", launch=retrieval_error, made_up=made_up_error, range=(0, 1)),
    Metric("top_recall", "fraction", "higher", launch=top_recall, made_up=reporting("recall")),
    Metric("best_cosine", "1", "higher", launch=best_cosine, made_up=reporting("cosine"), range=(-1, 1)),
    Metric(
        "active_share_error",
        "fraction",
        "lower",
        launch=active_share_error,
        made_up=made_up_returned,
        range=(0, math.inf),
    ),
    Metric("recall_gain", "x", "higher", launch=recall_gain, made_up=made_up_gain),
]
