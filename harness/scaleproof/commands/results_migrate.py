"""`scaleproof results migrate`: converts records of version 0.1."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import suites_argument

if TYPE_CHECKING:
    from scaleproof.results.migrate import Migrated

SUMMARY = "convert a results folder of version 0.1: options nested in each case, new case ids"
MOST_NAMED = 20
"""Skipped records that are named; more are counted."""


def arguments(actions: Any) -> None:
    """Add the action and its arguments to those of `scaleproof results`."""
    parser = actions.add_parser("migrate", help=SUMMARY, description=f"migrate: {SUMMARY}.", allow_abbrev=False)
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="a folder with runs/; kept beside as FOLDER.before-migration"
    )
    parser.add_argument("--to", type=Path, metavar="NEW", help="write a new folder, leave FOLDER as it is")
    suites_argument(parser)


def main(options: argparse.Namespace) -> None:
    """Convert, and print what happened to the records."""
    from scaleproof.launch.progress import tracked
    from scaleproof.results.migrate import migrate
    from scaleproof.spec.suite import list_suites

    suites = {folder.name: folder for folder in list_suites(options.suites)}
    _summary(migrate(options.folder, options.to, suites, partial(tracked, "migrate")), options.folder)


def _summary(migrated: Migrated, folder: Path) -> None:
    for skipped in migrated.skipped[:MOST_NAMED]:
        print(f"warning: {skipped.folder}: left as it is: {skipped.why}", file=sys.stderr)
    for suite, count in sorted(migrated.unknown_suites.items()):
        print(
            f"warning: suite {suite!r} is not here (--suites): {count} records of its own programs keep the digest of "
            "these programs, which differs from today's",
            file=sys.stderr,
        )
    more = f" ({len(migrated.skipped) - MOST_NAMED} of them not named)" if len(migrated.skipped) > MOST_NAMED else ""
    print(
        f"{migrated.converted} records converted, {migrated.current} without a form of version 0.1 left as they are, "
        f"{len(migrated.skipped)} skipped{more}"
    )
    if not migrated.converted:
        print(
            f"{folder}: nothing to migrate" if migrated.backup else f"{migrated.target}: a copy, nothing was to migrate"
        )
        return
    for programs in migrated.programs:
        print(
            f"suite {programs.suite}: programs of digest {programs.earlier} count as those of {programs.folder} "
            f"({programs.today}), in which the imports were renamed"
        )
    print(f"{migrated.target}: {len(set(migrated.case_ids.values()))} cases under their new ids")
    print(
        "tables, verdicts and the index were left out: `scaleproof collect` and `scaleproof judge` make them again, or "
        "`snakemake`"
    )
    if migrated.backup:
        print(f"{migrated.backup}: the folder as it was; remove it when nothing is missed")
