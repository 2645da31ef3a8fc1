"""How the time of a search grows with the number of configurations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from scaleproof.claims.beyond_floor import FloorRange
from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events
from scaleproof.claims.metrics import Metric
from scaleproof.claims.metrics_programs import program_s
from scaleproof.spec.case import OwnCase


def growth_saved(block: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """How much less a search by dynamic programming grows with the number of configurations than one by elimination
    (suite tensoropt2022).

    growth_saved = log (r of the most configurations / r of the fewest) / log (most / fewest)

    r is the time of elimination over that of dynamic programming, in one repetition. 1: a factor K is saved, as the
    paper says. None where the two were not run with two numbers of configurations.
    """
    times = _times(block)
    counts = sorted({count for count, method in times if {(count, "dynamic"), (count, "elimination")} <= times.keys()})
    if len(counts) < 2:
        return None
    first, last = (times[count, "elimination"] / times[count, "dynamic"] for count in (counts[0], counts[-1]))
    apart = math.log(counts[-1] / counts[0])
    value, noise = math.log(last / first) / apart, 2 * math.log1p(floor or 0.0) / apart
    return FloorRange(value, value - noise, value + noise)


def search_growth(block: Sequence[Launch], floor: float | None = None) -> FloorRange | None:
    """With which power of the number of configurations the time of a search grows, in one repetition (suite
    tensoropt2022).

    search_growth = slope of log time of a search against log configurations, by least squares

    The claim selects launches of one method. None where fewer than two numbers of configurations were searched.
    """
    times = {configurations: seconds for (configurations, _), seconds in _times(block).items()}
    if len(times) < 2:
        return None
    x, y = np.log(list(times)), np.log(list(times.values()))
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    value, noise = float(weights @ y), math.log1p(floor or 0.0) * float(abs(weights).sum())
    return FloorRange(value, value - noise, value + noise)


def _times(block: Sequence[Launch]) -> dict[tuple[int, str], float]:
    """Seconds of a launch by its configurations and its method."""
    times: dict[tuple[int, str], float] = {}
    for launch in block:
        seconds, case = program_s(launch.record, launch.samples), launch.record.case
        if seconds is not None and isinstance(case, OwnCase) and "configurations" in case.options:
            times[int(case.options["configurations"]), str(case.options["method"])] = seconds
    return times


def made_up_search(wanted: Wanted) -> MadeUp:
    """Searches whose times grow with a power of the configurations."""
    case = wanted.case
    if not isinstance(case, OwnCase) or "configurations" not in case.options:
        raise ImpossibleValue("the case searches nothing")
    return events(Event("step", 0.0, float(case.options["configurations"]) ** wanted.known))


def made_up_growth(wanted: Wanted) -> MadeUp:
    """Searches whose times over those of dynamic programming grow with a power of the configurations."""
    case = wanted.case
    if not isinstance(case, OwnCase) or "configurations" not in case.options:
        raise ImpossibleValue("the case searches nothing")
    power = wanted.known if case.options["method"] == "elimination" else 0.0
    return events(Event("step", 0.0, float(case.options["configurations"]) ** power))


METRICS = [
    Metric(
        "growth_saved",
        "1",
        "higher",
        block=growth_saved,
        noise="inside",
        made_up=made_up_growth,
        range=(-math.inf, math.inf),
        clocked=True,
        noise_of=("program_s",),
    ),
    Metric(
        "search_growth",
        "1",
        "lower",
        block=search_growth,
        noise="inside",
        made_up=made_up_search,
        range=(-math.inf, math.inf),
        clocked=True,
        noise_of=("program_s",),
    ),
]
