"""How the time of a decision grows with the number of channels."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from scaleproof.claims.finished_launch import median_duration_s, timed
from scaleproof.claims.made_up import Event, MadeUp, Wanted, events
from scaleproof.claims.metrics import Metric
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import OwnCase


def channels_of(case: object) -> list[int]:
    """Numbers of channels of a case, as `5-10-15`; none where it decides nothing."""
    listed = str(case.options.get("channels", "")) if isinstance(case, OwnCase) and case.entry == "decisions" else ""
    return [int(part) for part in listed.split("-") if part]


def decision_growth(record: Record, samples: pd.DataFrame) -> float | None:
    """How the time of a schedule grows with the number M of channels (suite dira2019).

    decision_growth = slope of log(median time of a schedule) over log(M), by least squares

    1: in proportion to M. All numbers of channels are timed in the same launch, in a random order in each iteration.
    """
    times = {channels: median_duration_s(timed(samples, f"decide_{channels}")) for channels in channels_of(record.case)}
    found = {channels: seconds for channels, seconds in times.items() if seconds}
    if len(found) < 2:
        return None
    return float(np.polyfit(np.log(list(found)), np.log(list(found.values())), 1)[0])


def outputs_growth(record: Record, samples: pd.DataFrame) -> float | None:
    """How the number of outputs of a Q-network grows with the number M of channels (suite dira2019).

    outputs_growth = slope of log(outputs) over log(M), by least squares

    0: an output per plant, whatever M is. Of the networks that were built.
    """
    facts: dict[str, dict[str, int]] = record.ranks[0].facts.get("schedules", {}) if record.ranks else {}
    if len(facts) < 2:
        return None
    channels, outputs = zip(*((int(m), work["outputs"]) for m, work in facts.items()), strict=True)
    return float(np.polyfit(np.log(channels), np.log(outputs), 1)[0])


def made_up_outputs(wanted: Wanted) -> MadeUp:
    """Networks whose outputs grow with this power of the channels."""
    growth = wanted.known
    return MadeUp(facts={"schedules": {str(each): {"outputs": each**growth} for each in channels_of(wanted.case)}})


def made_up_growth(wanted: Wanted) -> MadeUp:
    """Schedules whose time grows with this power of the channels."""
    return events(*(Event(f"decide_{each}", 0.0, 1e-3 * each**wanted.known) for each in channels_of(wanted.case)))


METRICS = [
    Metric(
        "decision_growth",
        "1",
        "lower",
        launch=decision_growth,
        clocked=True,
        made_up=made_up_growth,
        range=(-math.inf, math.inf),
    ),
    Metric(
        "outputs_growth",
        "1",
        "lower",
        launch=outputs_growth,
        own_count=True,
        made_up=made_up_outputs,
        range=(-math.inf, math.inf),
    ),
]
