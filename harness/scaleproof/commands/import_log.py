"""Reads a log of nccl-tests (text, or JSON) or of an OSU benchmark, keeps it, and shows it beside what the model of
NCCL predicts for that machine."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import print_table, results_argument

if TYPE_CHECKING:
    from scaleproof.results.collective_logs import CollectiveLog

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
    from scaleproof.core.atomic_write import write_text
    from scaleproof.results.collective_logs import read_log
    from scaleproof.spec.errors import SpecError

    log = read_log(options.file, options.collective)
    nodes = options.nodes or log.nodes or 1
    if nodes < 1:
        raise SpecError(f"--nodes {nodes}: give at least one")
    folder = options.results / "imported"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{options.machine}.{log.collective}.n{nodes}.json"
    write_text(kept, json.dumps(asdict(log) | {"machine": options.machine, "nodes": nodes}, indent=1) + "\n")
    where = f"{nodes} node{'s' if nodes > 1 else ''} of {options.machine}"
    print(f"{log.tool}: {log.collective}, {len(log.calls)} sizes on {where}")
    _print(log, options, nodes)
    print(kept)
    return 0


def _print(log: CollectiveLog, options: argparse.Namespace, nodes: int) -> None:
    """A row for each size. A machine that is not known has no prediction, and a line says so."""
    from scaleproof.simulate.nccl.prediction import bus_factor, predict
    from scaleproof.spec.gpu_node import FILE, gpu_nodes
    from scaleproof.spec.units import format_bytes

    node = gpu_nodes().get(options.machine)
    gpus = node.gpus * nodes if node else log.gpus
    rows = []
    for call in log.calls:
        busbw = call.busbw
        if busbw is None and gpus:
            busbw = call.nbytes / call.seconds / 1e9 * bus_factor(log.collective, gpus)  # type: ignore[arg-type]
        row = [format_bytes(call.nbytes), f"{call.seconds * 1e6:.4g}", "" if busbw is None else f"{busbw:.4g}"]
        if node is not None:
            way = predict(node, log.collective, nodes, call.nbytes, options.algorithm)  # type: ignore[arg-type]
            row += [
                f"{way.seconds * 1e6:.4g}",
                f"{way.busbw(log.collective, node.gpus * nodes):.4g}",  # type: ignore[arg-type]
                f"{way.algorithm} {way.protocol}",
                f"{call.seconds / way.seconds:.2f}",
            ]
        rows.append(row)
    columns = ["size", "time (us) ↓", "busbw (GB/s) ↑"]
    if node is not None:
        columns += ["predicted (us)", "predicted busbw", "taken", "measured / predicted"]
    print_table(columns, rows)
    if node is None:
        print(f"{options.machine} is no node type of clusters/{FILE.name}: nothing is predicted for it")
