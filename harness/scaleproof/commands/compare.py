"""Compares two sides of launches: numbers with intervals beside the noise floor, and what differs in configuration and
environment.

A side is SOURCE, or SOURCE@KEY:VALUE,KEY:VALUE: a results folder, the id of a case or of a launch (or its beginning),
or empty for ./results; keys are commit, machine, arm, experiment, size, since, until and every field of a case. A is
the base: changes are those of B relative to A."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import open_store, print_table, results_argument, suites_argument

if TYPE_CHECKING:
    from rich.text import Text

    from scaleproof.compare.comparison_schema import Comparison, PairOut, Row, SideOut

HELP = "two runs, sets, commits or machines: by how much they differ, and what else does"
EXAMPLE = "scaleproof compare @arm:tcp @arm:gloo --page compare.html"
COLOURS = {
    "worse": "red",
    "better": "green",
    "changed": "yellow",
    "different machines": "yellow",
    "inconclusive": "dim",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument(
        "a", metavar="A", help="the base: a results folder, case or launch, or @KEY:VALUE,... of --results"
    )
    parser.add_argument("b", metavar="B", help="what is compared with it")
    results_argument(parser)
    suites_argument(parser)
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="only this metric; may be given several times (default: all)",
    )
    parser.add_argument(
        "--across-machines", action="store_true", help="treat differences between two machines as changes"
    )
    parser.add_argument(
        "--fail-on",
        choices=["regression"],
        help="exit code 1 when B is significantly worse than A beyond the noise floor",
    )
    parser.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write a page that needs no other file")
    parser.add_argument(
        "--summary",
        type=Path,
        metavar="FILE",
        help="also append a few lines of Markdown, as a job's summary in continuous integration",
    )


def main(options: argparse.Namespace) -> int:
    """Print the comparison; 1 if --fail-on finds a regression."""
    from scaleproof.compare.comparison import Question, build
    from scaleproof.compare.side_selection import select

    opened = functools.cache(functools.partial(open_store, many=True))
    a, b = (select(text, options.results, opened) for text in (options.a, options.b))
    comparison = build(a, b, Question(tuple(options.metric), options.across_machines, suites=options.suites))
    if options.json:
        print(comparison.model_dump_json(indent=1))
    else:
        _print(comparison)
    if options.page:
        from scaleproof.report.compare import write

        print(f"page: {write(options.page, comparison)}", file=sys.stderr)
    if options.summary:
        from scaleproof.report.compare_summary import summary

        with options.summary.open("a") as file:
            file.write(summary(comparison))
    return _gate(comparison) if options.fail_on else 0


def _gate(comparison: Comparison) -> int:
    """Exit code of `--fail-on regression`."""
    from scaleproof.spec.errors import SpecError

    if comparison.outcome == "undecided":
        raise SpecError(comparison.outcome_why)
    return int(comparison.outcome == "regression")


def _print(comparison: Comparison) -> None:
    print(f"A (base): {_side(comparison.a)}\nB:        {_side(comparison.b)}\n")
    for pair in comparison.pairs:
        _print_pair(pair, comparison.confidence)
    for row in comparison.unpaired:
        print(f"not compared: {row.title}\n  case {row.case} of {row.side}: {row.reason}\n")
    if comparison.environment:
        marks = {(True, False): "yes", (True, True): "requested", (False, True): "requested", (False, False): ""}
        rows = [
            [row.part, row.name, _values(row.a), _values(row.b), marks[row.matters, row.asked]]
            for row in comparison.environment
        ]
        print_table(["environment", "name", "A", "B", "may explain a difference"], rows)
    elif comparison.pairs:
        print("environment: no difference\n")
    for warning in comparison.warnings:
        print(f"warning {warning.code}: {warning.message}")
    print(_summary(comparison))


def _print_pair(pair: PairOut, confidence: float) -> None:
    print(pair.title)
    how = (
        "block by block"
        if pair.paired
        else "side by side" + (f", since {pair.why_unpaired}" if pair.why_unpaired else "")
    )
    print(
        f"  cases {pair.case_a} and {pair.case_b}; {len(pair.runs_a)} and {len(pair.runs_b)} good launches, "
        f"{sum(pair.failed)} failed; compared {how}"
    )
    for field in pair.differs:
        print(f"  {field.name}: {field.a} in A, {field.b} in B")
    columns = [
        "metric",
        "A",
        "B",
        "unit",
        "change",
        f"{100 * confidence:.0f} % interval",
        "noise floor",
        "p",
        "p adjusted",
        "n",
        "finding",
    ]
    print_table(columns, [_row(row) for row in pair.rows])


def _row(row: Row) -> Sequence[str | Text]:
    from rich.text import Text

    from scaleproof.spec.units import format_bytes

    (scale, unit), arrow = row.scale, {"higher": " ↑", "lower": " ↓", None: ""}[row.direction]
    name = row.metric + ("" if row.nbytes is None else f" {format_bytes(row.nbytes)}")
    interval = "" if row.low is None or row.high is None else f"{100 * (row.low - 1):+.1f} to {_change(row.high)}"
    floor = "unknown" if row.floor is None else f"{100 * row.floor:.3g} %"
    finding = Text("regression" if row.regression else row.change, style=COLOURS.get(row.change, ""))
    a, b = (_number(None if value is None else value * scale) for value in (row.a, row.b))
    numbers = [_change(row.factor), interval, floor, _number(row.p_value, 2), _number(row.p_adjusted, 2)]
    count = str(row.n[0]) if row.n[0] == row.n[1] else f"{row.n[0]}, {row.n[1]}"
    return [name, a, b, unit + arrow, *numbers, count, finding]


def _summary(comparison: Comparison) -> str:
    rows = len(comparison.rows)
    counted = ", ".join(f"{count} {change}" for change, count in comparison.counts.items() if count)
    tested = (
        f"{comparison.tests} tests, p adjusted for all of them (Benjamini-Hochberg)"
        if comparison.tests
        else "no test: too few launches"
    )
    return (
        f"{len(comparison.pairs)} cases, {rows} rows: {counted or 'none'}; {tested}; {comparison.regressions or 'no'} "
        f"regression{'s' if comparison.regressions > 1 else ''}"
    )


def _side(side: SideOut) -> str:
    failures = f", {side.failed} failed" if side.failed else ""
    failures += f", {side.not_runnable} not runnable" if side.not_runnable else ""
    origin = f"machine {', '.join(side.machines)}; code {'; '.join(side.codes)}; from {side.first} to {side.last}"
    return (
        f"{side.given or side.results}: {side.ok} good launches{failures} of {side.cases} "
        f"case{'s' if side.cases != 1 else ''}; {origin}"
    )


def _values(values: Sequence[str]) -> str:
    return ", ".join(values) or "absent"


def _number(value: float | None, digits: int = 4) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _change(ratio: float | None) -> str:
    """A ratio as a change: 1.05 is +5 %."""
    return "" if ratio is None else f"{100 * (ratio - 1):+.1f} %"
