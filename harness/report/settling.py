"""Whether the machine had settled when an experiment began: a line per experiment, above the table of its launches."""

from __future__ import annotations

from harness.claims.launch import Launch
from harness.claims.settling import Settling, settling, timed_regions
from harness.report.data import SuiteData
from harness.report.numbers import percent
from harness.report.sections import Cell, Row, Table

CAPTION = (
    "Had the machine settled? The first block of launches against the others: in how many cases its timed region took longer, by how much (median over cases), "
    "and whether that is chance (sign test over cases, 5 %)."
)


def table(data: SuiteData) -> Table:
    """Experiments with cases that have enough launches."""
    rows = []
    for name in data.suite.experiments:
        ran = [Launch(run.record, run.samples) for run in data.runs if run.status == "ok" and run.record is not None and run.record.case.experiment == name]
        if (found := settling(timed_regions(ran))) is not None:
            so = _words(found, f"{data.name} {name} --size {ran[0].record.size}")
            cells = [Cell(f"{found.slower} of {found.cases}"), Cell(percent(found.share)), Cell(f"{found.p:.2g}"), Cell(so)]
            rows.append(Row("", [Cell(name), *cells]))
    return Table(CAPTION, ["experiment", "slower at first", "longer by", "p", "so"], rows)


def _words(found: Settling, which: str) -> str:
    if found.settled:
        return "nothing to see" if found.cases >= 6 else "nothing to see; six cases are the fewest that can tell"
    return f"not settled: repeat the first block by scaleproof run {which} --launch 0 --again"
