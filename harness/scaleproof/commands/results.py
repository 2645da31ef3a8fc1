"""Manages a results folder: lists launches, queries them in SQL, exports them, merges another machine's folder, prunes
old records, and converts those of an earlier version.

Which launches: conditions KEY:VALUE behind the action. All keys must hold; several values of one key mean any of them.
Keys are all fields of a case (suite, experiment, arm, transport, strategy, workload, ranks, ...), and size, status,
evidence, machine, code, commit, case, launch, since, until, failure, warning, and tag: a value on any axis of
docs/tags.md. For case, launch, code, commit and machine the beginning is enough. Lists come from an index, which each
command brings up to date; if results/index/ is deleted, it is made again from the records."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from scaleproof.commands import results_export, results_merge, results_migrate, results_prune
from scaleproof.commands.common import print_table
from scaleproof.commands.results_common import (
    COLUMNS,
    add_action,
    chosen_launches,
    conditions_argument,
    counted,
    launch_row,
    open_index,
)

if TYPE_CHECKING:
    import pyarrow as pa

HELP = "list, query, export, merge, prune and migrate records"
EXAMPLE = """scaleproof results list suite:das2016 status:failed since:2026-11-01
  scaleproof results query "SELECT arm, median(throughput) FROM planned WHERE experiment = 'throughput' GROUP BY arm"
  scaleproof results export suite:das2016 size:small --ro-crate das2016.zip
  scaleproof results merge /mnt/other/results
  scaleproof results prune --old-code --failed           shows what would go; --yes removes it
  scaleproof results migrate results                     records of version 0.1 in today's form"""
MANY = 40
"""Rows that a list shows without --limit."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions of this command to `parser`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = add_action(actions, "list", "launches that meet conditions, newest first, and how many they are")
    conditions_argument(listing)
    listing.add_argument("--limit", type=int, default=MANY, metavar="N", help=f"rows shown (default: {MANY}; 0: all)")
    listing.add_argument("--json", action="store_true", help="for machines: one JSON object a line, all of them")
    query = add_action(actions, "query", "one SQL statement (DuckDB) over tables launches, samples, claims and planned")
    query.add_argument(
        "sql",
        metavar="SQL",
        help="such as \"SELECT status, count(*) FROM launches GROUP BY status\"; 'DESCRIBE launches' lists columns",
    )
    query.add_argument("--json", action="store_true", help="for machines: one JSON object a line")
    for action in (results_export, results_merge, results_prune, results_migrate):
        action.arguments(actions)


def main(options: argparse.Namespace) -> int:
    """Run the requested action."""
    actions = {
        "list": _list,
        "query": _query,
        "export": results_export.main,
        "merge": results_merge.main,
        "prune": results_prune.main,
        "migrate": results_migrate.main,
    }
    actions[options.action](options)
    return 0


def _list(options: argparse.Namespace) -> None:
    launches = chosen_launches(options, open_index(options.results)).sort_by([("started_at", "descending")])
    if options.json:
        for row in launches.to_pylist():
            print(json.dumps({**row, "fields": json.loads(row["fields"])}))
        return
    rows = launches.slice(0, options.limit or len(launches)).to_pylist()
    if rows:
        print_table(COLUMNS, [launch_row(row) for row in rows])
    more = len(launches) - len(rows)
    print(_summary(launches) + (f" ({more} more rows: --limit 0 shows all)" if more else ""))


def _summary(launches: pa.Table) -> str:
    """How many launches there are, by outcome, of how many cases and machines, and from when to when."""
    import pyarrow.compute as pc

    if not len(launches):
        return "no launches"
    counts = {row["values"]: row["counts"] for row in pc.value_counts(launches["status"]).to_pylist()}
    outcomes = ", ".join(
        f"{counts[status]} {label}"
        for status, label in (("ok", "ok"), ("failed", "failed"), ("not_runnable", "not runnable here"))
        if status in counts
    )
    cases, machines = (pc.count_distinct(launches[name]).as_py() for name in ("case", "machine"))
    first, last = (pick(launches["started_at"]).as_py()[:19] for pick in (pc.min, pc.max))
    samples = counted(pc.sum(launches["samples"]).as_py(), "sample")
    return (
        f"{counted(len(launches), 'launch', 'launches')}: {outcomes}; {counted(cases, 'case')}, "
        f"{counted(machines, 'machine')}, {samples}, from {first} to {last}"
    )


def _query(options: argparse.Namespace) -> None:
    from scaleproof.results.views import query

    columns, rows = query(options.results, open_index(options.results), options.sql)
    if options.json:
        for row in rows:
            print(json.dumps(dict(zip(columns, row, strict=True)), default=str))
    elif columns:
        print_table(columns, [[_cell(cell) for cell in row] for row in rows])


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
