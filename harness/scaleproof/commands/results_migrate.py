"""`scaleproof results migrate`: records of version 0.1 in today's form."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import suites_argument

if TYPE_CHECKING:
    from scaleproof.results.migrate import Migrated

WORDS = "convert a results folder of version 0.1: options nested in each case, new case ids"
SHOWN = 20
"""Skipped records that are named."""


def arguments(actions: Any) -> None:
    """Declare them."""
    parser = actions.add_parser("migrate", help=WORDS, description=f"migrate: {WORDS}.", allow_abbrev=False)
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="a folder with runs/; kept beside as FOLDER.before-migration"
    )
    parser.add_argument("--to", type=Path, metavar="NEW", help="write a new folder, leave FOLDER as it is")
    suites_argument(parser)


def main(given: argparse.Namespace) -> None:
    """Convert, and say what became of every record."""
    from scaleproof.results.migrate import migrate
    from scaleproof.spec.suite import list_suites

    suites = {folder.name: folder for folder in list_suites(given.suites)}
    _summary(migrate(given.folder, given.to, suites, _watched), given.folder)


def _watched(folders: Sequence[Path], every_s: float = 5.0) -> Iterable[Path]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(folders, "migrate", console=console) if console.is_terminal else _counted(folders, every_s)


def _counted(folders: Sequence[Path], every_s: float) -> Iterator[Path]:
    reported = time.monotonic()
    for number, folder in enumerate(folders, start=1):
        yield folder
        if time.monotonic() - reported > every_s:
            reported = time.monotonic()
            print(f"migrate: {number}/{len(folders)} records", file=sys.stderr, flush=True)


def _summary(done: Migrated, folder: Path) -> None:
    for skipped in done.skipped[:SHOWN]:
        print(f"warning: {skipped.folder}: left as it is: {skipped.why}", file=sys.stderr)
    for suite, count in sorted(done.unknown_suites.items()):
        print(
            f"warning: suite {suite!r} is not here (--suites): {count} records of its own programs keep the digest of "
            "these programs, which is not that of today's",
            file=sys.stderr,
        )
    more = f" ({len(done.skipped) - SHOWN} of them not named)" if len(done.skipped) > SHOWN else ""
    print(
        f"{done.converted} records converted, {done.current} without a form of version 0.1 left as they are, "
        f"{len(done.skipped)} skipped{more}"
    )
    if not done.converted:
        print(f"{folder}: nothing to migrate" if done.backup else f"{done.target}: a copy, nothing was to migrate")
        return
    for programs in done.programs:
        print(
            f"suite {programs.suite}: programs of digest {programs.earlier} count as those of {programs.folder} "
            f"({programs.today}), in which the imports were renamed"
        )
    print(f"{done.target}: {len(set(done.case_ids.values()))} cases under their new ids")
    print(
        "tables, verdicts and the index were left out: `scaleproof collect` and `scaleproof judge` make them anew, or "
        "`snakemake`"
    )
    if done.backup:
        print(f"{done.backup}: the folder as it was; remove it when nothing is missed")
