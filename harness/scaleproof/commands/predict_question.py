"""Turns the options of `scaleproof predict` into a question to the simulator. The error for a wrong option is one
line."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from scaleproof.commands.predict_compute import measured_compute, node_compute
from scaleproof.commands.predict_nodes import fabric_of_node, node_description, ranks_per_node, requested_nodes
from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest
from scaleproof.spec.straggler_law import NO_LAW, NODE_LAW

if TYPE_CHECKING:
    from pydantic import ValidationError

    from scaleproof.simulate.predicted_scaling import Question
    from scaleproof.workloads.jitter_model import Variation
    from scaleproof.workloads.networks import Network

RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)g$")
RATES = ("1g", "10g", "25g", "56g", "100g")
SAMPLES = 32
"""Of each rank, unless an option says otherwise."""
OPTION = {
    "ranks": "--nodes",
    "fabric.cluster": "--fabric",
    "fabric.link_mbit": "--fabric",
    "threads_per_rank": "--threads",
}
"""The option for each field of a case that is not called like its option."""


class FabricFields(NamedTuple):
    """Fields of a case that describe its links, and their description for the output."""

    fields: dict[str, Any]
    description: str


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
    node: str = ""
    """The node type with its ranks, where `--node` names one."""
    stragglers: str = ""
    """The law that is drawn from: that of `--stragglers`, or that of the node type with its source."""


def prediction_request(options: argparse.Namespace) -> PredictionRequest:
    """The request that the options make; SpecError for the first option that is wrong."""
    from pydantic import ValidationError

    from scaleproof.record.digest import machine_id
    from scaleproof.simulate.case_costs import cost_model
    from scaleproof.simulate.predicted_scaling import Question

    ranks = ranks_per_node(options)
    requested = requested_nodes(options, ranks)
    fabric = _fabric(options, requested[-1])
    network, unused = network_of(options)
    compute = node_compute(options, network)
    minibatch, per_node = _samples(options, ranks)
    fields = compute.fields | fabric.fields | _exchange(options, requested) | _workload_fields(options)
    fields |= {"fabric.stragglers": options.stragglers} if options.stragglers else {}
    nodes = [count for count in requested if minibatch is None or minibatch % (count * ranks) == 0]
    if not nodes:
        of_each = f" of {ranks} ranks each" if ranks > 1 else ""
        raise SpecError(
            f"--nodes {options.nodes or requested[0]}{of_each}: no such number divides --minibatch {minibatch}; "
            "--per-node grows the minibatch with the nodes"
        )
    # The costs follow from a case of the question, so the question is first made without them.
    question = Question(fields, network, _no_costs(), compute.profiles, minibatch, per_node, ranks)
    try:
        question.case(nodes[0])
        case = question.case(nodes[-1])
    except ValidationError as failed:
        raise _option_error(failed) from None
    costs = cost_model(case, options.results, machine_id())
    costs = costs.also_assumed(*_compute_assumptions(options, minibatch, nodes))
    stragglers, law = _stragglers(options)
    question = replace(question, costs=costs, stragglers=stragglers, _points={})
    return PredictionRequest(
        question,
        nodes,
        [count for count in requested if count not in nodes],
        unused,
        compute.description,
        fabric.description,
        node_description(options, ranks),
        law,
    )


def _stragglers(options: argparse.Namespace) -> tuple[Variation | None, str]:
    """How ranks differ, and its law for the output: that of `--stragglers`, or that which the node type states."""
    from scaleproof.record.digest import machine_id
    from scaleproof.spec.gpu_node import stated_jitter
    from scaleproof.workloads.jitter_model import variation

    named = options.node or options.profile
    stated = stated_jitter(named)
    law = options.stragglers or (NODE_LAW if stated else NO_LAW)
    shown = f"{stated.law} ({stated.source})" if law == NODE_LAW and stated else law
    drawn = variation(law, options.results, machine_id(), named)
    return drawn, shown if drawn else ""


def _samples(options: argparse.Namespace, ranks: int) -> tuple[int | None, int | None]:
    """The minibatch, or the samples of each node; the other is None."""
    for option in ("minibatch", "per_node", "per_rank"):
        samples = getattr(options, option)
        if samples is not None and samples < 1:
            raise SpecError(f"--{option.replace('_', '-')} {samples}: give at least one sample")
    if options.minibatch is not None:
        return options.minibatch, None
    if options.per_node is None:
        return None, (options.per_rank or SAMPLES) * ranks
    if options.per_node % ranks:
        raise SpecError(f"--per-node {options.per_node} does not divide over {ranks} ranks; --per-rank N is of each")
    return None, options.per_node


def _workload_fields(options: argparse.Namespace) -> dict[str, Any]:
    """A torch module is no workload of a case: the case names any network, and the question holds the module's."""
    fields = {
        "workload": options.workload if ":" not in options.workload else "vgg_a",
        "workload.width": options.width,
    }
    return fields | ({"workload.image_side": options.image_side} if options.image_side else {})


def _compute_assumptions(options: argparse.Namespace, minibatch: int | None, nodes: list[int]) -> list[str]:
    """Assumptions about computing that were not measured."""
    measured = measured_compute(options)
    alike = (
        [] if measured is None or options.stragglers else ["every rank computes as long as the GPU that was measured"]
    )
    if (options.node or measured) and not registry.get("transport", options.transport).calls_between_gpus:
        return ["gradients are copied between GPUs and the memory of their host in no time", *alike]
    if measured is not None:
        return alike
    if not (options.profile or options.peak or options.node or options.stragglers):
        return [
            "every node computes as long as every other, in every step: what `scaleproof fit` finds of that is "
            "drawn in launches of fabric simulated only"
        ]
    if minibatch is not None and nodes[-1] > 1:
        return [f"{minibatch} samples on a node and {minibatch // nodes[-1]} reach the same share of the peak rate"]
    return []


def _no_costs() -> Any:
    """Costs of a question that is only checked."""
    from scaleproof.simulate.cost_model import CostModel, Gamma
    from scaleproof.simulate.uncertain import Uncertain

    gammas = (Gamma(1, Uncertain("gamma", 0.0)),)
    return CostModel((None,), (Uncertain("alpha", 0.0),), (Uncertain("beta", 0.0),), gammas, 1.0, "none")


def _fabric(options: argparse.Namespace, most: int) -> FabricFields:
    if options.fabric is not None:
        return fabric_fields(options.fabric)
    if options.node is None:
        raise SpecError("--fabric is missing: 25g or another rate, a name in clusters/, a description's path")
    return FabricFields(*fabric_of_node(options.node, most))


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


def network_of(options: argparse.Namespace) -> tuple[Network, list[str]]:
    """The network that --workload names, reduced by --image-side and --width, and the parameters of a torch module that
    its forward pass does not use. SpecError where there is none of this name."""
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


def _exchange(options: argparse.Namespace, requested: list[int]) -> dict[str, Any]:
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
    if transport.one_node and requested[-1] > 1:
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


def _option_error(failed: ValidationError) -> SpecError:
    from scaleproof.spec.case import TrainCase
    from scaleproof.spec.common_case import form_keys
    from scaleproof.spec.messages import field_of, options_of, phrase

    error = failed.errors(include_url=False)[0]
    loc = [str(part) for part in error["loc"]]
    name = field_of(error) or (loc[0] if loc else "")
    option = OPTION.get(name, f"--{name.rpartition('.')[2].replace('_', '-')}")
    return SpecError(f"{option}: {phrase({**error, 'loc': loc}, form_keys(TrainCase), options_of(TrainCase, name))}")
