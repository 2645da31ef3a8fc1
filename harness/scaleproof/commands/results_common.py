"""What the actions of `scaleproof results` share: conditions on launches, the index, and rows of their tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import results_argument

if TYPE_CHECKING:
    import pyarrow as pa

    from scaleproof.record.index import Index
    from scaleproof.record.rows import Row

COLUMNS = (
    "launch",
    "suite",
    "experiment",
    "arm",
    "size",
    "evidence",
    "status",
    "machine",
    "code",
    "started",
    "wall s",
    "samples",
)
"""Heads of the columns of `launch_row`."""


def add_action(actions: Any, name: str, summary: str, conditions: bool = False) -> argparse.ArgumentParser:
    """The parser of one action, with --results. `conditions`: also KEY:VALUE, which `chosen_launches` reads."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=f"{name}: {summary}.", allow_abbrev=False
    )
    results_argument(parser)
    if conditions:
        parser.add_argument(
            "conditions",
            metavar="KEY:VALUE",
            nargs="*",
            help="as in transport:tcp status:ok since:2026-11-01 tag:closed-ring (default: all)",
        )
    return parser


def open_index(results: Path) -> Index:
    """The index of a results folder, with a warning on stderr for each folder in it that is no record. SpecError if
    there are no records at all."""
    from scaleproof.record.index import Index
    from scaleproof.record.missing_plugins import warning
    from scaleproof.record.read import ignored
    from scaleproof.spec.errors import SpecError

    if not (results / "runs").is_dir():
        raise SpecError(
            f"{results}: no records, since it has no folder 'runs'; --results names another, `scaleproof run` "
            "makes records"
        )
    index = Index(results)
    lines = [ignored(index.runs / case_id / launch, problem) for (case_id, launch), problem in index.problems.items()]
    for line in dict.fromkeys(lines):
        print(f"warning: {line}", file=sys.stderr)
    for kind, name in index.missing_plugins:
        print(f"warning: {warning(kind, name)}", file=sys.stderr)
    return index


def chosen_launches(options: argparse.Namespace, index: Index) -> pa.Table:
    """The rows of the index that meet the conditions."""
    from scaleproof.results.choose import choose, conditions

    return choose(index.launches, conditions(options.conditions), str(options.results))


def launch_row(row: Row) -> list[str]:
    """The cells of a launch, in the order of COLUMNS."""
    status = row["status"] if row["failure"] is None else f"{row['status']}: {row['failure']}"
    evidence = row["evidence"] + (f", excluded: {row['excluded']}" if row["excluded"] else "")
    return [
        *(str(row[name]) for name in ("launch", "suite", "experiment", "arm", "size")),
        evidence,
        status,
        row["machine"],
        row["code"],
        row["started_at"][:19],
        f"{row['wall_s']:.1f}",
        str(row["samples"]),
    ]


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun: 1 case, 2 cases."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
