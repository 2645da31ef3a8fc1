"""The traffic model: bytes of a worker by substitution and with parameter servers, and where they are equal."""

from __future__ import annotations

import math

from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Count, Published
from scaleproof.claims.metric import Metric

ID, VALUE = 8, 4
"""Bytes of an id and of a value."""


class Crossing(Arguments):
    """A model and its data, in the traffic model of suite des2020, with any number of workers."""

    floats: Count = Field(description="p, partial results of a sample.")
    per_id: Count = Field(description="d, values of an id.")
    unique: Count = Field(description="u, ids of the samples of one worker, each once.")
    batch: Count = Field(description="B, samples of one worker.")


class Traffic(Crossing):
    """The same with so many."""

    workers: Count = Field(description="N.")


def crossover_workers(x: Crossing, rows: Published) -> float:
    """crossover_workers = u (8 + 4 d) / (4 p B), the number of workers above which substitution sends more

    Each worker is also a server, and asks itself for nothing: of 2 u (8 + 4 d) bytes a share of (N - 1) / N is sent,
    and by substitution 8 p B (N - 1) (suite des2020). Arithmetic, no launches.
    """
    return x.unique * (ID + VALUE * x.per_id) / (VALUE * x.floats * x.batch)


def substitution_saves(x: Traffic, rows: Published) -> float:
    """substitution_saves = 100 x (1 - 4 p B N 2 (N - 1) / N / (2 u (8 + 4 d))), in %

    Bytes of a worker in a step by substitution over those with parameter servers, which it asks for the rows of its ids
    and sends gradients of them (suite des2020). Arithmetic, no launches.
    """
    return 100 * (1 - _bytes_by_substitution(x) / (2 * x.unique * (ID + VALUE * x.per_id)))


class OnLinks(Traffic):
    """The same over links of a rate."""

    gbit_s: float = Field(gt=0, description="Payload of a link, Gbit/s.")


def substitution_ms(x: OnLinks, rows: Published) -> float:
    """substitution_ms = 1000 x 4 p B N 2 (N - 1) / N x 8 / (rate x 10^9)

    Time that a link takes for what a worker sends in a step by substitution, with nothing beside it (suite des2020).
    Arithmetic, no launches.
    """
    return _bytes_by_substitution(x) * 8 / x.gbit_s / 1e6


def _bytes_by_substitution(x: Traffic) -> float:
    """Of a worker, in a step."""
    return VALUE * x.floats * x.batch * x.workers * 2 * (x.workers - 1) / x.workers


METRICS = [
    Metric("crossover_workers", "workers", "higher", model=crossover_workers, x=Crossing),
    Metric("substitution_saves", "%", "higher", model=substitution_saves, x=Traffic, range=(-math.inf, 100.0)),
    Metric("substitution_ms", "ms", "lower", model=substitution_ms, x=OnLinks),
]
