"""Writes one step of a case as MLCommons Chakra execution traces for other simulators, and replays such traces on a
cluster. Of strategies whose ranks are programs of their own it writes all steps: no two need be alike.

`export` takes the beginning of a case's id (`scaleproof run SUITE --dry-run` lists the ids) and the number of ranks.
`replay` takes a folder of traces, ours or others'. A trace does not hold the links and the costs of messages: they
come from the options, else from the case that the trace was exported from."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import PluginNames, print_costs, results_argument
from scaleproof.commands.training_case import case_arguments, simulated_case

if TYPE_CHECKING:
    from scaleproof.simulate.chakra.chakra_trace import Trace
    from scaleproof.spec.case import TrainCase

HELP = "export a case as Chakra execution traces, replay such traces on a cluster"
EXAMPLE = """scaleproof chakra export 3f9a --ranks 16 --out traces
  scaleproof chakra replay traces
  scaleproof chakra replay traces --fabric 100g --transport nccl"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command to `parser`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = actions.add_parser("export", help="write <workload>.<rank>.et for every rank", allow_abbrev=False)
    case_arguments(export)
    export.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to; it is created")
    replay = actions.add_parser("replay", help="simulate the step that a folder of traces holds", allow_abbrev=False)
    replay.add_argument("folder", type=Path, metavar="DIR", help="with <name>.<rank>.et for every rank")
    replay.add_argument(
        "--fabric",
        "--cluster",
        metavar="NAME",
        help="1g, 10g, 25g, ..., a name in clusters/ or a description (default: that of the trace's case)",
    )
    replay.add_argument(
        "--transport", metavar="NAME", help="transport whose message costs are used (default: the case's, else tcp)"
    )
    replay.add_argument(
        "--collective", metavar="NAME", help=PluginNames("collective", "(default: the case's, else ring)")
    )
    replay.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")
    results_argument(replay)


def main(options: argparse.Namespace) -> int:
    """Export or replay."""
    return _export(options) if options.action == "export" else _replay(options)


def _export(options: argparse.Namespace) -> int:
    from scaleproof.simulate.chakra.chakra_export import trace_of, trace_of_all_steps
    from scaleproof.simulate.chakra.chakra_trace import write_trace
    from scaleproof.simulate.predict import inputs_of
    from scaleproof.spec.errors import SpecError

    case = simulated_case(options)
    if options.out.exists() and any(options.out.glob("*.et")):
        raise SpecError(f"{options.out}: holds traces already; give a new folder")
    inputs = inputs_of(case, options.results)
    trace = (
        trace_of(case, inputs.profile, inputs.costs.central()) if case.replicas is None else trace_of_all_steps(inputs)
    )
    steps = "one step" if case.replicas is None else f"{case.warmup + case.steps} steps"
    paths = write_trace(options.out, case.workload, trace)
    print(
        f"{options.out}: {len(paths)} files, {sum(map(len, trace.ranks))} nodes, {steps} of {case.workload} on "
        f"{case.ranks} ranks"
    )
    return 0


def _replay(options: argparse.Namespace) -> int:
    from scaleproof.record.digest import machine_id
    from scaleproof.simulate.buffered import buffered_nbytes
    from scaleproof.simulate.case_costs import cost_model
    from scaleproof.simulate.chakra.chakra_replay import replay
    from scaleproof.simulate.chakra.chakra_trace import read_trace
    from scaleproof.spec.cluster import cluster_of

    trace = read_trace(options.folder)
    case, algorithm = _replayed_case(options, trace)
    costs = cost_model(case, options.results, machine_id())
    step = replay(trace, cluster_of(case), costs.central(), algorithm, buffered_nbytes(case), str(options.folder))
    values = {
        "step_s": step.step_s,
        "computed_s": float(step.computed[step.end.argmax()]),
        "exposed_s": step.exposed_s,
        "ranks": len(trace.ranks),
        "nodes": step.nodes,
        "evidence": "simulated",
        "cluster": cluster_of(case).name,
        "transport": case.transport,
        "algorithm": algorithm,
        "costs": costs.source,
        "assumed": list(costs.assumed),
    }
    if options.json:
        print(json.dumps(values, indent=2))
        return 0
    print(
        f"step: {step.step_s * 1e3:.4g} ms, of which {step.exposed_s * 1e3:.4g} ms are exposed communication; "
        f"{len(trace.ranks)} ranks, {step.nodes} nodes"
    )
    print_costs(f"cluster {values['cluster']}, {case.transport}, {values['algorithm']}", costs)
    return 0


