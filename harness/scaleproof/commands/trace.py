"""Writes one launch as a trace for ui.perfetto.dev or chrome://tracing: the events of all ranks on one clock."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from scaleproof.commands.common import open_store, results_argument

HELP = "write one launch as a trace that Perfetto opens"
EXAMPLE = "scaleproof trace 3f9a -o trace.json"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("launch", metavar="LAUNCH", help="a launch's id, or the beginning of one")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", required=True, help="the file to write (JSON)")
    results_argument(parser)


def main(options: argparse.Namespace) -> int:
    """Write the trace of any launch, traced or not; a failed one until its failure."""
    from scaleproof.record.trace import chrome_trace

    store = open_store(options.results)
    record, _ = store.load(options.launch)
    trace = chrome_trace(record, store.samples(record))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(trace, separators=(",", ":"), allow_nan=False) + "\n")
    detail = (
        "with every message"
        if record.case.tracing == "full"
        else "without messages; a case with `tracing: full` records them"
    )
    print(f"{options.output}: {len(trace['traceEvents'])} events of {record.case.ranks} ranks, {detail}")
    return 0
