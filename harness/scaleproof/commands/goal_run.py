"""`scaleproof goal run`: a graph of rank programs in processes of this machine."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaleproof.rank_programs.graph.rank_graph import RankGraph
    from scaleproof.spec.case import OwnCase

MOST_RANKS = 64
"""Processes that a user's file may start here."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `goal run` to `parser`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a GOAL file, or a folder with a Chakra trace")
    parser.add_argument(
        "--slept", action="store_true", help="computing sleeps; without it every rank keeps a core busy for as long"
    )
    parser.add_argument("--steps", type=int, default=5, metavar="N", help="runs of the whole graph (default: 5)")
    parser.add_argument("--transport", metavar="NAME", default="tcp", help="transport with a mailbox (default: tcp)")
    parser.add_argument(
        "--deadline", type=float, default=60.0, metavar="S", help="when the ranks are ended, in s (default: 60)"
    )
    parser.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")


def main(options: argparse.Namespace) -> int:
    """Runs the graph and prints how long a step takes: from the first rank's start to the last rank's end."""
    from scaleproof.launch.supervisor import run_plan
    from scaleproof.record.store import Store
    from scaleproof.simulate.rank_graph import graph_file
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.plan import PlannedLaunch

    graph = graph_file.read_graph(options.file)
    if not 0 < graph.ranks <= MOST_RANKS:
        raise SpecError(f"{options.file}: {graph.ranks} ranks; at most {MOST_RANKS} run here")
    if options.steps < 1:
        raise SpecError(f"--steps {options.steps}: give 1 or more")
    _rehearse(graph, str(options.file))
    programs = Path(graph_file.__file__).with_name("programs")
    with tempfile.TemporaryDirectory() as results:
        launch = PlannedLaunch(_case(options, graph.ranks), 0, 1, 0, str(programs))
        outcome = run_plan([launch], Path(results), size="goal", deadline_s=options.deadline)
        store = Store(Path(results))
        record, _ = store.load(outcome.launches[0])
        if record.failure is not None:
            raise SpecError(f"{options.file}: {record.failure.message}")
        steps = store.samples(record).to_pandas().query("event == 'step' and not warmup").groupby("step")
    seconds = (steps["end_ns"].max() - steps["start_ns"].min()) / 1e9
    values: dict[str, Any] = {
        "seconds": float(seconds.median()),
        "fastest_s": float(seconds.min()),
        "slowest_s": float(seconds.max()),
        "steps": len(seconds),
        "ranks": graph.ranks,
        "nodes": len(graph),
        "evidence": record.evidence,
        "transport": record.case.transport,
    }
    print(json.dumps(values, indent=2) if options.json else _line(values))
    return 0


def _rehearse(graph: RankGraph, name: str) -> None:
    """In virtual time, where all messages are free and buffered: ranks that wait for ever are refused here."""
    from scaleproof.simulate.cost_model import FREE
    from scaleproof.simulate.link_network import Network
    from scaleproof.simulate.rank_graph.graph_run import run_graph
    from scaleproof.spec.cluster import star

    network = Network(star(name, graph.ranks, None, 0.0))
    run_graph(graph, network, range(graph.ranks), FREE, buffer=float("inf"), name=name)


def _line(values: dict[str, Any]) -> str:
    middle, low, high = (1e3 * values[name] for name in ("seconds", "fastest_s", "slowest_s"))
    return (
        f"all done after {middle:.4g} ms ({low:.4g} to {high:.4g} in {values['steps']} runs of one launch); "
        f"{values['ranks']} ranks, {values['nodes']} nodes over {values['transport']}; evidence: {values['evidence']}"
    )


def _case(options: argparse.Namespace, ranks: int) -> OwnCase:
    from scaleproof.rank_programs.graph.graph_program import COMPUTE
    from scaleproof.spec import registry
    from scaleproof.spec.case import EMULATED, OwnCase, parse_case

    named = dict.fromkeys(("suite", "experiment", "arm"), "goal")
    computing = {"slept": 1} if options.slept else {COMPUTE: EMULATED}
    own = {"graph": str(options.file.absolute()), **computing}
    fields = {"program": "own", "entry": "graph", "ranks": ranks, "iterations": options.steps, "warmup": 1}
    transport = registry.get("transport", options.transport)
    case = parse_case({**named, **fields, "transport": transport.name, "launcher": transport.launcher, "options": own})
    assert isinstance(case, OwnCase)
    return case
