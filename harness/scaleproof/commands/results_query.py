"""`scaleproof results query`: one SQL statement over the tables of a results folder."""

from __future__ import annotations

import argparse
import json
from typing import Any

from scaleproof.commands.common import print_table
from scaleproof.commands.results_common import add_action, open_index


def arguments(actions: Any) -> None:
    """Add the action and its arguments to those of `scaleproof results`."""
    parser = add_action(
        actions, "query", "one SQL statement (DuckDB) over tables launches, samples, claims and planned"
    )
    parser.add_argument(
        "sql",
        metavar="SQL",
        help="such as \"SELECT status, count(*) FROM launches GROUP BY status\"; 'DESCRIBE launches' lists columns",
    )
    parser.add_argument("--json", action="store_true", help="for machines: one JSON object a line")


def main(options: argparse.Namespace) -> None:
    """Run the statement and print its rows."""
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
