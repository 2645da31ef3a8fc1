"""Differences between levels of evidence, over the cases that two of them have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np

from scaleproof.calibrate.attainable import Attained
from scaleproof.claims.compute_limit import THROUGHPUT, limit_of
from scaleproof.claims.level_difference import level_independent_key
from scaleproof.core.record_schema import Evidence, Record
from scaleproof.report.data import Run
from scaleproof.report.estimates import Estimate, InCampaign, of_launches, of_predictions
from scaleproof.report.groups import arm, grouped, network_at_any_minibatch, training
from scaleproof.report.numbers import bracket, percent, significant
from scaleproof.report.sections import Cell, Row, Table
from scaleproof.stats import prediction_intervals as predictions

LEVELS: tuple[Evidence, ...] = get_args(Evidence)
"""From measured to simulated."""


def level(run: Run) -> Evidence:
    """The level of evidence of a launch."""
    assert run.record is not None
    return run.record.evidence


def rates(runs: Iterable[Run]) -> list[InCampaign]:
    """Throughput of each launch that has one, samples/s."""
    return [
        (run.record.of_campaign, value)
        for run in runs
        if run.record and (value := run.metric("throughput")) is not None
    ]


def predicted_rates(runs: Iterable[Run]) -> list[tuple[Record, float]]:
    """Records of predictions that have a throughput, with it."""
    return [(run.record, value) for run in runs if run.record and (value := run.metric(THROUGHPUT)) is not None]


def by_draw(runs: Iterable[Run]) -> dict[int, float]:
    """Throughput of predictions by repetition: 0 is the prediction, the others are draws from its inputs."""
    return predictions.by_repetition([(record.plan_index, value) for record, value in predicted_rates(runs)])


def rate(runs: Sequence[Run]) -> Estimate:
    """Throughput in samples/s: the median over launches, or the prediction with the spread of its draws."""
    if level(runs[0]) != "simulated":
        return of_launches(rates(runs))
    return of_predictions(by_draw(runs), limit_of(THROUGHPUT, (record for record, _ in predicted_rates(runs))))


class Side(NamedTuple):
    """An arm at one level of evidence."""

    arm: str
    level: Evidence
    throughput: Estimate
    attained: Attained | None
    values: tuple[float, ...] = ()
    """Of each launch; of predictions the prediction alone."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The same case at two levels of evidence; `upper` is further from a measurement than `lower`. `curve`: its
    experiment and its network at any minibatch, over whose numbers of ranks an error may have a trend."""

    network: str
    curve: tuple[str, str]
    ranks: int
    upper: Side
    lower: Side

    @property
    def error(self) -> float:
        """Throughput of the upper level over that of the lower one, less 1; positive: the upper one is too fast."""
        return self.upper.throughput.value / self.lower.throughput.value - 1


def between(name: str, runs: list[Run]) -> list[Pair]:
    """All pairs of levels at which an experiment has the same case. A single rank is compared only with measurements,
    since emulation and simulation take its time from the same profile."""
    pairs = []
    for same in grouped(runs, lambda run: (training(run).experiment, level_independent_key(training(run)))).values():
        alone = training(same[0]).transport is None
        by_level = dict(sorted(grouped(same, lambda run: LEVELS.index(level(run))).items()))
        sides = [_side(group) for group in by_level.values()]
        pairs += [
            Pair(name, _curve(same[0]), training(same[0]).ranks, upper, lower)
            for index, upper in enumerate(sides)
            for lower in sides[:index]
            if lower.level == "measured" or not alone
        ]
    return pairs


def _curve(run: Run) -> tuple[str, str]:
    return training(run).experiment, network_at_any_minibatch(run)


def _side(runs: Sequence[Run]) -> Side:
    throughput, of_launches = rate(runs), tuple(value for _, value in rates(runs))
    values = (throughput.value,) if level(runs[0]) == "simulated" else of_launches
    return Side(arm(runs[0]), level(runs[0]), throughput, runs[0].attained("throughput", throughput.value), values)


def pairs_table(pairs: Iterable[Pair]) -> Table:
    """A row per case that two levels have."""
    caption = (
        "Every case that two levels of evidence have: throughput (samples/s) at each with its interval, and the error "
        "of the first against the second."
    )
    columns = ["levels", "arm", "ranks", "first (samples/s)", "second (samples/s)", "error"]
    return Table(caption, columns, [_pair_row(pair) for pair in sorted(pairs, key=_order)])


def _order(pair: Pair) -> tuple[str, int, int, str, int]:
    return pair.network, LEVELS.index(pair.lower.level), LEVELS.index(pair.upper.level), pair.upper.arm, pair.ranks


def _pair_row(pair: Pair) -> Row:
    cells = [
        Cell(f"{pair.upper.level} / {pair.lower.level}"),
        Cell(pair.upper.arm),
        Cell(str(pair.ranks)),
        *(_rate_cell(side) for side in (pair.upper, pair.lower)),
        Cell(signed(pair.error)),
    ]
    return Row(pair.network, cells)


def _rate_cell(side: Side) -> Cell:
    value, low, high = side.throughput
    return Cell(significant(value), bracket(low, high), side.attained)


def errors_table(pairs: Sequence[Pair]) -> Table:
    """A row per pair of levels: number of cases, median error, and largest error."""
    caption = (
        "Errors between levels of evidence: throughput of the first over that of the second, less 1, over the cases "
        "that both have."
    )
    rows = []
    for upper in reversed(LEVELS):
        for lower in LEVELS[: LEVELS.index(upper)]:
            same = [pair for pair in pairs if (pair.upper.level, pair.lower.level) == (upper, lower)]
            if same:
                rows.append(_errors_row(same))
    columns = ["levels", "cases", "median of |error| ↓", "median error", "too fast", "largest error ↓", "where"]
    return Table(caption, columns, rows)


def _errors_row(pairs: Sequence[Pair]) -> Row:
    """The row of pairs that have the same two levels."""
    worst = max(pairs, key=lambda pair: abs(pair.error))
    cells = [
        Cell(f"{worst.upper.level} / {worst.lower.level}"),
        Cell(str(len(pairs))),
        Cell(percent(float(np.median([abs(pair.error) for pair in pairs])))),
        Cell(signed(float(np.median([pair.error for pair in pairs])))),
        Cell(f"{sum(pair.error > 0 for pair in pairs)} of {len(pairs)}"),
        Cell(signed(worst.error)),
        Cell(f"{worst.upper.arm}, {worst.ranks} rank{'s' if worst.ranks > 1 else ''}, {worst.network}"),
    ]
    return Row("", cells)


def signed(share: float) -> str:
    """A share in percent, always with its sign."""
    return f"{'+' if share >= 0 else ''}{percent(share)}"
