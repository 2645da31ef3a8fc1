"""Makes one table of an experiment's records: a row per planned launch, including those that failed or never ran."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import open_store, results_argument, size_argument, size_of, suites_argument

if TYPE_CHECKING:
    from scaleproof.spec.suite import Suite

HELP = "one table of an experiment's records"
EXAMPLE = "scaleproof collect das2016 throughput --size smoke -o results/tables/das2016.throughput.smoke.parquet"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("suite", metavar="SUITE", help="a suite's name, or the path of its folder")
    parser.add_argument("experiment", metavar="EXPERIMENT", help="one experiment")
    size_argument(parser)
    results_argument(parser)
    suites_argument(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="default: RESULTS/tables/SUITE.EXPERIMENT.SIZE.parquet"
    )


def main(options: argparse.Namespace) -> int:
    """Write the table and print its path."""
    from scaleproof.spec.suite import load_suite

    size = size_of(options)
    suite = load_suite(options.suite, options.suites)
    output = options.output or options.results / "tables" / f"{suite.name}.{options.experiment}.{size}.parquet"
    make_table(suite, options.experiment, size, options.results, output)
    print(output)
    return 0


def make_table(suite: Suite, experiment: str, size: str, results: Path, output: Path) -> None:
    """Write the table of an experiment's records so far."""
    from scaleproof.claims.suite_metrics import suite_metrics, suite_metrics_version
    from scaleproof.record.stops import decided_plan, read_stops
    from scaleproof.record.table import collect, write_table

    launches = decided_plan(results, suite, experiment, size)
    stops = read_stops(results, suite.name, experiment, size)
    metrics = {name: metric.launch for name, metric in suite_metrics(suite.folder).items() if metric.launch is not None}
    store = open_store(results, many=True)
    write_table(collect(launches, store, metrics, stops, suite_metrics_version(suite.folder)), output)
