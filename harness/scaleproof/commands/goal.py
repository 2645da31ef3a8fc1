"""Graphs of rank programs in GOAL, the form of LogGOPSim and ATLAHS: simulates one on a cluster, runs one in processes,
writes the messages of a collective or the step of a training case as one (of a strategy whose ranks are programs of
their own: all steps), or turns a Chakra trace into one and back.

A graph does not hold the links and the costs of messages: they come from the options. Every rank has a node to
itself. Over a transport that writes to sockets, a message of up to 4 MiB leaves before its receive has started."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.commands import goal_run
from scaleproof.commands.common import PluginNames, print_costs, results_argument
from scaleproof.commands.training_case import case_arguments, simulated_case

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase

HELP = "simulate or run a graph of computing and messages (GOAL), write a collective, a step or a Chakra trace as one"
PATHS = "a file that ends in .goal, or a new folder for a trace"
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
EXAMPLE = """scaleproof goal export --collective ring --ranks 16 --nbytes '64 MiB' --out ring.goal
  scaleproof goal replay ring.goal --fabric 10g
  scaleproof goal replay ring.goal --fabric 100g --transport mpi
  scaleproof goal replay pipelines.goal --fabric 10g --replicas 64
  scaleproof goal run ring.goal
  scaleproof goal step 3f9a --ranks 16 --out step.goal
  scaleproof goal convert traces step.goal"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    replay = actions.add_parser("replay", help="simulate the graph of a file", allow_abbrev=False)
    replay.add_argument("file", type=Path, metavar="FILE", help="a GOAL file, or a folder with a Chakra trace")
    replay.add_argument(
        "--fabric",
        "--cluster",
        metavar="NAME",
        required=True,
        help="1g, 10g, 25g, ..., a name in clusters/ or a description",
    )
    replay.add_argument(
        "--transport", metavar="NAME", default="tcp", help="transport whose message costs are used (default: tcp)"
    )
    replay.add_argument(
        "--replicas",
        type=int,
        metavar="N",
        default=1,
        help="the ranks are N equal replicas of neighbouring ranks: one is simulated for all (default: 1)",
    )
    replay.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")
    results_argument(replay)
    goal_run.arguments(actions.add_parser("run", help="run the graph in processes of this machine", allow_abbrev=False))
    convert = actions.add_parser("convert", help="write a trace as GOAL, or GOAL as a trace", allow_abbrev=False)
    convert.add_argument("file", type=Path, metavar="FROM", help="a GOAL file, or a folder with a Chakra trace")
    convert.add_argument("out", type=Path, metavar="TO", help=PATHS)
    convert.add_argument(
        "--collective", metavar="NAME", default="ring", help=PluginNames("collective", "(default: ring)")
    )
    step = actions.add_parser("step", help="write one step of a training case", allow_abbrev=False)
    case_arguments(step)
    step.add_argument("--out", type=Path, metavar="FILE", required=True, help=PATHS)
    export = actions.add_parser("export", help="write the messages of a collective call", allow_abbrev=False)
    export.add_argument(
        "--collective", metavar="NAME", default="ring", help=PluginNames("collective", "(default: ring)")
    )
    export.add_argument(
        "--operation", choices=OPERATIONS, default="all_reduce", help="what is called (default: all_reduce)"
    )
    export.add_argument("--ranks", type=int, metavar="N", required=True, help="number of ranks")
    export.add_argument("--nbytes", metavar="SIZE", required=True, help="size of the array, as '64 MiB'")
    export.add_argument("--out", type=Path, metavar="FILE", required=True, help="file to write")


def main(options: argparse.Namespace) -> int:
    """Replay, run, convert, export, or write a step."""
    actions = {"replay": _replay, "run": goal_run.main, "convert": _convert, "step": _step, "export": _export}
    return actions[options.action](options)


def _convert(options: argparse.Namespace) -> int:
    from scaleproof.rank_programs.graph.graph_check import check
    from scaleproof.simulate.rank_graph.graph_file import read_graph, write_graph
    from scaleproof.spec import registry

    graph = read_graph(options.file, registry.get("collective", options.collective).name)
    check(graph, str(options.file))
    write_graph(options.out, graph, str(options.file))
    print(f"{options.out}: {graph.ranks} ranks, {len(graph)} nodes read")
    return 0


