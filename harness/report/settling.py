"""Whether the machine had settled when an experiment began: a line per experiment, above the table of its launches."""

from __future__ import annotations

from harness.claims.launch import Launch
from harness.claims.settling import BEYOND, Settling, settling, timed_regions
from harness.report.data import SuiteData
from harness.report.numbers import percent
from harness.report.sections import Cell, Row, Table

CAPTION = (
    "Had the machine settled? By how much the timed regions of the first block were longer than those of later blocks of the same case (median over cases), "
    f"and how far later blocks stray. Not settled: more than {BEYOND:g} times as far as any later block, in so many cases that a sign test is below 5 %."
)


def table(data: SuiteData) -> Table:
    """Experiments with enough cases and blocks."""
    rows = []
    for name in data.suite.experiments:
        ran = [Launch(run.record, run.samples) for run in data.runs if run.status == "ok" and run.record is not None and run.record.case.experiment == name]
        if (found := settling(timed_regions(ran))) is not None:
            so = words(found, f"{data.name} {name} --size {ran[0].record.size}")
            rows.append(
                Row("", [Cell(name), Cell(percent(found.shift)), Cell(percent(found.strays)), Cell(f"{found.p:.2g}"), Cell(str(found.cases)), Cell(so)])
            )
    return Table(CAPTION, ["experiment", "first block longer by", "later blocks stray by", "p", "cases", "so"], rows)


def words(found: Settling, which: str) -> str:
    """What the table says of an experiment; `which`: what `run` is told to run it."""
    return "nothing to see" if found.settled else f"not settled: repeat the first block by scaleproof run {which} --launch 0 --again"
