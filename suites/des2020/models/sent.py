"""What launches ask for and what links carry, beside what is stated of it."""

from __future__ import annotations

import math

import pandas as pd

from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metric import Metric
from scaleproof.claims.metrics_wire import link_bytes
from scaleproof.claims.sample_columns import columns
from scaleproof.core.record_schema import Record

from .stated_bytes import stated_payload, stated_wire

MOVED = {"reduce_scatter": 1.0, "all_gather": 1.0, "all_reduce": 2.0}
"""How often a ring moves (n - 1) / n of an array from each rank."""


def wire_off(record: Record, samples: pd.DataFrame) -> float | None:
    """wire_off = bytes on the links / sum over messages of (m + 66 (n + a)) - 1

    Bytes on the links as the kernel counted them. The messages of a training of suite des2020 are stated from its case:
    m bytes with 24 of our own header and a name, in n = m / 1,448 packets, rounded up, of 66 bytes of headers each, and
    with a = n / 2 acknowledgements of 66 bytes, rounded up: every second packet has one, and the last (RFC 5681,
    section 4.2). An acknowledgement that a message of the other direction brings along is counted too.
    """
    counted, stated = link_bytes(record), stated_wire(record.case)
    return None if counted is None or not stated else sum(counted.values()) / stated - 1


def _payload(record: Record, samples: pd.DataFrame) -> float:
    rows, ranks = columns(record, samples), record.case.ranks
    payload = float(rows.nbytes[rows.of("call")].sum())
    for name, times in MOVED.items():
        payload += times * (ranks - 1) / ranks * float(rows.nbytes[rows.of(name)].sum())
    return payload


def payload_off(record: Record, samples: pd.DataFrame) -> float | None:
    """payload_off = payload of all steps / stated payload - 1

    Of all N workers with B samples each, as the launch's events have it (suite des2020): a call and its answer, and of
    a collective what a ring moves of its array. Stated of a step, with p partial results of a sample (1 for LR, k + 2
    for FM, k for each field of pooled embeddings), d values of an id, and w weights of dense layers:

    - by substitution 2 (N - 1) (4 p B N + 4 w),
    - with parameter servers 2 (8 + 4 d) u + 2 (N - 1) 4 w, where u is the number of different ids of each worker's
      samples, added up over the workers and without those that the worker holds itself,
    - by gathering weights 2 (N - 1) (4 d N m + 4 w), where m is the most different ids of all samples that one of the
      workers holds.

    u and m are counted in samples drawn anew.
    """
    stated = stated_payload(record.case)
    return None if not stated else _payload(record, samples) / stated - 1


def made_up_wire(wanted: Wanted) -> MadeUp:
    """A launch whose links carry so much more than is stated."""
    if (stated := stated_wire(wanted.case)) is None:
        raise ImpossibleValue("no training whose bytes are stated")
    carried = stated * (1 + possible(wanted.known, -1.0))
    return MadeUp(wire_bytes=round(carried / wanted.case.ranks))


def made_up_payload(wanted: Wanted) -> MadeUp:
    """A launch with so much more payload than stated."""
    if (stated := stated_payload(wanted.case)) is None:
        raise ImpossibleValue("no training whose bytes are stated")
    asked = stated * (1 + possible(wanted.known, -1.0)) / wanted.case.ranks
    return events(Event("call", nbytes=round(asked)))


METRICS = [
    Metric("wire_off", "fraction", "lower", launch=wire_off, made_up=made_up_wire, range=(-1.0, math.inf)),
    Metric("payload_off", "fraction", "lower", launch=payload_off, made_up=made_up_payload, range=(-1.0, math.inf)),
]
