"""By how much levels of evidence differ, over the cases that two of them have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from scaleproof.claims.level_difference import asked
from scaleproof.core.record_schema import Evidence
from scaleproof.report.data import Run
from scaleproof.report.groups import arm, grouped, summary, training
from scaleproof.report.numbers import bracket, percent, significant
from scaleproof.report.sections import Cell, Row, Table
from scaleproof.stats import predictions

LEVELS: tuple[Evidence, ...] = get_args(Evidence)
"""From what was measured to what was only reckoned."""
Bounded = tuple[float, float | None, float | None]
"""A value with its interval, which may be missing."""


def level(run: Run) -> Evidence:
    """Of a launch."""
    assert run.record is not None
    return run.record.evidence


def rates(runs: Iterable[Run]) -> list[float]:
    """Throughput of each launch that has one, samples/s."""
    return [value for run in runs if (value := run.metric("throughput")) is not None]


def by_draw(runs: Iterable[Run]) -> dict[int, float]:
    """Throughput of predictions by repetition: 0 is the prediction, the others are draws from what it rests on."""
    return predictions.by_repetition(
        [
            (run.record.plan_index, value)
            for run in runs
            if run.record and (value := run.metric("throughput")) is not None
        ]
    )


def predicted(values: Mapping[int, float]) -> Bounded:
    """The prediction with the spread of its draws."""
    interval = predictions.spread(values)
    return (
        (predictions.central(values), interval.low, interval.high)
        if interval
        else (predictions.central(values), None, None)
    )


def median_rate(runs: Sequence[Run]) -> Bounded:
    """Samples/s: the median over launches with its interval, or the prediction with that of its draws."""
    if level(runs[0]) == "simulated":
        return predicted(by_draw(runs))
    found = summary(rates(runs))
    return found.median, found.low, found.high


@dataclass(frozen=True, slots=True)
class Pair:
    """The same case at two levels: throughput of the one that stands further from a measurement over that of the other,
    less 1."""

    network: str
    ranks: int
    upper: tuple[str, Evidence, Bounded]
    lower: tuple[str, Evidence, Bounded]

    @property
    def error(self) -> float:
        """A share; positive: the upper level is too fast."""
        return self.upper[2][0] / self.lower[2][0] - 1


def between(name: str, runs: list[Run]) -> list[Pair]:
    """Every two levels at which an experiment has the same case. One rank that exchanges nothing is held against a
    measurement only: emulated and simulated it takes what the same profile says."""
    found = []
    for same in grouped(runs, lambda run: (training(run).experiment, asked(training(run)))).values():
        alone = training(same[0]).transport is None
        by_level = dict(sorted(grouped(same, lambda run: LEVELS.index(level(run))).items()))
        sides = [(arm(group[0]), level(group[0]), median_rate(group)) for group in by_level.values()]
        pairs = [(upper, lower) for place, upper in enumerate(sides) for lower in sides[:place]]
        found += [
            Pair(name, training(same[0]).ranks, upper, lower)
            for upper, lower in pairs
            if lower[1] == "measured" or not alone
        ]
    return found


def pairs_table(pairs: Iterable[Pair]) -> Table:
    """Every case that two levels have."""
    rows = []
    for pair in sorted(
        pairs,
        key=lambda pair: (
            pair.network,
            LEVELS.index(pair.lower[1]),
            LEVELS.index(pair.upper[1]),
            pair.upper[0],
            pair.ranks,
        ),
    ):
        sides = [Cell(significant(value), bracket(low, high)) for value, low, high in (pair.upper[2], pair.lower[2])]
        cells = [
            Cell(f"{pair.upper[1]} / {pair.lower[1]}"),
            Cell(pair.upper[0]),
            Cell(str(pair.ranks)),
            *sides,
            Cell(_signed(pair.error)),
        ]
        rows.append(Row(pair.network, cells))
    caption = "Every case that two levels of evidence have: throughput (samples/s) at each with its interval, and the error of the first against the second."
    return Table(caption, ["levels", "arm", "ranks", "first (samples/s)", "second (samples/s)", "error"], rows)


def errors_table(pairs: Sequence[Pair]) -> Table:
    """Of each two levels: how many cases, the median error and the largest."""
    rows = []
    for upper in reversed(LEVELS):
        for lower in LEVELS[: LEVELS.index(upper)]:
            found = [pair for pair in pairs if (pair.upper[1], pair.lower[1]) == (upper, lower)]
            if found:
                worst = max(found, key=lambda pair: abs(pair.error))
                cells = [
                    Cell(f"{upper} / {lower}"),
                    Cell(str(len(found))),
                    Cell(percent(float(np.median([abs(pair.error) for pair in found])))),
                ]
                where = f"{worst.upper[0]}, {worst.ranks} rank{'s' if worst.ranks > 1 else ''}, {worst.network}"
                rows.append(Row("", [*cells, Cell(_signed(worst.error)), Cell(where)]))
    caption = "Errors between levels of evidence: throughput of the first over that of the second, less 1, over the cases that both have."
    return Table(caption, ["levels", "cases", "median of |error| ↓", "largest error ↓", "where"], rows)


def _signed(share: float) -> str:
    return f"{'+' if share >= 0 else ''}{percent(share)}"
