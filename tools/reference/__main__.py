"""`python -m tools.reference run|pack|pages|keep|compared|readme`: makes the reference run, stores it, and writes
pages and tables. Each refuses what is not one run: one commit, one machine, one digest of the code for each level of
evidence.

run [--only SUITE ...]      calibration and every suite at size smoke -> results/ and reports/; resumable
pack [ARCHIVE]              results/ and reports/ -> results/reference/ (text), and all raw records -> ARCHIVE
pages [ARCHIVE] [--picture] ARCHIVE -> reports/reference/index.html; --picture: docs/report.png too, for a release
compared RESULTS            verdicts of suite crosscheck at size full -> results/reference/
keep [FOLDER]               bench.json and bench.md of `make bench` (results/bench/) -> results/reference/
readme                      results/reference/ -> the tables of README.md and docs/reference_*.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.reference import (
    ARCHIVE,
    REFERENCE,
    ROOT,
    SIZE,
    archive,
    comparisons,
    one_run,
    own_runs,
    steps,
    stored,
    tables,
    text_records,
    verdicts,
)


def main() -> None:
    """Run the action that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.reference", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    run, pack, pages = (actions.add_parser(name) for name in ("run", "pack", "pages"))
    run.add_argument("--only", nargs="+", default=(), metavar="SUITE", help="a trial with these suites")
    run.add_argument("--size", default=SIZE, help="of a trial; default: %(default)s")
    for action in (pack, pages):
        action.add_argument("archive", type=Path, nargs="?", default=ARCHIVE, help="default: %(default)s")
    pack.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the records")
    pack.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder of their report")
    pages.add_argument("--picture", action="store_true", help="also write docs/report.png")
    keep = actions.add_parser("keep")
    keep.add_argument("folder", type=Path, nargs="?", default=ROOT / "results" / "bench", help="default: %(default)s")
    compared = actions.add_parser("compared")
    compared.add_argument("results", type=Path, help="folder of the records, judged")
    actions.add_parser("readme")
    arguments = parser.parse_args()
    if arguments.action == "run":
        steps.run(size=arguments.size, only=arguments.only)
    elif arguments.action == "pack":
        manifest = stored.manifest_of_run(arguments.results, arguments.reports)
        archive.write(arguments.results, arguments.archive)
        verdicts.write(arguments.reports)
        text_records.write(arguments.results)
        one_run.write_manifest(REFERENCE, manifest)
    elif arguments.action == "pages":
        archive.build_pages(arguments.archive, arguments.picture)
    elif arguments.action == "keep":
        own_runs.keep_bench(arguments.folder)
    elif arguments.action == "compared":
        comparisons.keep(arguments.results)
    else:
        tables.write()


if __name__ == "__main__":
    main()
