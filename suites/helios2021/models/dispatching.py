"""Real dispatchers beside the simulation of the same jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pandas as pd

from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noted import noted, value_of
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase

LEAST_APART = 1.1
"""Two policies of which the simulation says less are not compared."""


def dispatched_over_simulated(record: Record, samples: pd.DataFrame) -> float | None:
    """Mean completion time of a real dispatcher over the simulated one of the same jobs (suite helios2021).

    dispatched_over_simulated = dispatched / simulated

    Dispatchers of one repetition have the same jobs, those of another have others: what this ratio differs by is the
    noise of a comparison of policies.
    """
    ours, simulated = (value_of(record, samples, name) for name in ("dispatched_jct", "simulated_jct"))
    return None if ours is None or not simulated else ours / simulated


def dispatch_error(record: Record, samples: pd.DataFrame) -> float | None:
    """How far the mean completion time of a real dispatcher is from the simulated one (suite helios2021).

    dispatch_error = |dispatched / simulated - 1|
    """
    ratio = dispatched_over_simulated(record, samples)
    return None if ratio is None else abs(ratio - 1)


def dispatch_orders_agree(block: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """Share of pairs of policies that real dispatchers order as the simulation does, in one repetition (suite
    helios2021).

    dispatch_orders_agree = pairs with the same order of mean completion times / pairs

    Pairs that the simulation has less than 10 % apart are left out; None where none is left. A pair that dispatchers
    have closer than the noise floor may be in either order.
    """
    found: list[tuple[float, float]] = []
    for launch in block:
        pair = [value_of(launch.record, launch.samples, name) for name in ("dispatched_jct", "simulated_jct")]
        if pair[0] is not None and pair[1] is not None:
            found.append((pair[0], pair[1]))
    sure = open_ = same = total = 0
    for (ours, simulated), (other, other_simulated) in combinations(found, 2):
        ratio, expected = math.log(ours / other), math.log(simulated / other_simulated)
        if abs(expected) < math.log(LEAST_APART):
            continue
        total += 1
        agrees, unsure = ratio * expected > 0, abs(ratio) <= math.log1p(floor or 0.0)
        same += agrees
        sure += agrees and not unsure
        open_ += unsure
    return FloorRange(same / total, sure / total, (sure + open_) / total) if total else None


MADE_UP_JCT = {"fifo": 16.0, "service": 1.0, "sjf": 4.0, "qssf": 8.0, "fewest": 2.0}
"""Simulated, s, of made-up launches."""


def _policy(case: AnyCase) -> str:
    policy = getattr(case, "options", {}).get("policy")
    if policy not in MADE_UP_JCT:
        raise ImpossibleValue("the case dispatches nothing")
    return str(policy)


def _made_up(simulated: float, dispatched: float) -> MadeUp:
    return events(
        Event("step", 0.0, dispatched, ranks=(0,)),
        Event("dispatched_jct", ranks=(0,), value=dispatched),
        Event("simulated_jct", ranks=(0,), value=simulated),
    )


def made_up_agreement(wanted: Wanted) -> MadeUp:
    """Dispatchers in the simulated order where all pairs are to agree, else in the reverse one."""
    simulated = MADE_UP_JCT[_policy(wanted.case)]
    return _made_up(simulated, simulated if possible(wanted.known, 0.0, 1.0) >= 1 else 16.0 / simulated)


def made_up_ratio(wanted: Wanted) -> MadeUp:
    """A dispatcher that takes so many times as long as simulated."""
    simulated = MADE_UP_JCT[_policy(wanted.case)]
    return _made_up(simulated, simulated * possible(wanted.known))


def made_up_error(wanted: Wanted) -> MadeUp:
    """A dispatcher that takes longer than simulated."""
    return made_up_ratio(replace(wanted, value=1 + wanted.known))


METRICS = [
    noted("dispatched_jct", "s", "lower", "Mean job completion time of a real dispatcher, in s (suite helios2021)."),
    Metric(
        "dispatched_over_simulated",
        "x",
        "lower",
        launch=dispatched_over_simulated,
        made_up=made_up_ratio,
        range=(0, math.inf),
        clocked=True,
    ),
    Metric(
        "dispatch_error",
        "fraction",
        "lower",
        launch=dispatch_error,
        made_up=made_up_error,
        range=(0, math.inf),
        clocked=True,
    ),
    Metric(
        "dispatch_orders_agree",
        "fraction",
        "higher",
        block=dispatch_orders_agree,
        noise="inside",
        made_up=made_up_agreement,
        clocked=True,
        noise_of=("dispatched_over_simulated",),
    ),
]
