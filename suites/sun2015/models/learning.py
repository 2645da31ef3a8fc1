"""What cut weights cost, and what mini-batches save."""

from __future__ import annotations

import math

import pandas as pd

from scaleproof.claims.made_up import Event, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noted import value_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase


def rounding_penalty(record: Record, samples: pd.DataFrame) -> float | None:
    """By which share the reconstruction error is larger where weights keep 3 decimals between steps (suite sun2015).

    rounding_penalty = error with cut weights / error with all decimals - 1, after the same epochs

    The error is the mean squared distance of a pixel from its reconstruction. Below 0 cut weights are better.
    """
    cut, exact = (value_of(record, samples, f"error.{name}") for name in ("cut", "exact"))
    return cut / exact - 1 if cut is not None and exact else None


def passes_saved(record: Record, samples: pd.DataFrame) -> float | None:
    """How many times as many passes over the images one step per epoch takes as mini-batches do, to the same
    reconstruction error (suite sun2015).

    passes_saved = epochs with one step each / passes of mini-batches until their error is no larger

    Mini-batches are compared four times in a pass, with the same learning rate. They get at most as many passes, so the
    least value is 1.
    """
    passes = value_of(record, samples, "passes")
    if passes is None or not isinstance(record.case, OwnCase):
        return None
    return record.case.iterations / passes


def made_up_penalty(wanted: Wanted) -> MadeUp:
    """Launches whose error with cut weights is larger by the value."""
    cut = 1 + possible(wanted.known, -1)
    return events(Event("error.cut", value=cut, ranks=(0,)), Event("error.exact", value=1.0, ranks=(0,)))


def made_up_passes(wanted: Wanted) -> MadeUp:
    """Launches whose mini-batches take so many times fewer passes."""
    assert isinstance(wanted.case, OwnCase)
    return events(Event("passes", value=wanted.case.iterations / possible(wanted.known, 1), ranks=(0,)))


METRICS = [
    Metric(
        "rounding_penalty",
        "fraction",
        "lower",
        launch=rounding_penalty,
        made_up=made_up_penalty,
        range=(-1.0, math.inf),
    ),
    Metric("passes_saved", "x", "higher", launch=passes_saved, made_up=made_up_passes, range=(1.0, math.inf)),
]
