"""The section of a suite's page on scaling at three levels of evidence: curves with the paper's points, and the
difference of two levels that have the same case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scaleproof.claims.claims_file import Label
from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.claims.launch_pool import matches
from scaleproof.report.data import Run, SuiteData, anchor
from scaleproof.report.error_trends import trends_tables
from scaleproof.report.figures.levels import LevelCurve, LevelPoint, Published, levels
from scaleproof.report.figures.style import Look
from scaleproof.report.groups import arm, grouped, network, training
from scaleproof.report.level_marks import level_marks
from scaleproof.report.levels_compared import LEVELS, Pair, between, errors_table, level, pairs_table
from scaleproof.report.numbers import bracket, significant
from scaleproof.report.scaling_values import ScalingValue, by_arm_and_level, scaling_values
from scaleproof.report.sections import Cell, Panel, Row, Section, Table, legend, section

CSV_METRICS = ("throughput", "exposed_communication_s")
CSV_COLUMNS = (
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
METRICS = ["throughput", "speedup", "parallel_efficiency", "exposed_communication_s"]
HOW = (
    "Speed-up is throughput over that of one rank at the same level of evidence; beside it, divided by ranks, the "
    "efficiency. Filled marks are measured on real hardware at full speed, large hollow ones emulated (replayed "
    "compute, links of set rates), small ones with dashes simulated; bars and bands are intervals: over launches where "
    "there are at least 6, of predictions over draws from their inputs, and over every share of peak that the hardware "
    "of a paper may reach. Stars are the paper's published points, hollow where they are recalled."
)
CAPTION = (
    "Scaling at each level of evidence: throughput, speed-up over one rank at the same level, and efficiency, with "
    "intervals."
)
TABLE_COLUMNS = [
    "arm",
    "evidence",
    "ranks",
    "throughput (samples/s) ↑",
    "speed-up (x) ↑",
    "efficiency ↑",
    "exposed communication (ms) ↓",
    "launches",
]


def sections(data: SuiteData, looks: dict[str, Look]) -> list[Section]:
    """One section if launches of `train` at several numbers of ranks, or of one case, have more than one level of
    evidence; else none."""
    timed = [
        run for run in data.completed("train") if not training(run).learnable and run.metric("throughput") is not None
    ]
    networks = grouped(timed, network)
    pairs = {name: between(name, runs) for name, runs in networks.items()}
    compared = {
        name: runs for name, runs in networks.items() if pairs[name] or len({training(run).ranks for run in runs}) > 1
    }
    if len({level(run) for runs in compared.values() for run in runs}) < 2:
        return []
    return [_section(data, compared, [pair for name in compared for pair in pairs[name]], looks)]


def _section(data: SuiteData, networks: dict[str, list[Run]], pairs: list[Pair], looks: dict[str, Look]) -> Section:
    """`networks`: launches by the network that they train; `pairs`: cases that two levels have."""
    claims = load_claims(data.suite)
    panels: list[Panel] = []
    table_rows: list[Row] = []
    csv_rows: list[tuple[Any, ...]] = []
    shown_runs: list[Run] = []
    stars: set[bool] = set()
    for name, runs in networks.items():
        values = [value for group in _by_series(runs) for value in scaling_values(group, runs)]
        points = published(data, claims, runs)
        if len({value.level for value in values}) < 2 and not points:
            continue
        shown_runs += runs
        stars |= {not point.recalled for point in points}
        panels += _panels(name, values, looks, points)
        table_rows += [_row(name, value, data.label(value.runs)) for value in values]
        csv_rows += [_csv_row(name, run, data.label([run])) for run in runs]
    return section(
        "levels",
        "Scaling, by level of evidence",
        HOW + _left_out(data),
        METRICS,
        panels,
        [*legend(looks, map(arm, shown_runs)), *level_marks({level(run) for run in shown_runs}, stars)],
        CSV_COLUMNS,
        csv_rows,
        shown_runs,
        [errors_table(pairs), *trends_tables(pairs), pairs_table(pairs), Table(CAPTION, TABLE_COLUMNS, table_rows)],
    )


def _left_out(data: SuiteData) -> str:
    """A sentence on launches that ended well but are excluded from all figures."""
    reasons = Counter(
        run.record.excluded for run in data.runs if run.record and run.status == "ok" and run.record.excluded
    )
    return "".join(
        f" {count} launch{'es are' if count > 1 else ' is'} left out as {why}; their pages say more."
        for why, count in sorted(reasons.items())
    )


def _by_series(runs: Iterable[Run]) -> list[list[Run]]:
    """By arm, then from measured to simulated."""
    groups = grouped(runs, lambda run: (arm(run), LEVELS.index(level(run))))
    return [groups[key] for key in sorted(groups)]


def _panels(name: str, values: list[ScalingValue], looks: dict[str, Look], points: list[Published]) -> list[Panel]:
    """Speed-up and efficiency of one network."""
    pictures = []
    for title, over_ranks in (("Speed-up", False), ("Efficiency", True)):
        curves = _curves(values, over_ranks)
        stars = [_star(point, over_ranks) for point in points]
        if not curves and not stars:
            continue
        quantity = "efficiency, higher is better" if over_ranks else "speed-up (x), higher is better"
        label = f"{title} by level of evidence, {name}"
        picture = levels(label, curves, looks, stars, quantity, 1.0 if over_ranks else "x")
        pictures.append(Panel(title, picture, name))
    return pictures


def _curves(values: list[ScalingValue], over_ranks: bool) -> list[LevelCurve]:
    """Curves of the arms with more than one rank; a single rank is only the base of the others."""
    curves = []
    for (name, evidence), group in by_arm_and_level(values).items():
        points = [_point(value, over_ranks) for value in group if value.speedup is not None]
        hollow = any(run.hollow for value in group for run in value.runs)
        if any(point.ranks > 1 for point in points):
            curves.append(LevelCurve(name, evidence, hollow, points))
    return curves


def _star(point: Published, over_ranks: bool) -> Published:
    value = point.value / point.ranks if over_ranks else point.value
    return Published(point.ranks, value, point.recalled, point.tooltip, point.href)


def _point(scaled: ScalingValue, over_ranks: bool) -> LevelPoint:
    assert scaled.speedup is not None
    value, low, high = scaled.speedup.over(scaled.ranks if over_ranks else 1)
    ranks = f"{scaled.ranks} rank{'s' if scaled.ranks > 1 else ''}"
    tooltip = f"{scaled.arm}, {scaled.level}, {ranks}: {significant(value)} {bracket(low, high)}".rstrip()
    return LevelPoint(scaled.ranks, value, low, high, tooltip, f"runs/{scaled.runs[0].launch}.html")


def _csv_row(name: str, run: Run, label: Label | None) -> tuple[Any, ...]:
    case, metrics = training(run), map(run.metric, CSV_METRICS)
    return (
        name,
        arm(run),
        level(run),
        label and label.standing,
        case.ranks,
        case.compute_options.efficiency,
        run.launch,
        *metrics,
    )


def _row(name: str, scaled: ScalingValue, label: Label | None) -> Row:
    ratios = [Cell("–")] * 2
    if scaled.speedup is not None:
        estimates = (scaled.speedup, scaled.speedup.over(scaled.ranks))
        ratios = [Cell(significant(estimate.value), bracket(estimate.low, estimate.high)) for estimate in estimates]
    exposed = [seconds * 1e3 for run in scaled.runs if (seconds := run.metric("exposed_communication_s")) is not None]
    throughput = scaled.throughput
    attained = scaled.runs[0].attained("throughput", throughput.value)
    cells = [
        Cell(scaled.arm),
        Cell(scaled.level + (f" ({label.text})" if label else "")),
        Cell(str(scaled.ranks)),
        Cell(significant(throughput.value), bracket(throughput.low, throughput.high), attained),
        *ratios,
        Cell(significant(float(np.median(exposed)))) if exposed else Cell("–"),
        Cell(str(len(scaled.runs))),
    ]
    return Row(name, cells)


def published(data: SuiteData, claims: Sequence[Claim], runs: Sequence[Run]) -> list[Published]:
    """The paper's speed-ups whose claim selects an arm of these launches, or whose conditions name this network and
    minibatch."""
    points = []
    judged = {claim.id for claim in data.claims}
    cases = [training(run) for run in runs]
    for claim in claims:
        row = claim.row
        if row is None or row.metric != "speedup" or row.value is None:
            continue
        nodes, selection = row.x.get("nodes"), _selection(claim)
        if not isinstance(nodes, int) or not any(matches(case, selection) for case in cases if selection):
            continue
        tooltip = f"{row.id}: {significant(float(row.value))}x at {nodes} nodes ({row.provenance.replace('_', ' ')})"
        href = f"{data.name}.html#" + (f"claim-{anchor(row.id)}" if row.id in judged else "claims")
        points.append(Published(nodes, float(row.value), claim.recalled, tooltip, href))
    return points


def _selection(claim: Claim) -> dict[str, Any]:
    """Fields that choose the launches beside which a published speed-up is drawn; empty if they name no network."""
    assert claim.row is not None
    selected = {field: value for field, value in claim.form.select.items() if field != "ranks"}
    conditions = {"workload": claim.row.x.get("model"), "minibatch": claim.row.x.get("minibatch")}
    fields = selected or {field: value for field, value in conditions.items() if value is not None}
    return fields if fields.keys() & {"workload", "arm"} else {}
