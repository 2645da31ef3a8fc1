"""The paper's statements about the order of barriers, of all arms of a repetition together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.spec.case import AnyCase

from .lags import sample_of, staleness_of
from .progress import finished_by, progress, spread_of, workers

Name = str
"""bsp, ssp, asp: one barrier for all; pbsp, pssp: a sampled one."""


def barrier_of(case: AnyCase) -> Name:
    """The barrier of a case, by its strategy's options: a bound of the servers, or a sample of peers."""
    bound, sample = case.value("strategy.bound"), sample_of(case)
    if sample:
        return "pssp" if staleness_of(case) else "pbsp"
    if bound is None:
        return "asp"
    return "ssp" if bound else "bsp"


def barrier_orders_kept(block: Sequence[Launch], floor: float | None = None) -> float | None:
    """Share of the paper's four statements about barriers that a repetition keeps (suite psp2017).

    barrier_orders_kept = statements that hold / 4, in one repetition

    By mean steps of the workers ([progress_mean](progress_mean.md)): BSP < pBSP, pBSP < ASP, SSP < pSSP. And the spread
    between the 5th and 95th percentile of the workers of pBSP is nearer to that of BSP than to that of ASP.
    """
    steps = {
        barrier_of(launch.record.case): found
        for launch in block
        if (found := progress(launch.record, launch.samples)) is not None
    }
    if steps.keys() != {"bsp", "ssp", "asp", "pbsp", "pssp"}:
        return None
    mean = {name: float(found.mean()) for name, found in steps.items()}
    spread = {name: spread_of(found) for name, found in steps.items()}
    near, far = (abs(spread["pbsp"] - spread[name]) for name in ("bsp", "asp"))
    held = [mean["bsp"] < mean["pbsp"], mean["pbsp"] < mean["asp"], mean["ssp"] < mean["pssp"], near < far]
    return float(np.mean(held))


MADE_UP = {"bsp": 10.0, "pbsp": 20.0, "ssp": 30.0, "pssp": 40.0, "asp": 50.0}
"""Steps of all workers of a made-up launch; half of those of ASP have twice as many."""


def made_up(wanted: Wanted) -> MadeUp:
    """A block in which so many of the statements hold: of those that do not, pSSP is behind SSP, pBSP behind BSP, then
    before ASP, and last the spreads are the other way round."""
    case, count = wanted.case, workers(wanted.case)
    name, broken = barrier_of(case), 4 - round(4 * possible(wanted.known, 0.0, 1.0))
    steps, halves = MADE_UP[name], name == "asp"
    if name == "pssp" and broken >= 1:
        steps = 25.0
    if name == "pbsp" and broken >= 2:
        steps = 5.0
    if name == "asp" and broken >= 3:
        steps = 2.0
    if broken >= 4:
        halves = name == "pbsp"
    some = count // 2 if halves else 0
    return events(*finished_by(case, [(some, 2 * steps), (count - some, steps)]))


METRICS = [
    Metric(
        "barrier_orders_kept",
        "fraction",
        "higher",
        block=barrier_orders_kept,
        clocked=True,
        noise_of=("progress_mean",),
        noise="inside",
        made_up=made_up,
    )
]
