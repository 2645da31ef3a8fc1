"""Writes one step of a case as MLCommons Chakra execution traces, for other simulators, and replays traces on a
cluster.

`export` takes a case by the beginning of its id (`scaleproof run SUITE --dry-run` lists them), on as many ranks as
--ranks says. `replay` takes a folder of traces, ours or others': what a trace does not say, links and what messages
cost, is that of the case it was written from, or of the options."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaleproof.commands.common import results_argument, suites_argument

if TYPE_CHECKING:
    from scaleproof.simulate.chakra.chakra_trace import Trace
    from scaleproof.spec.case import TrainCase

HELP = "export a case as Chakra execution traces, replay such traces on a cluster"
EXAMPLE = """scaleproof chakra export 3f9a --ranks 16 --out traces
  scaleproof chakra replay traces
  scaleproof chakra replay traces --fabric 100g --transport nccl"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = actions.add_parser("export", help="write <workload>.<rank>.et for every rank", allow_abbrev=False)
    export.add_argument("case", metavar="CASE", help="a training case's id, or the beginning of one")
    export.add_argument(
        "--ranks",
        type=int,
        metavar="N",
        help="instead of the case's own number; the samples of a rank stay (default: the case's)",
    )
    export.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to; it is made")
    results_argument(export)
    suites_argument(export)
    replay = actions.add_parser("replay", help="simulate the step that a folder of traces holds", allow_abbrev=False)
    replay.add_argument("folder", type=Path, metavar="DIR", help="with <name>.<rank>.et for every rank")
    replay.add_argument(
        "--fabric",
        "--cluster",
        metavar="NAME",
        help="1g, 10g, 25g, ..., a name in clusters/ or a description (default: that of the trace's case)",
    )
    replay.add_argument(
        "--transport", metavar="NAME", help="whose message costs to take (default: the case's, else tcp)"
    )
    replay.add_argument(
        "--collective", metavar="NAME", help="ring, halving_doubling or tree (default: the case's, else ring)"
    )
    replay.add_argument("--json", action="store_true", help="for machines: one JSON object on stdout")
    results_argument(replay)


def main(given: argparse.Namespace) -> int:
    """Export or replay."""
    return _export(given) if given.action == "export" else _replay(given)


def _export(given: argparse.Namespace) -> int:
    from scaleproof.simulate.chakra.chakra_export import trace_of
    from scaleproof.simulate.chakra.chakra_trace import write_trace
    from scaleproof.simulate.predict import inputs_of
    from scaleproof.spec.errors import SpecError

    case = _case(given)
    if given.out.exists() and any(given.out.glob("*.et")):
        raise SpecError(f"{given.out}: holds traces already; give a new folder")
    inputs = inputs_of(case, given.results)
    trace = trace_of(case, inputs.profile, inputs.costs.central())
    paths = write_trace(given.out, case.workload, trace)
    print(
        f"{given.out}: {len(paths)} files, {sum(map(len, trace.ranks))} nodes, one step of {case.workload} on "
        f"{case.ranks} ranks"
    )
    return 0


