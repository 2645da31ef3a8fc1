"""Elastic averaging in turn on a quadratic: how fast its state grows, and from which alpha on it does."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from scaleproof.claims.arithmetic import Arguments, Published, Workers
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.sample_columns import columns, largest
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase

FEWEST = 4
"""Rounds that show whether a state grows."""
STEP, FINE = 0.01, 1e-9
"""Of the search for the limit, as shares of the bound."""


class Turns(Arguments):
    """Workers that take turns."""

    workers: Workers = Field(description="Workers beside the centre.")
    eta: Annotated[float, Field(gt=0, lt=2)] = Field(description="Learning rate.")


def growth(record: Record, samples: pd.DataFrame) -> float | None:
    """Factor by which the state of all ranks grows in a round. Below 1 it converges, above 1 it diverges.

    growth = exp(slope over the second half of the rounds of log(largest coordinate of a rank after a round))

    The slope is that of least squares, since a state that oscillates is not largest in every round. Rounds from the
    first one with a number that is not finite on are left out: divergence gives a value too. For program `round_robin`
    of suite easgd2015, whose objective is quadratic, so that the factor tends to the spectral radius of a round.
    """
    if not isinstance(record.case, OwnCase):
        return None
    rows = columns(record, samples)
    found = rows.timed("norm")
    rounds, norms = largest(rows.step[found], np.nan_to_num(rows.value[found], nan=np.inf, posinf=np.inf))
    broken = np.flatnonzero(~np.isfinite(norms) | (norms <= 0))
    end = int(broken[0]) if len(broken) else len(rounds)
    if end < FEWEST:
        return None
    half = slice(end // 2, end)
    slope = np.polyfit(rounds[half].astype(float), np.log(norms[half]), 1)[0]
    return float(np.exp(slope))


def bound_of(eta: float) -> float:
    """The largest alpha of the paper's condition."""
    return (4 - 2 * eta) / (4 - eta)


def radius(workers: int, eta: float, alpha: float) -> float:
    """The spectral radius of a round of turns: of a state that one round of all workers makes of another."""
    total = np.eye(workers + 1)  # the workers, then the centre
    for worker in range(workers):
        turn = np.eye(workers + 1)
        turn[worker, worker], turn[worker, -1] = 1 - eta - alpha, alpha
        turn[-1, worker], turn[-1, -1] = alpha, 1 - alpha
        total = turn @ total
    return float(np.abs(np.linalg.eigvals(total)).max())


def stability_limit(x: Turns, rows: Published) -> float:
    """stability_limit = smallest alpha from the bound on at which a round has a spectral radius above 1 / the bound

    The bound is (4 - 2 eta) / (4 - eta), the paper's condition for turns on a quadratic. 1: the bound is where they
    become unstable; above 1: they are still stable there, as with an even number of workers: at the bound a turn
    changes the sign of its worker and of the centre, and after a round the centre has its own again. Arithmetic, no
    launches. `x` has workers and eta.
    """
    bound = bound_of(x.eta)
    low = 1.0 - STEP
    while radius(x.workers, x.eta, (low + STEP) * bound) <= 1 + FINE:
        low += STEP
    high = low + STEP
    while high - low > FINE:
        middle = (low + high) / 2
        if radius(x.workers, x.eta, middle * bound) <= 1 + FINE:
            low = middle
        else:
            high = middle
    return low


def made_up_growth(wanted: Wanted) -> MadeUp:
    """Launches whose state has grown by this factor in every round."""
    if not isinstance(wanted.case, OwnCase):
        raise ImpossibleValue("only program round_robin has rounds")
    factor = possible(wanted.known)
    if factor == 0:
        raise ImpossibleValue("a state that is 0 does not grow")
    norms = (Event("norm", step=number, value=factor**number, ranks=(0,)) for number in range(2 * FEWEST))
    return events(*norms)


METRICS = [
    Metric("growth", "1", "lower", launch=growth, made_up=made_up_growth, range=(0.0, math.inf)),
    Metric("stability_limit", "1", None, model=stability_limit, x=Turns),
]
