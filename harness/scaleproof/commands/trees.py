"""Packs spanning trees on the direct links between nodes of a cluster's description, and prints what they carry beside
rings. Nothing is run.

A broadcast goes down trees from a root, an all-reduce up and down trees without a direction. Rates are in links: of the
slowest link between two nodes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import print_table
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    from scaleproof.packed_trees.allocation_rates import Collective
    from scaleproof.packed_trees.link_graph import LinkGraph
    from scaleproof.packed_trees.multiplicative_weights import Packing

HELP = "packed spanning trees on direct links beside rings: what they carry; a picture on request"
EXAMPLE = """scaleproof trees 'dgx1v_like[0,2,3,4,7]'                       five devices of a DGX-1
  scaleproof trees 'dgx1v_like[0,2,3,4,7]' --collective all_reduce --out trees.svg
  scaleproof trees dgx1p_like --allocations                        every kind of allocation"""
SUFFIXES = (".png", ".svg", ".pdf")
COLLECTIVES = ("broadcast", "all_reduce")
COLUMNS = ("devices", "bound", "trees carry", "trees", "rings carry", "trees over rings")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    parser.add_argument(
        "cluster", metavar="CLUSTER", help="a description in clusters/ with links from node to node, or NAME[0,2,5]"
    )
    parser.add_argument(
        "--collective", choices=COLLECTIVES, default="broadcast", help="what is sent over trees (default: broadcast)"
    )
    parser.add_argument(
        "--allocations", action="store_true", help="every connected choice of three nodes or more, one of each kind"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="draw the trees: FILE.png, FILE.svg or FILE.pdf")


def main(options: argparse.Namespace) -> int:
    """Pack, print, draw."""
    from scaleproof.packed_trees.allocation_rates import packing_of
    from scaleproof.packed_trees.link_graph import allocations, machine
    from scaleproof.spec.cluster import allocation_of

    if options.out is not None and (options.allocations or options.out.suffix not in SUFFIXES):
        raise SpecError(f"--out {options.out}: a picture of one choice of nodes, and ends in {', '.join(SUFFIXES)}")
    name, chosen = allocation_of(options.cluster)
    whole = machine(name)
    graph = whole if chosen is None else whole.of(chosen)
    graph.check_connected()
    unit = f"in links of {graph.unit_mbit / 8000:g} GB/s"
    if options.allocations:
        rows = [_row(each, options.collective) for each in allocations(graph)]
        print_table(COLUMNS, rows, f"{options.collective}, {unit}")
        return 0
    packing = packing_of(graph, options.collective)
    print_table(COLUMNS, [_row(graph, options.collective)], f"{options.collective}, {unit}")
    print_table(("tree", "carries", "links"), _trees(packing), "")
    if options.out is not None:
        from scaleproof.report.figures.trees import save

        save(packing, f"{graph.name}: {options.collective} over {len(packing.trees)} trees", [options.out])
        print(options.out)
    return 0


def _row(graph: LinkGraph, collective: Collective) -> list[str]:
    from scaleproof.packed_trees.allocation_rates import bound_of, packing_of, ring_rate

    packing, rings = packing_of(graph, collective), ring_rate(graph, collective, 0.0)
    over = f"{packing.rate / rings:.2f}" if rings else ""
    return [
        ",".join(map(str, graph.devices)),
        f"{bound_of(graph, collective):.2f}",
        f"{packing.rate:.2f}",
        str(len(packing.trees)),
        f"{rings:.2f}" if rings else "no ring",
        over,
    ]


def _trees(packing: Packing) -> list[list[str]]:
    arrow = "-" if packing.root is None else ">"
    return [
        [str(number), f"{weight:g}", " ".join(arrow.join(map(str, packing.edges[edge])) for edge in sorted(tree))]
        for number, (tree, weight) in enumerate(zip(packing.trees, packing.weights, strict=True), 1)
    ]
