"""`scaleproof results merge`: copies another results folder into this one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from scaleproof.commands.results_common import add_action, counted


def arguments(actions: Any) -> None:
    """Add the action and its arguments to those of `scaleproof results`."""
    parser = add_action(
        actions,
        "merge",
        "take in another results folder: its records as further campaigns, machines/ and stops/; refuses one launch "
        "with two contents",
    )
    parser.add_argument("other", type=Path, metavar="OTHER", help="a folder with runs/; it is only read")
    parser.add_argument("--dry-run", action="store_true", help="say what is new and copy nothing")


def main(options: argparse.Namespace) -> None:
    """Merge, and print what is new, what is the same and what differs."""
    from scaleproof.results.merge import merge

    merged = merge(options.results, options.other, options.dry_run)
    for line in merged.damaged:
        print(f"warning: {line}; not merged", file=sys.stderr)
    state = "would be new" if options.dry_run else "new"
    print(
        f"{counted(len(merged.new), 'launch', 'launches')} {state}, {merged.same} here already, "
        f"{len(merged.damaged)} no records"
    )
    for campaign in merged.campaigns:
        print(f"  further campaign: {campaign}")
    for path in merged.beside:
        print(f"  {state}: {path}")
    for path in merged.ours:
        print(f"  differs, ours stays: {path}")
    if merged.new and not options.dry_run:
        print(
            "tables and verdicts are unchanged: `scaleproof collect` and `scaleproof judge` make them again, "
            "or `snakemake`"
        )