def _replayed_case(options: argparse.Namespace, trace: Trace) -> tuple[TrainCase, str]:
    """A case with the links and the transport that a trace does not hold, and the algorithm of its collectives. They
    come from the options, else from the case that the trace was exported from. SpecError if neither names the links."""
    from scaleproof.simulate.program import ASSUMED, algorithm_of
    from scaleproof.spec import registry
    from scaleproof.spec.case import TrainCase, parse_case
    from scaleproof.spec.errors import SpecError

    exported = _exported_case(options.folder, trace)
    if exported is None and options.fabric is None:
        raise SpecError(
            f"{options.folder}: was not exported from a case of Scaleproof; give --fabric, and also --transport and "
            "--collective unless they are tcp and ring"
        )
    transport = registry.get("transport", options.transport or (exported and exported.transport) or "tcp")
    exported_algorithm = algorithm_of(exported) if exported and transport.point_to_point else ASSUMED
    algorithm = options.collective or exported_algorithm
    if registry.get("collective", algorithm).knows_nodes:
        raise SpecError(f"--collective {algorithm}: every rank of a trace has a node to itself; take ring")
    ranks = len(trace.ranks)
    fields: dict[str, Any] = {
        "suite": "chakra",
        "experiment": "chakra",
        "arm": "chakra",
        "program": "train",
        "fabric": "simulated",
        "ranks": ranks,
        "workload": "vgg_a",
        "minibatch": ranks,
        "steps": 1,
        "strategy": "sync",
        "transport": transport.name,
        "launcher": transport.launcher,
        "collective": algorithm if transport.point_to_point else "native",
    }
    case = parse_case(fields | _network_fields(options, exported))
    assert isinstance(case, TrainCase)
    return case, algorithm


def _exported_case(folder: Path, trace: Trace) -> TrainCase | None:
    """The case that the trace was exported from; None for a trace of another program, or of other ranks than the
    case's."""
    from pydantic import ValidationError

    from scaleproof.simulate.chakra.chakra_export import CASE
    from scaleproof.spec.case import TrainCase, parse_case
    from scaleproof.spec.errors import SpecError

    if CASE not in trace.about:
        return None
    try:
        case = parse_case(json.loads(str(trace.about[CASE])))
    except (ValueError, ValidationError):
        raise SpecError(
            f"{folder}: attribute {CASE} of its metadata is no case of this version; give --fabric and --transport"
        ) from None
    return case if isinstance(case, TrainCase) and case.ranks == len(trace.ranks) else None


def _network_fields(options: argparse.Namespace, exported: TrainCase | None) -> dict[str, Any]:
    """Fields of the links, from --fabric or else from the exported case, and of the exported case's cost inputs."""
    from scaleproof.commands.predict_question import fabric_fields

    fields: dict[str, Any] = {}
    if options.fabric is not None:
        fields |= fabric_fields(options.fabric).fields
    if exported is not None:
        links = () if options.fabric is not None else ("cluster", "link_mbit", "link_delay_ms")
        fields |= {f"fabric.{name}": value for name in links if (value := exported.value(f"fabric.{name}"))}
        inputs = ("compute.profile", "compute.efficiency", "fabric.costs")
        fields |= {key: value for key in inputs if (value := exported.value(key)) is not None}
    return fields
