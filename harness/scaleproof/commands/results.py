"""Manages a results folder: lists launches, queries them in SQL, exports them, merges another machine's folder, prunes
old records, and converts those of an earlier version.

Which launches: conditions KEY:VALUE behind the action. All keys must hold; several values of one key mean any of them.
Keys are all fields of a case (suite, experiment, arm, transport, strategy, workload, ranks, ...), and size, status,
evidence, machine, code, commit, case, launch, since, until, failure, warning, and tag: a value on any axis of
docs/tags.md. For case, launch, code, commit and machine the beginning is enough. Lists come from an index, which each
command brings up to date; if results/index/ is deleted, it is made again from the records."""

from __future__ import annotations

import argparse

from scaleproof.commands import (
    results_export,
    results_list,
    results_merge,
    results_migrate,
    results_prune,
    results_query,
)

HELP = "list, query, export, merge, prune and migrate records"
EXAMPLE = """scaleproof results list suite:das2016 status:failed since:2026-11-01
  scaleproof results query "SELECT arm, median(throughput) FROM planned WHERE experiment = 'throughput' GROUP BY arm"
  scaleproof results export suite:das2016 size:small --ro-crate das2016.zip
  scaleproof results merge /mnt/other/results
  scaleproof results prune --old-code --failed           shows what would go; --yes removes it
  scaleproof results migrate results                     records of version 0.1 in today's form"""
ACTIONS = {
    "list": results_list,
    "query": results_query,
    "export": results_export,
    "merge": results_merge,
    "prune": results_prune,
    "migrate": results_migrate,
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions of this command to `parser`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in ACTIONS.values():
        action.arguments(actions)


def main(options: argparse.Namespace) -> int:
    """Run the requested action."""
    ACTIONS[options.action].main(options)
    return 0
