"""Turns the options of `scaleproof predict` into a question to the simulator. The error for a wrong option is one
line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest

if TYPE_CHECKING:
    from pydantic import ValidationError

    from scaleproof.simulate.predicted_scaling import Question
    from scaleproof.spec.case import TrainCase
    from scaleproof.spec.cluster import NodeType
    from scaleproof.workloads.networks import Network
    from scaleproof.workloads.profile import Profile

RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)g$")
RATES = ("1g", "10g", "25g", "56g", "100g")
MOST_NODES = 4096
OPTION = {
    "ranks": "--nodes",
    "fabric.cluster": "--fabric",
    "fabric.link_mbit": "--fabric",
    "threads_per_rank": "--threads",
}
"""The option for each field of a case that is not called like its option."""
COMMAND_LINE_PROFILE = "as given"
"""Name of the profile in a case whose peak rate comes from --peak."""


class FabricFields(NamedTuple):
    """Fields of a case that describe its links, and their description for the output."""

    fields: dict[str, Any]
    description: str


class NodeCompute(NamedTuple):
    """How fast a node computes: description for the output, profiles of a case, and fields of a case."""

    description: str
    profiles: Callable[[TrainCase], tuple[Profile, ...]]
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """What is to be predicted, and descriptions for the head of the output."""

    question: Question
    nodes: list[int]
    left_out: list[int]
    """Requested numbers of nodes that do not divide the minibatch."""
    unused: list[str]
    """Parameters of the module that its forward pass does not use."""
    compute: str
    fabric: str


def prediction_request(options: argparse.Namespace) -> PredictionRequest:
    """The request that the options make; SpecError for the first option that is wrong."""
    from pydantic import ValidationError

    from scaleproof.record.digest import machine_id
    from scaleproof.simulate.case_costs import cost_model
    from scaleproof.simulate.predicted_scaling import Question

    fabric = fabric_fields(options.fabric)
    requested = nodes_of(options.nodes)
    network, unused = _network(options)
    compute = _compute(options, network)
    minibatch, per_node = (options.minibatch, None) if options.minibatch is not None else (None, options.per_node)
    for option, samples in (("--minibatch", minibatch), ("--per-node", per_node)):
        if samples is not None and samples < 1:
            raise SpecError(f"{option} {samples}: give at least one sample")
    fields = compute.fields | fabric.fields | _exchange(options) | _workload_fields(options)
    nodes = [count for count in requested if minibatch is None or minibatch % count == 0]
    if not nodes:
        raise SpecError(
            f"--nodes {options.nodes}: no such number divides --minibatch {minibatch}; --per-node grows the "
            "minibatch with the nodes"
        )
    # The costs follow from a case of the question, so the question is first made without them.
    question = Question(fields, network, _no_costs(), compute.profiles, minibatch, per_node)
    try:
        question.case(nodes[0])
        case = question.case(nodes[-1])
    except ValidationError as failed:
        raise _option_error(failed) from None
    costs = cost_model(case, options.results, machine_id())
    costs = costs.also_assumed(*_compute_assumptions(options, minibatch, nodes))
    question = Question(fields, network, costs, compute.profiles, minibatch, per_node)
    left_out = [count for count in requested if count not in nodes]
    return PredictionRequest(question, nodes, left_out, unused, compute.description, fabric.description)


def _workload_fields(options: argparse.Namespace) -> dict[str, Any]:
    """A torch module is no workload of a case: the case names any network, and the question holds the module's."""
    fields = {
        "workload": options.workload if ":" not in options.workload else "vgg_a",
        "workload.width": options.width,
    }
    return fields | ({"workload.image_side": options.image_side} if options.image_side else {})


def _compute_assumptions(options: argparse.Namespace, minibatch: int | None, nodes: list[int]) -> list[str]:
    """Assumptions about computing that were not measured."""
    if not (options.profile or options.peak):
        return [
            "every node computes as long as every other, in every step: what `scaleproof fit` finds of that is "
            "drawn in launches of fabric simulated only"
        ]
    if minibatch is not None and nodes[-1] > 1:
        return [f"{minibatch} samples on a node and {minibatch // nodes[-1]} reach the same share of the peak rate"]
    return []


