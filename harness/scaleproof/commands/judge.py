"""Judges claims from the existing records, without running anything."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from scaleproof.commands.common import (
    open_store,
    print_table,
    results_argument,
    size_argument,
    size_of,
    suites_argument,
    suites_of,
)

if TYPE_CHECKING:
    from scaleproof.claims.claims_file import ClaimResult

HELP = "verdicts from the existing records, without running"
EXAMPLE = "scaleproof judge das2016 --size smoke"
_COLUMNS = ("published", "ours", "interval", "n", "unit", "evidence", "verdict")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("suite", metavar="SUITE", nargs="?", help="a suite's name or folder (default: all)")
    size_argument(parser)
    results_argument(parser)
    suites_argument(parser)


def main(options: argparse.Namespace) -> int:
    """Write each suite's verdicts and print them as a table."""
    size = size_of(options)
    chosen = suites_of(options.suite, options.suites)

    from scaleproof.claims.claims_file import write_claims
    from scaleproof.claims.judge import judge_suite
    from scaleproof.claims.judging_version import judging_version

    store = open_store(options.results, many=True)
    judged = {suite.name: judge_suite(suite, size, store) for suite in chosen}
    versions = {suite.name: judging_version(suite.folder) for suite in chosen}
    for name, results in judged.items():
        path = options.results / "claims" / f"{name}.{size}.json"
        write_claims(path, results, {name: versions[name]})
        claims = [_row(result) for result in results if result.kind in ("claim", "consistency")]
        checks = [_row(result) for result in results if result.kind == "check"]
        print_table(["claim", *_COLUMNS], claims, f"{name} {size}")
        if any(result.reduced for result in results):
            print("reduced, 1/x: not comparable with the published value, the full network takes x times the work\n")
        if checks:
            print_table(["check", *_COLUMNS], checks, f"{name} {size}: checks of our own code, counted apart")
        hidden = len(results) - len(claims) - len(checks)
        print(f"{path}" + (f" ({hidden} rows of context are in it too)" if hidden else ""))
    return 0


def _row(result: ClaimResult) -> list[str]:
    interval = f"{_number(result.interval.low)} to {_number(result.interval.high)}" if result.interval else ""
    verdict = (result.verdict or "not judged") + (" (consistency)" if result.kind == "consistency" else "")
    number = "" if result.n is None else str(result.n)
    return [
        result.id,
        _number(result.published),
        _number(result.ours) + (f" (reduced, 1/{result.work_factor})" if result.reduced else ""),
        interval,
        number,
        "" if result.published is None and result.ours is None else result.unit,
        result.evidence_text,
        verdict,
    ]


def _number(value: float | int | None) -> str:
    return "" if value is None else f"{value:.4g}"
