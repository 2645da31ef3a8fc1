"""Builds pages, and their data as CSV and JSON, from records and verdicts. It starts no launch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scaleproof.commands.common import results_argument, size_argument, size_of, suites_argument, suites_of

if TYPE_CHECKING:
    from scaleproof.spec.suite import Suite

HELP = "pages from records and verdicts"
EXAMPLE = "scaleproof report --size smoke -o reports"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("suite", metavar="SUITE", nargs="?", help="a suite's name or folder (default: all)")
    size_argument(parser)
    results_argument(parser)
    suites_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("reports"),
        metavar="DIR",
        help="folder of the pages (default: ./reports)",
    )


def main(options: argparse.Namespace) -> int:
    """Write the pages and print the path of the index. Missing tables and verdicts are named on stderr; suites without
    any of them are named in one line."""
    size = size_of(options)
    suites = suites_of(options.suite, options.suites)

    from scaleproof.report.build import build

    not_begun = []
    for suite in suites:
        needed = list(_needed(suite, size, options.results))
        missing = [(command, path) for command, path in needed if not path.exists()]
        if len(missing) == len(needed) and not options.suite:
            not_begun.append(suite.name)
            continue
        for command, path in missing:
            print(f"warning: {path} is missing; `scaleproof {command} --size {size}` makes it", file=sys.stderr)
    if not_begun:
        print(
            f"nothing of size {size} yet: {', '.join(not_begun)}; `snakemake NAME --config size={size}` runs one",
            file=sys.stderr,
        )
    print(build(options.results, options.output, size, suites))
    return 0


class _NeededFile(NamedTuple):
    """A file, and the command that writes it."""

    command: str
    path: Path


def _needed(suite: Suite, size: str, results: Path) -> Iterator[_NeededFile]:
    """The files that the pages of a suite are made from."""
    for name, experiment in suite.experiments.items():
        if size in experiment.sizes:
            yield _NeededFile(
                f"collect {suite.name} {name}", results / "tables" / f"{suite.name}.{name}.{size}.parquet"
            )
    yield _NeededFile(f"judge {suite.name}", results / "claims" / f"{suite.name}.{size}.json")