def _no_costs() -> Any:
    """Costs of a question that is only checked."""
    from scaleproof.simulate.cost_model import CostModel, Uncertain

    return CostModel(
        (None,), (Uncertain("alpha", 0.0),), (Uncertain("beta", 0.0),), Uncertain("gamma", 0.0), 1.0, "none"
    )


def nodes_of(text: str) -> list[int]:
    """Numbers of nodes, ascending. `1..512` means both ends and the powers of two between them; `1,2,24` is a list."""
    span, listed = re.fullmatch(r"([0-9]+)\.\.([0-9]+)", text), re.fullmatch(r"[0-9]+(,[0-9]+)*", text)
    if span:
        first, last = int(span[1]), int(span[2])
        counts = sorted(
            {first, last, *(2**power for power in range(MOST_NODES.bit_length()) if first < 2**power < last)}
        )
    elif listed:
        counts = sorted({int(part) for part in text.split(",")})
    else:
        raise SpecError(f"--nodes {text!r} is no number of nodes; write 1..128, or a list as 1,2,24")
    if counts[0] < 1 or (span and int(span[1]) > int(span[2])) or counts[-1] > MOST_NODES:
        raise SpecError(f"--nodes {text}: give numbers from 1 to {MOST_NODES}, the smaller first")
    return counts


def fabric_fields(name: str) -> FabricFields:
    """The links of `--fabric`: a rate such as 25g, a cluster's name, or the path of a description."""
    from scaleproof.spec.cluster import ready_clusters

    if name in ready_clusters() or name.endswith((".yaml", ".yml")):
        return FabricFields({"fabric.cluster": name}, f"cluster {name}")
    rate = RATE.fullmatch(name)
    if rate is None:
        raise SpecError(f"unknown fabric {name!r}; {nearest(name, [*ready_clusters(), *RATES])}")
    gbit = rate[1]
    if float(gbit) == 0:
        raise SpecError(f"--fabric {name}: a link needs a rate above 0")
    cluster = f"ethernet_{gbit}g"
    if cluster in ready_clusters():
        return FabricFields({"fabric.cluster": cluster}, f"cluster {cluster}")
    return FabricFields({"fabric.link_mbit": float(gbit) * 1000}, f"one switch, {gbit} Gbit/s to every node")


def _network(options: argparse.Namespace) -> tuple[Network, list[str]]:
    if ":" in options.workload:
        from scaleproof.workloads.traced import parse_inputs, trace

        if options.image_side or options.width != 1:
            raise SpecError(
                "--image-side and --width reduce networks of ours; a module's size is what its function makes "
                "and what --input says"
            )
        return trace(options.workload, parse_inputs(options.input) if options.input else None)
    if options.workload not in registry.names("workload"):
        advice = nearest(options.workload, registry.names("workload"))
        raise SpecError(
            f"unknown workload {options.workload!r}; {advice}; a torch module of your own is package.module:name"
        )
    if options.input:
        raise SpecError(
            f"--input is for a torch module of your own; {options.workload} has its input (--image-side reduces images)"
        )
    network: Network = registry.load("workload", options.workload)(options.image_side, options.width)
    return network, []


def _exchange(options: argparse.Namespace) -> dict[str, Any]:
    try:
        strategy = registry.get("strategy", options.strategy)
    except SpecError as unknown:
        raise SpecError(f"--strategy: {unknown}") from None
    if strategy.divides_layers and ":" in options.workload:
        raise SpecError(
            f"--strategy {options.strategy} divides the fully connected layers at the end of networks of ours; it does "
            "not know those of a module"
        )
    transport = registry.get("transport", options.transport)
    if transport.one_node and nodes_of(options.nodes)[-1] > 1:
        raise SpecError(
            f"--transport {options.transport} ends at the node; take tcp, grpc, gloo, mpi, ucx or nccl, or --nodes 1"
        )
    ours = transport.point_to_point or (strategy.divides_update and transport.sends)
    collective = options.collective or ("ring" if ours else "native")
    fields = {
        "transport": options.transport,
        "collective": collective,
        "strategy": options.strategy,
        "launcher": transport.launcher,
    }
    if "bucket_mib" in strategy.options.model_fields:
        fields["strategy.bucket_mib"] = options.bucket_mib
    return fields | ({"strategy.servers": options.servers} if options.servers else {})


