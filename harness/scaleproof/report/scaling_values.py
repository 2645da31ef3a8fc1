"""Throughput and speed-up of every arm at every level of evidence and number of ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scaleproof.claims.compute_limit import THROUGHPUT, limit_of_ratio
from scaleproof.core.record_schema import Evidence
from scaleproof.report.data import Run
from scaleproof.report.estimates import Estimate, around, of_predictions, ratio_of_launches
from scaleproof.report.groups import arm, grouped, training
from scaleproof.report.levels_compared import by_draw, level, predicted_rates, rate, rates
from scaleproof.stats import prediction_intervals as predictions


@dataclass(frozen=True, slots=True)
class ScalingValue:
    """One arm at one level and number of ranks: throughput (samples/s), and speed-up over one rank (None if no launch
    has one rank)."""

    arm: str
    level: Evidence
    ranks: int
    runs: list[Run]
    throughput: Estimate
    speedup: Estimate | None


def scaling_values(runs: list[Run], panel: list[Run]) -> list[ScalingValue]:
    """Values of one arm at one level for every number of ranks. `panel`: all launches of the panel, among them the base
    of speed-ups. If the hardware's efficiency is known as a range, intervals cover all of it."""
    values = []
    for ranks, same_ranks in sorted(grouped(runs, lambda run: training(run).ranks).items()):
        points = list(grouped(same_ranks, lambda run: training(run).compute_options.efficiency or 0.0).values())
        throughput = around([rate(point) for point in points])
        speedups = [speedup for point in points if (speedup := _speedup(point, base_runs(point[0], panel))) is not None]
        values.append(
            ScalingValue(
                arm(same_ranks[0]),
                level(same_ranks[0]),
                ranks,
                same_ranks,
                throughput,
                around(speedups) if speedups else None,
            )
        )
    return values


def base_runs(run: Run, panel: list[Run]) -> list[Run]:
    """The base of a speed-up: launches of one rank, of the same arm if it has any, else of the fastest arm, at the same
    level and on the same hardware."""
    alone = [
        other
        for other in panel
        if training(other).ranks == 1 and level(other) == level(run) and _hardware(other) == _hardware(run)
    ]
    arms = grouped(alone, arm)
    return arms.get(arm(run)) or max(arms.values(), key=lambda launches: rate(launches).value, default=[])


def _hardware(run: Run) -> tuple[object, object, object]:
    case = training(run)
    return case.compute_options.profile, case.compute_options.efficiency, case.compute


def _speedup(runs: list[Run], base: list[Run]) -> Estimate | None:
    if not base:
        return None
    if level(runs[0]) == "simulated":
        ratios = predictions.ratios(by_draw(runs), by_draw(base))
        most = limit_of_ratio(THROUGHPUT, predicted_rates(runs), predicted_rates(base))
        return of_predictions(ratios, most) if ratios else None
    if runs == base:
        return Estimate(1.0, None, None)
    return ratio_of_launches(rates(runs), rates(base))


def by_arm_and_level(values: Iterable[ScalingValue]) -> dict[tuple[str, Evidence], list[ScalingValue]]:
    """Values by arm and level, in the order of appearance."""
    groups: dict[tuple[str, Evidence], list[ScalingValue]] = {}
    for value in values:
        groups.setdefault((value.arm, value.level), []).append(value)
    return groups
