"""All pages and machine copies of one size; reads records, tables and verdicts, starts nothing, writes no date."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from scaleproof.claims.claims_file import write_claims
from scaleproof.report import costs, csvs, glossary, index, machine, run, suite
from scaleproof.report.data import load, tables
from scaleproof.report.pages import Pages
from scaleproof.spec.suite import Suite


def build(results: Path, reports: Path, size: str, suites: Sequence[Suite]) -> Path:
    """Write `reports/` and return its index.html. Suites without this size are left out; pages of earlier builds are
    replaced."""
    data = load(results, size, suites)
    reports.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(reports / "runs", ignore_errors=True)
    pages = Pages(reports, size, [one_suite.name for one_suite in data])
    profiles = machine.profiles(results, data)
    machine.write(pages, profiles)
    costs.write(pages, results, profiles)
    for one_suite in data:
        suite.write(pages, one_suite, profiles)
        for launch in one_suite.launches.values():
            run.write(pages, one_suite, launch)
    glossary.write(pages)
    write_claims(reports / "claims.json", [claim for one_suite in data for claim in one_suite.claims])
    labels = {
        run.launch: label.standing
        for one_suite in data
        for run in one_suite.runs
        if run.record and (label := one_suite.label([run]))
    }
    csvs.write_runs(
        reports / "runs.csv", [table for one_suite in data for table in tables(results, size, one_suite.suite)], labels
    )
    return index.write(pages, size, data, machine.summary(profiles))
