"""Reads a log of nccl-tests (text, or JSON) or of an OSU benchmark, keeps it, and shows it beside what the model of
NCCL predicts for that machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import print_table, results_argument

if TYPE_CHECKING:
    from scaleproof.results.imported_logs import KeptLog

HELP = "keep a log of nccl-tests or OSU, and show it beside the prediction for that machine"
EXAMPLE = """scaleproof import nccl-tests all_reduce.log --machine p5
  scaleproof import nccl-tests all_gather.json --machine gcpa3mega --nodes 2"""
TOOLS = ("nccl-tests", "osu")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument("tool", choices=TOOLS, help="what wrote the log")
    parser.add_argument("file", type=Path, metavar="FILE", help="what it printed, or its JSON")
    parser.add_argument(
        "--machine", required=True, metavar="NAME", help="a node type of clusters/gpu_nodes.yaml, or a name of yours"
    )
    parser.add_argument(
        "--nodes", type=int, metavar="N", help="nodes of the run (default: as the log lists them, or 1)"
    )
    parser.add_argument(
        "--collective", metavar="NAME", help="where the log does not name it: all_reduce, all_gather, ..."
    )
    parser.add_argument("--algorithm", metavar="NAME", help="as NCCL_ALGO was set: ring, tree, nvls, nvls_tree")
    results_argument(parser)


def main(options: argparse.Namespace) -> int:
    """Read, keep, print."""
    from scaleproof.results.collective_logs import read_log
    from scaleproof.results.imported_logs import keep, kept_log

    log = kept_log(read_log(options.file, options.collective), options.machine, options.nodes, options.algorithm)
    where = f"{log.nodes} node{'s' if log.nodes > 1 else ''} of {log.machine}"
    rows = _rows(log)
    path = keep(log, options.results)
    print(f"{log.tool}: {log.collective}, {len(log.calls)} sizes on {where}")
    _print(log, rows)
    print(f"{path}; the page of suite gpu_collectives shows it (snakemake gpu_collectives)")
    return 0


def _rows(log: KeptLog) -> list[list[str]]:
    """A row for each size. Raises SpecError for a collective that the machine cannot run."""
    from scaleproof.results.imported_logs import predicted_call
    from scaleproof.spec.units import format_bytes

    rows = []
    for call in log.calls:
        busbw = log.busbw(call)
        row = [format_bytes(call.nbytes), f"{call.seconds * 1e6:.4g}", "" if busbw is None else f"{busbw:.4g}"]
        predicted = predicted_call(log.machine, log.collective, log.nodes, call.nbytes, log.algorithm, log.gpus)
        if predicted is not None:
            row += [
                f"{predicted.seconds * 1e6:.4g}",
                f"{predicted.busbw:.4g} [{predicted.low:.4g}, {predicted.high:.4g}]",
                f"{predicted.algorithm} {predicted.protocol}",
                f"{call.seconds / predicted.seconds:.2f}",
            ]
        rows.append(row)
    return rows


def _print(log: KeptLog, rows: list[list[str]]) -> None:
    """A machine that is not known has no prediction, and a line says so."""
    from scaleproof.simulate.nccl.device_calls import is_modelled
    from scaleproof.spec.gpu_node import FILE, gpu_nodes

    columns = ["size", "time (us) ↓", "busbw (GB/s) ↑"]
    if len(rows[0]) > len(columns):
        columns += ["predicted (us)", "predicted busbw", "algorithm", "measured / predicted"]
    print_table(columns, rows)
    if log.machine not in gpu_nodes():
        print(f"{log.machine} is no node type of clusters/{FILE.name}: nothing is predicted for it")
    elif not is_modelled(log.machine):
        print(f"clusters/{FILE.name} has no links inside {log.machine}: nothing is predicted for it")