def _step(options: argparse.Namespace) -> int:
    from scaleproof.rank_programs.graph.expanded import expanded
    from scaleproof.simulate.predict import inputs_of
    from scaleproof.simulate.rank_graph.graph_file import GOAL, write_graph
    from scaleproof.simulate.rank_graph.recorded_graph import recorded_graph
    from scaleproof.simulate.rank_graph.step_graph import step_graph

    case = simulated_case(options)
    inputs = inputs_of(case, options.results)
    costs, messages = inputs.costs.central(), options.out.suffix == GOAL
    if case.replicas is not None:
        graph, steps = recorded_graph(inputs), f"{case.warmup + case.steps} steps"
    else:
        graph, steps = step_graph(case, inputs.profile, costs.gamma, costs.handover if messages else 0.0), "one step"
    if messages:  # no collectives: what these take beside their messages, and what they reduce, is computed
        graph = expanded(graph, costs.gamma, costs.call)
    write_graph(options.out, graph, f"case {case.case_id}")
    print(f"{options.out}: {steps} of {case.workload} on {graph.ranks} ranks, {len(graph)} nodes")
    return 0


def _replay(options: argparse.Namespace) -> int:
    from scaleproof.rank_programs.graph.rank_graph import Kind
    from scaleproof.rank_programs.graph.replicas import neighbours
    from scaleproof.record.digest import machine_id
    from scaleproof.simulate.case_costs import cost_model
    from scaleproof.simulate.link_network import Network
    from scaleproof.simulate.rank_graph.folded_run import run_folded
    from scaleproof.simulate.rank_graph.graph_file import read_graph
    from scaleproof.spec.cluster import cluster_of
    from scaleproof.strategies.parameter_server_step import SOCKET

    graph = read_graph(options.file)
    case = _case(options, graph.ranks)
    costs, cluster = cost_model(case, options.results, machine_id()), cluster_of(case)
    buffer = float(SOCKET) if case.plugin("transport").eager_to_socket else 0.0
    central = costs.central()
    network = Network(cluster, central.goodput)
    replicas, nodes = neighbours(graph.ranks, options.replicas, f"--replicas {options.replicas}"), range(graph.ranks)
    ran = run_folded(graph, replicas, network, nodes, central, buffer=buffer, name=str(options.file))
    last = int(ran.end.argmax()) if len(graph) else 0
    values = {
        "seconds": ran.seconds,
        "last_rank": int(graph.rank[last]) if len(graph) else None,
        "ranks": graph.ranks,
        "nodes": len(graph),
        "messages": len(graph.of_kind(Kind.SEND)),
        "evidence": "simulated",
        "cluster": cluster.name,
        "transport": case.transport,
        "costs": costs.source,
        "assumed": list(costs.assumed),
    }
    if options.json:
        print(json.dumps(values, indent=2))
        return 0
    print(
        f"all done after {ran.seconds * 1e3:.4g} ms, rank {values['last_rank']} last; {graph.ranks} ranks, "
        f"{len(graph)} nodes, {values['messages']} messages"
    )
    print_costs(f"cluster {cluster.name}, {case.transport}", costs)
    return 0


def _case(options: argparse.Namespace, ranks: int) -> AnyCase:
    """A case with the links and the transport of the options, which names the costs of messages. SpecError for a
    transport that sends no messages."""
    from scaleproof.commands.predict_question import fabric_fields
    from scaleproof.spec import registry
    from scaleproof.spec.case import parse_case
    from scaleproof.spec.errors import SpecError

    transport, sending = (
        registry.get("transport", options.transport),
        registry.with_trait("transport", "point_to_point"),
    )
    if not transport.point_to_point:
        raise SpecError(
            f"--transport {transport.name}: has collectives alone; a graph sends, as {', '.join(sending)} can"
        )
    named = dict.fromkeys(("suite", "experiment", "arm"), "goal")
    two_or_more = max(ranks, 2)  # a single rank has nobody to send to, but costs all the same
    fields = {"program": "transfer", "fabric": "simulated", "ranks": two_or_more, "nodes": two_or_more, "sizes": [0]}
    fields |= {"transport": transport.name, "launcher": transport.launcher}
    return parse_case({**named, **fields, **fabric_fields(options.fabric).fields})


def _export(options: argparse.Namespace) -> int:
    from scaleproof.rank_programs.graph.goal import MOST_RANKS, write_goal
    from scaleproof.simulate.collective_schedules import pattern_of
    from scaleproof.simulate.rank_graph.collective_graph import collective_graph
    from scaleproof.spec import registry
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.units import parse_bytes

    if not 1 < options.ranks <= MOST_RANKS:
        raise SpecError(f"--ranks {options.ranks}: give 2 to {MOST_RANKS}")
    collective = registry.get("collective", options.collective)
    if collective.knows_nodes:
        raise SpecError(f"--collective {collective.name}: every rank of a graph has a node to itself; take ring")
    try:
        nbytes = float(str(parse_bytes(options.nbytes)))
    except ValueError as error:
        raise SpecError(f"--nbytes: {error}") from None
    graph = collective_graph(pattern_of(collective.name, options.operation, options.ranks), nbytes)
    write_goal(options.out, graph)
    print(f"{options.out}: {graph.ranks} ranks, {len(graph)} nodes")
    return 0