def _case(given: argparse.Namespace) -> TrainCase:
    """By the beginning of its id, on fabric `simulated`. SpecError where there is none or several, or where the ranks
    do not fit."""
    from pydantic import ValidationError

    from scaleproof.commands.common import suites_of
    from scaleproof.spec.case import TrainCase, form_keys, parse_case
    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.messages import field_of, options_of, phrase

    found: dict[str, Any] = {}
    for suite in suites_of(None, given.suites):
        for experiment in suite.experiments.values():
            for size in experiment.sizes.values():
                found |= {case.case_id: case for case in size.cases if case.case_id.startswith(given.case)}
    if len(found) != 1:
        some = ", ".join(sorted(found)[:3])
        why = (
            f"begins {len(found)} cases ({some}, ...); write more of it"
            if found
            else "begins no case; `scaleproof run SUITE --dry-run` lists them"
        )
        raise SpecError(f"case {given.case!r} {why}")
    (case,) = found.values()
    if not isinstance(case, TrainCase):
        raise SpecError(f"case {case.case_id} is of program {case.program!r}; a trace is a step of `train`")
    ranks = case.ranks if given.ranks is None else given.ranks
    if ranks < 1:
        raise SpecError(f"--ranks {ranks}: give at least one")
    links = ("fabric.cluster", "fabric.link_mbit", "fabric.link_delay_ms", "fabric.costs")
    values = {key: value for key, value in case.written().items() if not key.startswith("fabric.") or key in links}
    values |= {"fabric": "simulated"}
    values |= {"ranks": ranks, "nodes": ranks, "interface": "eth0", "minibatch": case.minibatch // case.ranks * ranks}
    values |= {"compute": "none" if case.compute == "none" else "replay", "dilation": 1.0, "shrink": 1.0}
    try:
        made = parse_case(values)
    except ValidationError as failed:
        error = failed.errors(include_url=False)[0]
        name = field_of(error) or str(error["loc"][-1])
        raise SpecError(
            f"case {case.case_id} on {ranks} ranks: {name}: "
            f"{phrase(error, form_keys(TrainCase), options_of(TrainCase, name))}"
        ) from None
    assert isinstance(made, TrainCase)
    return made


def _replay(given: argparse.Namespace) -> int:
    from scaleproof.record.digest import machine_id
    from scaleproof.simulate.case_costs import cost_model
    from scaleproof.simulate.chakra.chakra_replay import replay
    from scaleproof.simulate.chakra.chakra_trace import read_trace
    from scaleproof.spec.cluster import cluster_of

    trace = read_trace(given.folder)
    case, algorithm = _surroundings(given, trace)
    costs = cost_model(case, given.results, machine_id())
    found = replay(trace, cluster_of(case), costs.central(), algorithm)
    values = {
        "step_s": found.step_s,
        "computed_s": float(found.computed[found.end.argmax()]),
        "exposed_s": found.exposed_s,
        "ranks": len(trace.ranks),
        "nodes": found.nodes,
        "evidence": "simulated",
        "cluster": cluster_of(case).name,
        "transport": case.transport,
        "algorithm": algorithm,
        "costs": costs.source,
        "assumed": list(costs.assumed),
    }
    if given.json:
        print(json.dumps(values, indent=2))
        return 0
    print(
        f"step: {found.step_s * 1e3:.4g} ms, of which {found.exposed_s * 1e3:.4g} ms are exposed communication; "
        f"{len(trace.ranks)} ranks, {found.nodes} nodes"
    )
    print(
        f"evidence: simulated; cluster {values['cluster']}, {case.transport}, {values['algorithm']}; costs of "
        f"messages {costs.source}"
    )
    for words in costs.assumed:
        print(f"  assumed: {words}")
    return 0


def _surroundings(given: argparse.Namespace, trace: Trace) -> tuple[TrainCase, str]:
    """What a trace leaves open, as a case with the links and the transport, and the algorithm of collectives: those of
    the case that it was written from, under the options. SpecError where neither says the links."""
    from pydantic import ValidationError

    from scaleproof.commands.predict_question import fabric_fields
    from scaleproof.simulate.chakra.chakra_export import CASE
    from scaleproof.simulate.program import ASSUMED, algorithm_of
    from scaleproof.spec import registry
    from scaleproof.spec.case import TrainCase, parse_case
    from scaleproof.spec.errors import SpecError

    ranks = len(trace.ranks)
    try:
        case = parse_case(json.loads(str(trace.about[CASE]))) if CASE in trace.about else None
    except (ValueError, ValidationError):
        raise SpecError(
            f"{given.folder}: attribute {CASE} of its metadata is no case of this version; give --fabric and "
            "--transport"
        ) from None
    known = case if isinstance(case, TrainCase) and case.ranks == ranks else None
    if known is None and given.fabric is None:
        raise SpecError(
            f"{given.folder}: was not written from a case of ours; give --fabric, and --transport (tcp) and "
            "--collective (ring) where they differ"
        )
    transport = given.transport or (known and known.transport) or "tcp"
    native = not registry.get("transport", transport).point_to_point
    algorithm = given.collective or (algorithm_of(known) if known and not native else ASSUMED)
    registry.get("collective", algorithm)
    if registry.get("collective", algorithm).knows_nodes:
        raise SpecError(f"--collective {algorithm}: every rank of a trace has a node to itself; take ring")
    entry = registry.get("transport", transport)
    fields: dict[str, Any] = {
        "suite": "chakra",
        "experiment": "chakra",
        "arm": "chakra",
        "program": "train",
        "fabric": "simulated",
        "ranks": ranks,
    }
    fields |= {"workload": "vgg_a", "minibatch": ranks, "steps": 1, "strategy": "sync", "transport": transport}
    fields |= {"launcher": entry.launcher, "collective": algorithm if entry.point_to_point else "native"}
    if given.fabric is not None:
        fields |= fabric_fields(given.fabric)[0]
    elif known is not None:
        links = {f"fabric.{name}": known.value(f"fabric.{name}") for name in ("cluster", "link_mbit", "link_delay_ms")}
        fields |= {key: value for key, value in links.items() if value}
    if known is not None:
        kept = {key: known.value(key) for key in ("compute.profile", "compute.efficiency", "fabric.costs")}
        fields |= {key: value for key, value in kept.items() if value is not None}
    found = parse_case(fields)
    assert isinstance(found, TrainCase)
    return found, algorithm
