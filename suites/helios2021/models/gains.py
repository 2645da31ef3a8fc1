"""What one policy gains over another, of all clusters of a repetition together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.made_up import Event, ImpossibleValue, MadeUp, Wanted, events, possible
from scaleproof.claims.metrics import Metric
from scaleproof.claims.noted import value_of
from scaleproof.spec.case import AnyCase

Gains = dict[str, float]
SECONDS = 1000.0
"""Mean completion time of a made-up launch."""


def options_of(case: AnyCase) -> dict[str, str | int | float]:
    """Of a suite's own program; none for another."""
    return dict(getattr(case, "options", {}))


def gains(block: Sequence[Launch], better: str = "qssf", worse: str = "fifo") -> Gains:
    """Mean completion time of one policy over that of another, by cluster."""
    times: dict[tuple[str, str], float] = {}
    for launch in block:
        of = options_of(launch.record.case)
        found = value_of(launch.record, launch.samples, "avg_jct")
        if found:
            times[str(of.get("cluster")), str(of.get("policy"))] = found
    return {
        cluster: times[cluster, worse] / time
        for (cluster, policy), time in times.items()
        if policy == better and (cluster, worse) in times
    }


def better_than_fifo(block: Sequence[Launch], floor: float | None = None) -> float | None:
    """Share of clusters on which QSSF has a shorter mean completion time than FIFO, in one repetition (suite
    helios2021).

    better_than_fifo = clusters with [avg_jct](avg_jct.md) of QSSF < avg_jct of FIFO / clusters
    """
    found = gains(block)
    return sum(gain > 1 for gain in found.values()) / len(found) if found else None


def _of(choose: Callable[[Iterable[float]], float], values: Iterable[float]) -> float | None:
    known = list(values)
    return choose(known) if known else None


def gain_with_load(block: Sequence[Launch], floor: float | None = None) -> float | None:
    """How much more QSSF gains over FIFO at the highest load than at the lowest, in one repetition (suite helios2021).

    gain_with_load = gain at the highest load / gain at the lowest

    gain = [avg_jct](avg_jct.md) of FIFO / avg_jct of QSSF.
    """
    by_load: dict[float, list[Launch]] = {}
    for launch in block:
        by_load.setdefault(float(options_of(launch.record.case).get("load", 0)), []).append(launch)
    found = {load: list(gains(some).values()) for load, some in by_load.items()}
    known = sorted(load for load, some in found.items() if some)
    return found[known[-1]][0] / found[known[0]][0] if len(known) > 1 else None


def placement_change(block: Sequence[Launch], floor: float | None = None) -> float | None:
    """How the gain of SJF over FIFO changes with the placement, in one repetition (suite helios2021).

    placement_change = gain with the other placement / gain with `consolidate`

    gain = [avg_jct](avg_jct.md) of FIFO / avg_jct of SJF. 1: it does not matter.
    """
    by_placement: dict[str, list[Launch]] = {}
    for launch in block:
        by_placement.setdefault(str(options_of(launch.record.case).get("placement")), []).append(launch)
    found = {name: list(gains(some, "sjf").values()) for name, some in by_placement.items()}
    base, others = found.pop("consolidate", []), [some for some in found.values() if some]
    return others[0][0] / base[0] if base and others else None


def largest_utilisation_gain(block: Sequence[Launch], floor: float | None = None) -> float | None:
    """The most percentage points that switching nodes off adds to the utilisation of any cluster (suite helios2021).

    largest_utilisation_gain = max over clusters of [utilisation_gain](utilisation_gain.md)
    """
    found = [value_of(launch.record, launch.samples, "utilisation_gain") for launch in block]
    return _of(max, (value for value in found if value is not None))


def _policy(case: AnyCase) -> str:
    policy = options_of(case).get("policy")
    if policy not in ("fifo", "sjf", "qssf"):
        raise ImpossibleValue("the case has another policy")
    return str(policy)


def _lasting(seconds: float) -> MadeUp:
    return events(Event("avg_jct", ranks=(0,), value=seconds))


def made_up_share(wanted: Wanted) -> MadeUp:
    """Launches in which QSSF is better on so many clusters as are no more than the share."""
    clusters = sorted({str(options_of(case).get("cluster")) for case in wanted.block or (wanted.case,)})
    place = clusters.index(str(options_of(wanted.case).get("cluster")))
    better = 2.0 if place + 1 <= possible(wanted.known, 0.0, 1.0) * len(clusters) + 1e-9 else 0.5
    return _lasting(SECONDS if _policy(wanted.case) == "fifo" else SECONDS / better)


def made_up_change(wanted: Wanted) -> MadeUp:
    """Launches without a gain where the placement is the base, and with the wanted one elsewhere; of loads, the
    highest of the block is elsewhere."""
    of = options_of(wanted.case)
    loads = {float(options_of(case).get("load", 0)) for case in wanted.block}
    elsewhere = of.get("placement") != "consolidate" or (len(loads) > 1 and float(of.get("load", 0)) == max(loads))
    gain = possible(wanted.known, 1e-9) if elsewhere else 1.0
    return _lasting(SECONDS if _policy(wanted.case) == "fifo" else SECONDS / gain)


def made_up_utilisation(wanted: Wanted) -> MadeUp:
    """Launches that all have the gain."""
    return events(Event("utilisation_gain", ranks=(0,), value=wanted.known))


METRICS = [
    Metric("better_than_fifo", "fraction", "higher", block=better_than_fifo, made_up=made_up_share),
    Metric("gain_with_load", "x", "higher", block=gain_with_load, made_up=made_up_change),
    Metric("placement_change", "x", None, block=placement_change, made_up=made_up_change),
    Metric(
        "largest_utilisation_gain",
        "percentage points",
        "higher",
        block=largest_utilisation_gain,
        made_up=made_up_utilisation,
        range=(-math.inf, math.inf),
    ),
]
