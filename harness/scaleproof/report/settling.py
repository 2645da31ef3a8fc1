"""Whether the machine had settled when an experiment began: a row per experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scaleproof.claims.finished_launch import Launch
from scaleproof.claims.settling import BEYOND, settling, timed_regions
from scaleproof.core.campaign import Campaign
from scaleproof.report.data import SuiteData
from scaleproof.report.numbers import percent
from scaleproof.report.sections import Cell, Row, Table

CAPTION = (
    "Had the machine settled? By how much the timed regions of the first block were longer than those of later "
    "blocks of the same case (median over cases), "
    f"and how far later blocks stray. Not settled: more than {BEYOND:g} times as far as any later block, in so many "
    "cases that a sign test is below 5 %."
)
COLUMNS = ["experiment", "first block longer by", "later blocks stray by", "p", "cases", "settled"]


class SettlingTable(NamedTuple):
    """A row per experiment, and commands that repeat the experiments on an unsettled machine."""

    table: Table
    commands: list[str]


def settling_table(data: SuiteData) -> SettlingTable:
    """The table of all experiments with enough cases and blocks."""
    rows, commands = [], []
    for name in data.suite.experiments:
        campaigns = _by_campaign(data, name)
        for campaign, launches in campaigns.items():
            first = min(launch.record.plan_index for launch in launches)
            if (result := settling(timed_regions(launches, first))) is None:
                continue
            cells = [
                name + _which(campaign, list(campaigns)),
                percent(result.shift),
                percent(result.strays),
                f"{result.p:.2g}",
                str(result.cases),
                "yes" if result.settled else "no",
            ]
            rows.append(Row("", [Cell(text) for text in cells]))
            if not result.settled:
                size, number = launches[0].record.size, f" --campaign {campaign.number}" * bool(campaign.number)
                command = f"scaleproof run {data.name} {name} --size {size}{number} --again"
                commands += [command] if command not in commands else []
    return SettlingTable(Table(CAPTION, COLUMNS, rows), commands)


def _by_campaign(data: SuiteData, experiment: str) -> dict[Campaign, list[Launch]]:
    """Finished launches of an experiment that were not predicted; each campaign begins on a machine that may not have
    settled."""
    launches: dict[Campaign, list[Launch]] = {}
    for run in data.runs:
        if run.status != "ok" or run.record is None or run.record.case.experiment != experiment:
            continue
        if run.record.evidence != "simulated":  # before its samples are read
            launches.setdefault(run.record.of_campaign, []).append(Launch(run.record, run.samples))
    return dict(sorted(launches.items(), key=lambda of_one: (of_one[0].number, _began(of_one[1]))))


def _began(launches: Sequence[Launch]) -> str:
    return min(str(launch.record.started_at) for launch in launches)


def _which(campaign: Campaign, all_campaigns: Sequence[Campaign]) -> str:
    """The campaign in words; which call of `run`, where several made the campaign."""
    calls = [each for each in all_campaigns if each.number == campaign.number]
    number = f", campaign {campaign.number}" if campaign.number else ""
    return number + (f", call {calls.index(campaign) + 1} of {len(calls)}" if len(calls) > 1 else "")
