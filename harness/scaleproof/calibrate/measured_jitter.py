"""Fits the jitter of a machine's ranks, how unevenly they compute, to the steps of a suite's trainings; runs no
launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import Launch, timed
from scaleproof.claims.launch_pool import Pool
from scaleproof.record.store import Store
from scaleproof.simulate.uncertain import NORMAL_95
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.suite import Suite
from scaleproof.workloads.jitter_model import FittedJitter

PASSES = ("forward", "backward")
FEWEST = 5
"""Fewest steps of a rank from which its usual step time is estimated."""
STRAGGLING = 1.5
"""A step straggles when it takes more than so many times the usual time, and lies beyond WIDE spreads."""
WIDE = 4.0
MAD = 1.482602218505602
"""Standard deviation of a normal distribution over its median absolute deviation."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The parameters of Jitter, and how well they fit: see FittedJitter."""

    steps: int
    step_sigma: float
    rank_sigma: float | None
    straggler_share: float
    straggler_factor: float
    beyond: float


def fit_jitter(suite: Suite, experiment: str, size: str, store: Store) -> FittedJitter | None:
    """The jitter of launches of one machine and version of the code that really computed and had a core for every
    thread; None where none has enough steps."""
    pool = Pool(store, suite, experiment, size)
    launches = [
        launch
        for evidence in ("measured", "emulated")
        for launch in pool.launches({"program": "train", "compute": "real"}, evidence)
    ]
    used = [
        launch for launch in launches if isinstance(launch.record.case, TrainCase) and not launch.record.oversubscribed
    ]
    fitted = spread([compute_times(launch) for launch in used])
    if fitted is None:
        return None
    return FittedJitter(
        machine=used[0].record.machine,
        code=used[0].record.code.digest,
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        suite=suite.name,
        experiment=experiment,
        size=size,
        runs=tuple(launch.record.launch for launch in used),
        steps=fitted.steps,
        step_sigma=fitted.step_sigma,
        rank_sigma=fitted.rank_sigma,
        straggler_share=fitted.straggler_share,
        straggler_factor=fitted.straggler_factor,
        beyond=fitted.beyond,
    )


def computes_for_real(case: AnyCase) -> bool:
    """Whether its steps can show jitter."""
    return isinstance(case, TrainCase) and case.compute == "real" and not case.plugin("fabric").predicted


def nothing_to_fit(suite: Suite, experiment: str, size: str, store: Store) -> str:
    """A line where no launch shows jitter."""
    return (
        f"no finished training of {suite.name} {experiment} at size {size} in {store.results} that computes for real, "
        f"with a core for every thread and {FEWEST} steps; `scaleproof run` makes them"
    )


def compute_times(launch: Launch) -> pd.DataFrame:
    """Computing time in s by step (row) and rank (column): forward and backward pass, without waiting between them."""
    rows = timed(launch.samples, *PASSES)
    table = (rows["end_ns"] - rows["start_ns"]).groupby([rows["step"], rows["rank"]]).sum().unstack()
    return table.dropna() / 1e9


def spread(launches: Sequence[pd.DataFrame]) -> Spread | None:
    """The spread of tables of `compute_times`. Stragglers are separated first; the spread of the other steps is their
    scaled median absolute deviation."""
    tables = [np.log(table.to_numpy(float)) for table in launches if len(table) >= FEWEST and table.shape[1]]
    if not tables:
        return None
    usual = [np.median(table, axis=0) for table in tables]
    apart = np.concatenate([(table - middle).ravel() for table, middle in zip(tables, usual, strict=True)])
    sigma = MAD * float(np.median(np.abs(apart)))
    late = apart > max(np.log(STRAGGLING), WIDE * sigma)
    inside = apart[~late]
    sigma = MAD * float(np.median(np.abs(inside - np.median(inside))))
    pairs = [middle - middle.mean() for middle in usual if len(middle) > 1]
    freedom = sum(len(middle) - 1 for middle in pairs)
    between = float(np.sqrt(sum(float(middle @ middle) for middle in pairs) / freedom)) if freedom else None
    return Spread(
        len(apart),
        sigma,
        between,
        float(late.mean()),
        float(np.exp(np.median(apart[late]))) if late.any() else 1.0,
        float((np.abs(inside) > NORMAL_95 * sigma).mean()),
    )
