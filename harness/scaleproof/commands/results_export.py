"""`scaleproof results export`: chosen launches as Parquet files, as a DuckDB database, or as an RO-Crate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import suites_argument, suites_of
from scaleproof.commands.results_common import (
    add_action,
    chosen_launches,
    counted,
    open_index,
)

if TYPE_CHECKING:
    import pyarrow as pa


def arguments(actions: Any) -> None:
    """Add the action and its arguments to those of `scaleproof results`."""
    parser = add_action(actions, "export", "chosen launches for other tools and other people", conditions=True)
    formats = parser.add_mutually_exclusive_group(required=True)
    formats.add_argument(
        "--parquet",
        type=Path,
        metavar="DIR",
        help="a new folder with launches, samples, claims and planned as Parquet files",
    )
    formats.add_argument("--duckdb", type=Path, metavar="FILE", help="the same as one DuckDB database")
    formats.add_argument(
        "--ro-crate",
        type=Path,
        metavar="PATH",
        help="records, tables, verdicts, suites and environment as an RO-Crate: a folder, or PATH.zip",
    )
    suites_argument(parser)


def main(options: argparse.Namespace) -> None:
    """Write the requested format and print what it holds."""
    from scaleproof.results.export import to_duckdb, to_parquet
    from scaleproof.results.views import views
    from scaleproof.spec.errors import SpecError

    index = open_index(options.results)
    chosen = chosen_launches(options, index)
    if not len(chosen):
        raise SpecError(f"{options.results}: no launch to export")
    tables = views(options.results, index, chosen=chosen)
    if options.ro_crate:
        _export_crate(options, chosen, tables)
        return
    if options.parquet:
        to_parquet(tables, options.parquet)
    else:
        to_duckdb(tables, options.duckdb)
    sizes = ", ".join(f"{name} {len(table)} rows" for name, table in tables.items())
    print(f"{options.parquet or options.duckdb}: {sizes}")


def _export_crate(options: argparse.Namespace, chosen: pa.Table, tables: dict[str, pa.Table]) -> None:
    from scaleproof.results.crate import to_crate

    names = set(chosen["suite"].to_pylist())
    suites = {suite.name: suite for suite in suites_of(None, options.suites) if suite.name in names}
    for name in sorted(names - suites.keys()):
        print(
            f"warning: suite {name!r} is not here (--suites), so the crate holds its records without its "
            "experiments and claims",
            file=sys.stderr,
        )
    count = to_crate(options.results, chosen, tables, suites, options.ro_crate)
    print(f"{options.ro_crate}: RO-Crate of {counted(count, 'launch', 'launches')}, read back whole")
