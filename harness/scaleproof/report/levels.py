"""Scaling curves at three levels of evidence beside the paper's points, and by how much the levels differ where two of
them have the same case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scaleproof.claims.claims_file import Label
from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.launch_pool import matches
from scaleproof.core.record_schema import Evidence
from scaleproof.report.data import Run, SuiteData, anchor
from scaleproof.report.figures.levels import LevelCurve, LevelPoint, Published, levels
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import arm, grouped, network, training
from scaleproof.report.level_marks import level_marks
from scaleproof.report.levels_compared import (
    LEVELS,
    Bounded,
    between,
    by_draw,
    errors_table,
    level,
    median_rate,
    pairs_table,
    predicted,
    rates,
)
from scaleproof.report.numbers import bracket, significant
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, legend, section
from scaleproof.report.training import RANDOM
from scaleproof.stats import predictions
from scaleproof.stats.bootstrap import ratio_interval

CSV_METRICS = ("throughput", "exposed_communication_s")
HOW = (
    "Speed-up is throughput over that of one rank at the same level of evidence; beside it, divided by ranks, the efficiency. Filled marks are measured on "
    "real hardware at full speed, large hollow ones emulated (replayed compute, links of set rates), small ones with dashes simulated; bars and bands are "
    "intervals: over launches where there are at least 6, of predictions over draws from what they rest on, and over every share of peak that the hardware "
    "of a paper may reach. Stars are the paper's published points, hollow where they are recalled."
)


@dataclass(frozen=True, slots=True)
class Reckoned:
    """One arm at one level and number of ranks: throughput (samples/s) and speed-up over one rank (None without one);
    intervals may be missing."""

    arm: str
    level: Evidence
    ranks: int
    runs: list[Run]
    throughput: Bounded
    speedup: Bounded | None


def sections(data: SuiteData, looks: dict[str, Look]) -> list[Section]:
    """One, when launches of `train` at several numbers of ranks, or of one case, have more than one level of evidence."""
    timed = [run for run in data.done("train") if training(run).data == RANDOM and run.metric("throughput") is not None]
    networks = grouped(timed, network)
    compared = {name: between(name, runs) for name, runs in networks.items()}
    panels = {
        name: runs
        for name, runs in networks.items()
        if compared[name] or len({training(run).ranks for run in runs}) > 1
    }
    if len({level(run) for runs in panels.values() for run in runs}) < 2:
        return []
    pictures, curves_rows, csv, every = [], [], [], []
    for name, runs in panels.items():
        found = [each for (_, _), group in _series(runs).items() for each in reckoned(group, runs)]
        paper = published(data, runs)
        if len({each.level for each in found}) < 2 and not paper:
            continue
        every += runs
        pictures += _pictures(name, found, looks, paper)
        curves_rows += [_row(name, each, data.label(each.runs)) for each in found]
        csv += [_csv_row(name, run, data.label([run])) for run in runs]
    caption = "Scaling at each level of evidence: throughput, speed-up over one rank at the same level, and efficiency, with intervals."
    header = [
        "arm",
        "evidence",
        "ranks",
        "throughput (samples/s) ↑",
        "speed-up (x) ↑",
        "efficiency ↑",
        "exposed communication (ms) ↓",
        "launches",
    ]
    pairs = [pair for name in panels for pair in compared[name]]
    tables = [errors_table(pairs), pairs_table(pairs), Table(caption, header, curves_rows)]
    columns = (
        "network",
        "arm",
        "evidence",
        "validation",
        "ranks",
        "efficiency_of_peak",
        "launch",
        "throughput_samples_per_s",
        "exposed_communication_s",
    )
    used = ["throughput", "speedup", "parallel_efficiency", "exposed_communication_s"]
    return [
        section(
            "levels",
            "Scaling, by level of evidence",
            HOW + _left_out(data),
            used,
            pictures,
            [*legend(looks, map(arm, every)), *level_marks(LEVELS, [True])],
            columns,
            csv,
            every,
            tables,
        )
    ]


def _left_out(data: SuiteData) -> str:
    """Words on launches that ended well and count in no figure."""
    reasons = Counter(
        run.record.excluded for run in data.runs if run.record and run.status == "ok" and run.record.excluded
    )
    return "".join(
        f" {count} launch{'es are' if count > 1 else ' is'} left out as {why}; their pages say more."
        for why, count in sorted(reasons.items())
    )


def _series(runs: Iterable[Run]) -> dict[tuple[str, int], list[Run]]:
    """By arm, then from measured to simulated."""
    found = grouped(runs, lambda run: (arm(run), LEVELS.index(level(run))))
    return dict(sorted(found.items()))


def reckoned(runs: list[Run], panel: list[Run]) -> list[Reckoned]:
    """One arm at one level, a value for every number of ranks. Where the hardware's efficiency is a range, the interval
    is around all of it."""
    found = []
    for ranks, here in sorted(grouped(runs, lambda run: training(run).ranks).items()):
        shares = list(grouped(here, lambda run: training(run).efficiency or 0.0).values())
        rates = [median_rate(share) for share in shares]
        ratios = [ratio for share in shares if (ratio := _speedup(share, base(share[0], panel))) is not None]
        found.append(
            Reckoned(arm(here[0]), level(here[0]), ranks, here, _around(rates), _around(ratios) if ratios else None)
        )
    return found


def base(run: Run, panel: list[Run]) -> list[Run]:
    """The launches of one rank that a speed-up is counted from: of the same arm where it has any, else of the fastest
    one, at the same level, on the same hardware."""
    case = training(run)
    alone = [
        other
        for other in panel
        if training(other).ranks == 1
        and level(other) == level(run)
        and (training(other).profile, training(other).efficiency, training(other).compute)
        == (case.profile, case.efficiency, case.compute)
    ]
    arms = grouped(alone, arm)
    return arms.get(arm(run)) or max(arms.values(), key=lambda found: median_rate(found)[0], default=[])


def _speedup(runs: list[Run], below: list[Run]) -> Bounded | None:
    if not below:
        return None
    if level(runs[0]) == "simulated":
        found = predictions.ratios(by_draw(runs), by_draw(below))
        return predicted(found) if found else None
    above, one = rates(runs), rates(below)
    interval = None if runs == below else ratio_interval(above, one)
    value = float(np.median(above) / np.median(one))
    return (value, interval.low, interval.high) if interval else (value, None, None)


def _around(values: Sequence[Bounded]) -> Bounded:
    """One value as it is; of several the middle, and an interval around all of theirs, none where one of them has none."""
    if len(values) == 1:
        return values[0]
    middle, ends = (
        float(np.median([value for value, _, _ in values])),
        [end for value in values for end in value if end is not None],
    )
    return (middle, min(ends), max(ends)) if len(ends) == 3 * len(values) else (middle, None, None)


def _pictures(name: str, found: list[Reckoned], looks: dict[str, Look], paper: list[Published]) -> list[Panel]:
    pictures = []
    for title, quantity, over_ranks in (
        ("Speed-up", "speed-up (x), higher is better", False),
        ("Efficiency", "efficiency, higher is better", True),
    ):
        curves = []
        for (label, rank_level), group in grouped_reckoned(found).items():
            points = [_point(each, over_ranks) for each in group if each.speedup is not None]
            hollow = any(run.hollow for each in group for run in each.runs)
            if any(point.ranks > 1 for point in points):  # one rank alone is what the others are counted from
                curves.append(LevelCurve(label, rank_level, hollow, points))
        stars = [
            Published(
                star.ranks, star.value / star.ranks if over_ranks else star.value, star.recalled, star.words, star.href
            )
            for star in paper
        ]
        if curves or stars:
            pictures.append(
                Panel(
                    title,
                    levels(
                        f"{title} by level of evidence, {name}",
                        curves,
                        looks,
                        stars,
                        quantity,
                        1.0 if over_ranks else "x",
                    ),
                    name,
                )
            )
    return pictures


def grouped_reckoned(found: Iterable[Reckoned]) -> dict[tuple[str, Evidence], list[Reckoned]]:
    """By arm and level, in the order of appearance."""
    kept: dict[tuple[str, Evidence], list[Reckoned]] = {}
    for each in found:
        kept.setdefault((each.arm, each.level), []).append(each)
    return kept


def _point(found: Reckoned, over_ranks: bool) -> LevelPoint:
    assert found.speedup is not None
    below = found.ranks if over_ranks else 1
    value, (low, high) = found.speedup[0] / below, (None if end is None else end / below for end in found.speedup[1:])
    words = f"{found.arm}, {found.level}, {found.ranks} rank{'s' if found.ranks > 1 else ''}: {significant(value)} {bracket(low, high)}".rstrip()
    return LevelPoint(found.ranks, value, low, high, words, f"runs/{found.runs[0].launch}.html")


def _csv_row(name: str, run: Run, label: Label | None) -> tuple[Any, ...]:
    case, metrics = training(run), map(run.metric, CSV_METRICS)
    return name, arm(run), level(run), label and label.standing, case.ranks, case.efficiency, run.launch, *metrics


def _row(name: str, found: Reckoned, label: Label | None) -> Row:
    value, low, high = found.throughput
    ratio = [Cell("–")] * 2
    if found.speedup is not None:
        times, under, over = found.speedup
        shares = [None if end is None else end / found.ranks for end in (under, over)]
        ratio = [
            Cell(significant(times), bracket(under, over)),
            Cell(significant(times / found.ranks), bracket(*shares)),
        ]
    exposed = [seconds * 1e3 for run in found.runs if (seconds := run.metric("exposed_communication_s")) is not None]
    shown = Cell(significant(float(np.median(exposed)))) if exposed else Cell("–")
    cells = [
        Cell(found.arm),
        Cell(found.level + (f" ({label.words})" if label else "")),
        Cell(str(found.ranks)),
        Cell(significant(value), bracket(low, high)),
        *ratio,
        shown,
        Cell(str(len(found.runs))),
    ]
    return Row(name, cells)


def published(data: SuiteData, runs: list[Run]) -> list[Published]:
    """The paper's speed-ups whose claim selects an arm of these launches, or whose conditions name this network and
    minibatch."""
    found, known = [], {claim.id for claim in data.claims}
    cases = [training(run) for run in runs]
    for claim in load_claims(data.suite):
        row = claim.row
        if (
            row is None
            or row.metric != "speedup"
            or row.value is None
            or not isinstance(ranks := row.x.get("nodes"), int)
        ):
            continue
        selected = {field: value for field, value in claim.form.select.items() if field != "ranks"}
        conditions = {"workload": row.x.get("model"), "minibatch": row.x.get("minibatch")}
        wanted: dict[str, Any] = selected or {field: value for field, value in conditions.items() if value is not None}
        if wanted.keys() & {"workload", "arm"} and any(matches(case, wanted) for case in cases):
            words = f"{row.id}: {significant(float(row.value))}x at {ranks} nodes ({row.provenance.replace('_', ' ')})"
            href = f"{data.name}.html#" + (f"claim-{anchor(row.id)}" if row.id in known else "claims")
            found.append(Published(ranks, float(row.value), claim.recalled, words, href))
    return found
