"""Plans how to divide a network's training among devices: for every layer by samples, by outputs and by inputs. It
prints the frontier of memory and time: strategies of which none is as good as another in both. Nothing is run.

With --memory it answers which strategy is the fastest that fits; with several numbers of --devices also how few devices
would do, and how memory and time change with more. The network may be a torch module of your own. A device is a GPU of
a node type (--node), or a node of ordinary cores; --cluster names the links between nodes. Compute
takes its FLOP over a share of the peak rate, messages a latency and a time a byte; layers run one after the other, and
nothing hides messages."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands.common import network_arguments, print_table
from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    from scaleproof.frontiers.operators import Divided, Machine
    from scaleproof.frontiers.points import Frontier

HELP = "how to divide a network among devices: memory against time, the fastest strategy that fits"
EXAMPLE = """scaleproof plan --workload bert48 --batch 64 --node v100hcm --devices 4,8,16
  scaleproof plan --workload vgg_a --batch 512 --node v100hcm --devices 8 --memory 4
  scaleproof plan --workload vgg_a --batch 512 --node xeon_e5_2698v3_x2 --efficiency 0.5 --cluster 25g --devices 4
  scaleproof plan --workload mine:network --input 1024 --batch 64 --node v100hcm --cluster mine.yaml --devices 16"""
SUFFIXES = (".png", ".svg", ".pdf")
ERROR = 0.02
"""Share of its memory by which a strategy that is left out may be below one on the frontier."""
SHOWN = 12
"""Rows of a frontier on the terminal."""
STATES = {"sgd": 2, "momentum": 3, "adam": 4}
"""Copies of the weights that a device keeps: weights, gradients, and what the optimiser keeps."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    network_arguments(parser)
    parser.add_argument("--batch", type=int, required=True, metavar="N", help="samples of a step, all devices together")
    parser.add_argument("--devices", default="8", metavar="N,M", help="numbers of devices (default: 8)")
    parser.add_argument("--node", required=True, metavar="NODE_TYPE", help="a node type of clusters/: what a device is")
    parser.add_argument(
        "--cluster",
        "--fabric",
        metavar="NAME",
        help="links between nodes: 1g, 10g, ..., a name in clusters/, or a description's path (.yaml); nodes with GPUs "
        "have network cards of their own unless it is given",
    )
    parser.add_argument(
        "--efficiency", type=float, metavar="F", help="share of the peak rate (default: what is stated)"
    )
    parser.add_argument("--memory", type=float, metavar="GB", help="of a device: the fastest strategy that fits")
    parser.add_argument("--optimiser", choices=sorted(STATES), default="adam", help="what it keeps (default: adam)")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="draw the frontiers: FILE.png, FILE.svg or FILE.pdf"
    )


def main(options: argparse.Namespace) -> int:
    """Search, print, draw."""
    from scaleproof.commands.predict_question import network_of
    from scaleproof.frontiers.cost_graph import frontier_of
    from scaleproof.frontiers.operators import divided

    counts = _counts(options.devices)
    if options.batch < 1:
        raise SpecError(f"--batch {options.batch}: give at least one sample")
    if options.out is not None and options.out.suffix not in SUFFIXES:
        raise SpecError(f"--out {options.out}: a picture ends in {', '.join(SUFFIXES)}")
    network, _ = network_of(options)
    found: dict[int, tuple[Divided, Frontier]] = {}
    for count in counts:
        made = divided(network, options.batch, machine_of(options, count), STATES[options.optimiser])
        found[count] = made, frontier_of(made.graph, error=ERROR)
    if options.memory is None:
        for count, (_, frontier) in found.items():
            _print_frontier(count, frontier)
    else:
        _print_fitting(options.memory, found)
    if options.out is not None:
        from scaleproof.report.figures.frontier import save

        title = f"{options.workload}, {options.batch} samples a step"
        save({count: frontier for count, (_, frontier) in found.items()}, title, options.memory, [options.out])
        print(options.out)
    return 0


def _counts(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdigit() and int(part) for part in parts):
        raise SpecError(f"--devices {text!r}: write numbers, as 4,8,16")
    return sorted({int(part) for part in parts})


