"""Builds all pages of one size, and their data as CSV and JSON. It only reads records, tables and verdicts; pages have
no date, so that equal data give equal bytes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from scaleproof.claims.claims_file import write_claims
from scaleproof.record.host import usable_cores
from scaleproof.record.machine import MachineProfile
from scaleproof.record.parallel import in_parallel
from scaleproof.report import costs, csvs, glossary, index, machine, run, suite
from scaleproof.report.code_shown import code_shown
from scaleproof.report.data import SuiteData, load, tables
from scaleproof.report.pages import Pages
from scaleproof.spec.suite import Suite


def build(results: Path, reports: Path, size: str, suites: Sequence[Suite]) -> Path:
    """Write the pages into `reports` and return index.html. Suites without this size are left out; pages of earlier
    builds are replaced."""
    data = load(results, size, suites)
    reports.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(reports / "runs", ignore_errors=True)
    pages = Pages(reports, size, [suite_data.name for suite_data in data])
    profiles = machine.profiles(results, data)
    machine.write(pages, profiles)
    costs.write(pages, results, profiles)
    _write_suites(pages, data, profiles)
    run.write_all(pages, data)
    glossary.write(pages)
    write_claims(
        reports / "claims.json",
        [claim for suite_data in data for claim in suite_data.claims],
        {suite_data.name: suite_data.judged_by for suite_data in data if suite_data.judged_by},
    )
    labels = {
        run.launch: label.standing
        for suite_data in data
        for run in suite_data.runs
        if run.record and (label := suite_data.label([run]))
    }
    csvs.write_runs(
        reports / "runs.csv",
        [table for suite_data in data for table in tables(results, size, suite_data.suite)],
        labels,
    )
    return index.write(pages, size, data, [*machine.summary(profiles), *code_shown(data)])


def _write_suites(pages: Pages, data: Sequence[SuiteData], profiles: dict[str, MachineProfile | None]) -> None:
    """The pages of all suites, on all cores; large and small suites are spread over them."""
    cores = int(usable_cores())
    by_size = sorted(data, key=lambda suite_data: len(suite_data.runs), reverse=True)

    def some(share: Sequence[SuiteData]) -> None:
        for suite_data in share:
            suite.write(pages, suite_data, profiles)

    in_parallel(some, [suite_data for core in range(cores) for suite_data in by_size[core::cores]], cores)
