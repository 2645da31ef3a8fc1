"""Lists suites with their experiments and sizes, which `run` can run."""

from __future__ import annotations

import argparse
import sys

from scaleproof.commands.common import print_table, suites_argument

HELP = "list suites, experiments and sizes"
EXAMPLE = "scaleproof list das2016"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("suite", metavar="SUITE", nargs="?", help="one suite's name or folder (default: all)")
    suites_argument(parser)


def main(options: argparse.Namespace) -> int:
    """Print a row per experiment. Errors in a suite go to stderr, and the other suites are still listed."""
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.suite import list_suites, load_suite

    rows, errors = [], 0
    for name in [options.suite] if options.suite else list_suites(options.suites):
        try:
            suite = load_suite(name if isinstance(name, str) else name.absolute(), options.suites)
        except SpecError as error:
            print(error, file=sys.stderr)
            errors += 1
            continue
        for experiment in suite.experiments.values():
            sizes = ", ".join(
                f"{size.name} ({len(size.cases)} x {size.launches})" for size in experiment.sizes.values()
            )
            rows.append([suite.name, experiment.name, sizes, experiment.summary])
    if rows:
        print_table(["suite", "experiment", "sizes (cases x launches)", "summary"], rows)
    return 2 if errors else 0
