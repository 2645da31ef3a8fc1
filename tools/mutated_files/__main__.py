"""`python -m tools.mutated_files`: 20,000 mutated files through what a user's commands do with them before a launch.

Prints how many were taken as they are and how many gave a message, and lists every traceback and every message that is
not one line with file, line and the nearest valid name. `--only NUMBER` shows one file. Exit code 1 if there is any."""

from __future__ import annotations

import argparse
import difflib
import traceback
from collections import Counter

from scaleproof.commands.common import print_table
from scaleproof.launch.progress import tracked
from tools.mutated_files import FILES, SEED
from tools.mutated_files.commands import Outcome, workplace
from tools.mutated_files.mutations import SHARES, mutated

SHOWN = 20
"""Faults that are listed."""


def main() -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=FILES, help=f"how many files (default: {FILES})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"another seed makes other files (default: {SEED})")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one file: what was changed, and what a user sees")
    options = parser.parse_args()
    if options.only is not None:
        return show(options.only, options.seed)
    numbers = range(options.files)
    with workplace() as place:
        outcomes = [place.outcome(mutated(number, options.seed)) for number in tracked("mutated files", numbers)]
    return summarise(outcomes)


def show(number: int, seed: int) -> int:
    """Print one file's changes and the message or traceback."""
    file = mutated(number, seed)
    after = file.content.decode("utf-8", errors="backslashreplace")
    print(
        "\n".join(difflib.unified_diff(file.source.text.splitlines(), after.splitlines(), str(file.source.path), n=1))
    )
    with workplace() as place:
        outcome = place.outcome(file)
    if outcome.failure is not None:
        traceback.print_exception(outcome.failure)
    print(outcome.message or "taken as it is")
    return _report([outcome])


def summarise(outcomes: list[Outcome]) -> int:
    """Print a table by kind of file, the slowest file and all faults."""
    by_kind = Counter((outcome.file.source.kind, outcome.ending) for outcome in outcomes)
    endings = ("taken", "message", "fault")
    rows = [[kind, *(str(by_kind[kind, ending]) for ending in endings)] for kind in SHARES]
    print_table(["kind of file", *endings], rows, f"{len(outcomes)} mutated files")
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    print(f"slowest: file {slowest.file.number} ({slowest.file.source.path.name}), {slowest.seconds:.2f} s of CPU time")
    return _report(outcomes)


def _report(outcomes: list[Outcome]) -> int:
    faults = [outcome for outcome in outcomes if outcome.fault is not None]
    for outcome in faults[:SHOWN]:
        print(outcome.fault_line)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