def machine_of(options: argparse.Namespace, devices: int) -> Machine:
    """The devices and what messages between them cost. SpecError where something is not known of them."""
    from scaleproof.frontiers.operators import Machine
    from scaleproof.simulate.nccl.gpu_machine import gpu_machine
    from scaleproof.spec.gpu_node import gpu_node, gpu_nodes, rank_type

    kind = rank_type(options.node)
    if options.node not in gpu_nodes():
        if options.efficiency is None:
            raise SpecError("--efficiency: say which share of their peak rate these cores reach, as 0.5")
        if options.cluster is None:
            raise SpecError("--cluster: name the links between nodes, as 25g")
        latency, byte_s = _between_nodes(options.cluster, devices)
        return Machine(devices, kind.peak_flops * options.efficiency, latency, byte_s)
    servers = -(-devices // gpu_node(options.node).gpus)
    between = _between_nodes(options.cluster, servers) if options.cluster is not None and servers > 1 else None
    return gpu_machine(options.node, devices, options.efficiency, between)


def _between_nodes(name: str, nodes: int) -> tuple[float, float]:
    """Latency in s, and time of a byte in s, of the slowest way: twice a link's delay, and its rate."""
    from scaleproof.commands.predict_question import fabric_fields
    from scaleproof.spec.cluster import load_cluster

    fields = fabric_fields(name).fields
    if "fabric.cluster" not in fields:
        return 0.0, 8 / (fields["fabric.link_mbit"] * 1e6)
    links = load_cluster(fields["fabric.cluster"], nodes).links
    rates = [link.mbit for link in links if link.mbit is not None]
    if not rates:
        raise SpecError(f"--cluster {name}: its links have no rate")
    return 2 * max(link.delay_ms for link in links) / 1e3, 8 / (min(rates) * 1e6)


COLUMNS = ("memory of a device (GB)", "time of a step (s)")


def _print_frontier(devices: int, frontier: Frontier) -> None:
    count = len(frontier)
    picked = sorted({round(place * (count - 1) / max(SHOWN - 1, 1)) for place in range(min(SHOWN, count))})
    rows = [[f"{frontier.memory[each] / 1e9:.3g}", f"{frontier.time[each]:.3g}"] for each in picked]
    left_out = f", {len(picked)} of {count} points" if len(picked) < count else ""
    print_table(COLUMNS, rows, f"{devices} devices{left_out}")


def _print_fitting(gigabytes: float, found: dict[int, tuple[Divided, Frontier]]) -> None:
    """The fastest that fits on each number of devices, and the strategy of the fewest."""
    from scaleproof.frontiers.cost_graph import within

    rows, first = [], None
    for count, (made, frontier) in found.items():
        if frontier.memory[0] > gigabytes * 1e9:
            rows.append([str(count), f"does not fit: {frontier.memory[0] / 1e9:.3g} would do", ""])
            continue
        point = within(frontier, gigabytes * 1e9)
        rows.append([str(count), f"{frontier.memory[point] / 1e9:.3g}", f"{frontier.time[point]:.3g}"])
        first = first or (count, made, frontier.choices(point))
    print_table(("devices", *COLUMNS), rows, f"fastest strategies that fit {gigabytes:g} GB")
    if first is None:
        most, (_, frontier) = max(found.items())
        raise SpecError(
            f"--memory {gigabytes:g}: no strategy fits on {most} devices; {frontier.memory[0] / 1e9:.3g} would do"
        )
    count, made, choices = first
    print_table(("layers", "samples x outputs x inputs"), _grouped(made, choices), f"on {count} devices")


Named = tuple[str, str]
"""A layer, or several, and how they are divided."""


def _grouped(made: Divided, choices: dict[str, int]) -> list[list[str]]:
    """Numbered blocks that are divided alike in one group of rows, and neighbouring layers that are in one row."""
    blocks: list[tuple[list[str], list[Named]]] = []
    for name, ways in made.ways.items():
        block, _, rest = name.partition(".")
        numbered = bool(rest) and block[-1:].isdigit()
        layer = (rest if numbered else name, str(ways[choices[name]]))
        block = block if numbered else ""
        if blocks and blocks[-1][0] == [block]:
            blocks[-1][1].append(layer)
        else:
            _merge_last(blocks)
            blocks.append(([block], [layer]))
    _merge_last(blocks)
    return [[f"{_span(names)}{layer}", way] for names, layers in blocks for layer, way in _rows_of(layers)]


def _merge_last(blocks: list[tuple[list[str], list[Named]]]) -> None:
    """The last block goes into the one before it where both are divided alike."""
    if len(blocks) > 1 and blocks[-1][0] != [""] and blocks[-2][1] == blocks[-1][1]:
        names, _ = blocks.pop()
        blocks[-1][0].extend(names)


def _span(names: list[str]) -> str:
    if names == [""]:
        return ""
    return f"{names[0]}: " if len(names) == 1 else f"{names[0]} to {names[-1]}: "


def _rows_of(layers: list[Named]) -> list[Named]:
    rows: list[Named] = []
    for layer, way in layers:
        if rows and rows[-1][1] == way:
            rows[-1] = (f"{rows[-1][0].split(' to ')[0]} to {layer}", way)
        else:
            rows.append((layer, way))
    return rows
