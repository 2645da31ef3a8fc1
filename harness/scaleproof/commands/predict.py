"""Predicts how a training scales on a network and a cluster of yours, without running it: throughput, efficiency and
exposed communication by number of nodes, which resource limits it, and up to how many nodes it pays. It prints a
table, and draws a picture with --out; every number is simulated and has an interval.

A node computes as fast as `scaleproof profile` measured here or on a GPU (--profile NAME), or with a share of a peak
rate (--profile or --peak, with --efficiency); with --node each rank is a GPU of a node type. Messages cost what
`scaleproof fit` measured here, or stated ranges; NCCL's calls on such a node take what a model of NCCL says. Start with
the first example, then change one option at a time."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scaleproof.commands.common import CaseField, PluginNames, network_arguments, results_argument

HELP = "how a training would scale on your network and cluster: a table, and a picture on request"
EXAMPLE = """scaleproof predict --workload vgg_a --fabric 25g --nodes 1..512 --minibatch 512 \\
      --profile xeon_e5_2698v3_x2 --efficiency 0.4..0.7
  scaleproof predict --workload mypackage.models:resnet --input 3x224x224 --fabric 100g --per-node 256 \\
      --peak 312 --efficiency 0.3..0.5 --transport nccl
  scaleproof predict --workload vgg_a --fabric 10g --nodes 16 --transports all \\
      --profile xeon_e5_2698v3_x2 --efficiency 0.5
  scaleproof predict --workload resnet50 --node h100x8 --nodes 1,2,4 --per-rank 128 --transport nccl
  scaleproof predict --workload vgg_a --fabric 25g --nodes 1..64 --peak 2 --efficiency 0.5 --stragglers pareto:3
  scaleproof predict --workload vgg_a --fabric 10g --per-node 16 --strategy parameter_server --servers 4

The last one uses this machine's own profile."""
SUFFIXES = (".png", ".svg", ".pdf")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    network_arguments(parser)
    _cluster_arguments(parser)
    _compute_arguments(parser)
    _exchange_arguments(parser)
    parser.add_argument(
        "--least",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="efficiency below which more nodes do not pay (default: 0.5)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="PATH",
        help="draw a picture: FILE.png, FILE.svg or FILE.pdf, or a folder for PNG and SVG (default: none)",
    )
    parser.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")
    results_argument(parser)


def _cluster_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fabric",
        "--cluster",
        metavar="NAME",
        help="1g, 10g, 25g, 56g, 100g, a name in clusters/, or a description's path (.yaml); with --node the default "
        "is its own network cards at one switch",
    )
    parser.add_argument(
        "--node",
        metavar="NODE_TYPE",
        help="a node type with GPUs of clusters/gpu_nodes.yaml, as h100x8: GPUs and their speed, links inside, network",
    )
    parser.add_argument(
        "--ranks-per-node", type=int, metavar="N", help="ranks of each such node, a GPU each (default: all its GPUs)"
    )
    counts = parser.add_mutually_exclusive_group()
    counts.add_argument(
        "--nodes",
        metavar="N..M",
        help="powers of two between, or a list: 1,2,24 (default: 1..128; with --node 1..16)",
    )
    counts.add_argument("--ranks", metavar="N..M", help="instead: the ranks of all nodes together")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--minibatch",
        type=int,
        metavar="N",
        help="samples of all nodes together, at any number of nodes (strong scaling)",
    )
    size.add_argument(
        "--per-node",
        type=int,
        metavar="N",
        help="samples of each node: the minibatch grows (weak scaling)",
    )
    size.add_argument("--per-rank", type=int, metavar="N", help="samples of each rank, likewise (default: 32)")


def _compute_arguments(parser: argparse.ArgumentParser) -> None:
    from scaleproof.spec.straggler_law import MEANING

    parser.add_argument(
        "--profile",
        metavar="NODE_TYPE",
        help="a node type of clusters/, of one with GPUs a single GPU; or one that `scaleproof profile --device cuda` "
        "measured, alone or with --node (default: this machine, as `scaleproof profile` measured it)",
    )
    parser.add_argument("--peak", type=float, metavar="TFLOPS", help="instead: the peak rate of your node, TFLOP/s")
    parser.add_argument(
        "--efficiency",
        metavar="LOW..HIGH",
        help="share of the peak rate that computing reaches; the intervals cover all of the range",
    )
    parser.add_argument("--stragglers", metavar="LAW", help=f"stragglers: {MEANING[0].lower()}{MEANING[1:]}")
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="threads in this machine's profile (default: 1)"
    )


def _exchange_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transport", default="tcp", metavar="NAME", help=CaseField("transport"))
    parser.add_argument(
        "--transports",
        metavar="NAMES",
        help="instead: several side by side, as tcp,grpc,mpi, or all; says which of them their costs tell apart",
    )
    parser.add_argument(
        "--collective", metavar="NAME", help=PluginNames("collective", "(default: ring, or what the library has)")
    )
    parser.add_argument(
        "--strategy",
        default="sync_overlap",
        metavar="NAME",
        help=PluginNames("strategy", "(a case's strategy)"),
    )
    parser.add_argument(
        "--servers",
        type=int,
        default=0,
        metavar="K",
        help=CaseField("strategy.servers"),
    )
    parser.add_argument(
        "--bucket-mib",
        type=float,
        default=25.0,
        metavar="MIB",
        help=CaseField("strategy.bucket_mib"),
    )


def main(options: argparse.Namespace) -> int:
    """Predict, print, draw."""
    from scaleproof.commands.predict_output import machine_form, picture, points_of, print_prediction
    from scaleproof.commands.predict_question import prediction_request
    from scaleproof.spec.errors import SpecError

    if not 0 < options.least < 1:
        raise SpecError(f"--least {options.least:g}: a share of ideal scaling, between 0 and 1")
    if options.transports:
        from scaleproof.commands.predict_transports import compare

        if options.out is not None:
            raise SpecError(f"--out {options.out}: several transports (--transports) have no picture; give --transport")
        return compare(options)
    paths = _paths(options)
    request = prediction_request(options)
    points = points_of(request)
    useful = request.question.useful(request.nodes, options.least)
    if options.json:
        print(json.dumps(machine_form(options, request, points, useful), indent=2))
    else:
        print_prediction(options, request, points, useful)
    if paths:
        from scaleproof.report.figures.prediction import save

        save(picture(options, request, points, useful), paths)
        print(*paths, file=sys.stderr if options.json else sys.stdout)
    return 0


def _paths(options: argparse.Namespace) -> list[Path]:
    """Files of the picture, none without `--out`; SpecError for a format that is not supported."""
    from scaleproof.spec.errors import SpecError

    if options.out is None:
        return []
    out: Path = options.out
    if not out.suffix or out.is_dir():
        parts = [options.workload.rpartition(":")[2], options.node, options.fabric and Path(options.fabric).stem]
        name = "-".join([*filter(None, parts), options.transport])
        return [out / f"{name}{suffix}" for suffix in SUFFIXES[:2]]
    if out.suffix not in SUFFIXES:
        raise SpecError(f"--out {out}: a picture ends in {', '.join(SUFFIXES)}; a name without an ending is a folder")
    return [out]