def _compute(options: argparse.Namespace, network: Network) -> NodeCompute:
    """By a peak rate and a range of efficiency where the options give one, else as measured on this machine."""
    from scaleproof.record.digest import machine_id
    from scaleproof.workloads.profile import profile_of

    if options.profile and options.peak:
        raise SpecError("--profile names a node type, --peak gives its rate: one of them")
    if options.profile or options.peak:
        return _compute_by_peak(options, network)
    if options.efficiency:
        raise SpecError("--efficiency is a share of a peak rate: give --profile NODE_TYPE, or --peak TFLOPS")
    if ":" in options.workload:
        raise SpecError(
            f"how fast does a node compute {options.workload}? Give --profile NODE_TYPE or --peak TFLOPS, and "
            "--efficiency LOW..HIGH"
        )
    folder = options.results / "machines" / machine_id()
    description = f"this machine, {options.threads} thread{'s' if options.threads > 1 else ''}"
    return NodeCompute(description, lambda case: (profile_of(case, folder),), {"threads_per_rank": options.threads})


def _compute_by_peak(options: argparse.Namespace, network: Network) -> NodeCompute:
    """The profiles of a case: at the middle of the efficiency range, at its lower and at its upper end."""
    from scaleproof.spec.cluster import node_type
    from scaleproof.workloads.profile import peak_profile

    if not options.efficiency:
        raise SpecError(
            "--efficiency LOW..HIGH is missing: the share of the peak rate that computing reaches, e.g. 0.4..0.6"
        )
    low, high = efficiency_of(options.efficiency)
    node = node_type(options.profile) if options.profile else _node_with_peak(options.peak)
    shares = [low] if low == high else [(low * high) ** 0.5, low, high]
    summary = f"{node.summary}, " if options.profile else ""
    upper = f" to {high:.0%}" if high > low else ""
    description = f"{summary}{node.peak_flops / 1e12:.3g} TFLOP/s at its peak, of which {low:.0%}{upper}"

    def profiles(case: TrainCase) -> tuple[Profile, ...]:
        return tuple(peak_profile(network, case.minibatch // case.ranks, node, share) for share in shares)

    fields = {"compute.profile": options.profile or COMMAND_LINE_PROFILE, "compute.efficiency": shares[0]}
    return NodeCompute(description, profiles, fields)


def _node_with_peak(tera: float) -> NodeType:
    """A node type with this peak rate in TFLOP/s."""
    from scaleproof.spec.cluster import NodeType

    if tera <= 0:
        raise SpecError(f"--peak {tera:g}: give TFLOP/s of a node, above 0")
    return NodeType(
        summary="a node of the given rate", cores=1, ghz=tera * 1000, flop_per_cycle=1, source="the command line"
    )


def efficiency_of(text: str) -> tuple[float, float]:
    """Lower and upper end of a range such as `0.4..0.6`; equal for one share."""
    parts = text.split("..")
    try:
        low, high = float(parts[0]), float(parts[-1])
    except ValueError:
        low, high = 0.0, 0.0
    if len(parts) > 2 or not 0 < low <= high <= 1:
        raise SpecError(
            f"--efficiency {text!r}: write a share of the peak rate or a range, above 0 and at most 1, as 0.5 or "
            "0.4..0.6"
        )
    return low, high


def _option_error(failed: ValidationError) -> SpecError:
    from scaleproof.spec.case import TrainCase
    from scaleproof.spec.common_case import form_keys
    from scaleproof.spec.messages import field_of, options_of, phrase

    error = failed.errors(include_url=False)[0]
    loc = [str(part) for part in error["loc"]]
    name = field_of(error) or (loc[0] if loc else "")
    option = OPTION.get(name, f"--{name.rpartition('.')[2].replace('_', '-')}")
    return SpecError(f"{option}: {phrase({**error, 'loc': loc}, form_keys(TrainCase), options_of(TrainCase, name))}")
