"""`scaleproof results list`: launches that meet conditions, newest first, and how many they are."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import print_table
from scaleproof.commands.results_common import (
    COLUMNS,
    add_action,
    chosen_launches,
    counted,
    launch_row,
    open_index,
)

if TYPE_CHECKING:
    import pyarrow as pa

MANY = 40
"""Rows that a list shows without --limit."""


def arguments(actions: Any) -> None:
    """Add the action and its arguments to those of `scaleproof results`."""
    parser = add_action(
        actions, "list", "launches that meet conditions, newest first, and how many they are", conditions=True
    )
    parser.add_argument("--limit", type=int, default=MANY, metavar="N", help=f"rows shown (default: {MANY}; 0: all)")
    parser.add_argument("--json", action="store_true", help="for machines: one JSON object a line, all of them")


def main(options: argparse.Namespace) -> None:
    """Print the launches, then a line with their counts."""
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
