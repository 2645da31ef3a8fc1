"""Turns the options of `scaleproof predict` into a question to the simulator; a mistake in them is one line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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

SHORT = re.compile(r"([0-9]+(?:\.[0-9]+)?)g$")
RATES = ("1g", "10g", "25g", "56g", "100g")
MOST_NODES = 4096
OPTION = {
    "ranks": "--nodes",
    "fabric.cluster": "--fabric",
    "fabric.link_mbit": "--fabric",
    "threads_per_rank": "--threads",
}
"""Of the fields of a case that are asked for by another name."""
GIVEN = "as given"
"""The profile of a case whose peak rate is on the command line."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is predicted, and words for its head."""

    question: Question
    nodes: list[int]
    left_out: list[int]
    """Numbers of nodes that do not divide the minibatch."""
    unused: list[str]
    """Parameters of the module that its forward pass does not use."""
    compute: str
    fabric: str


def asked(given: argparse.Namespace) -> Asked:
    """SpecError in one line for the first thing wrong."""
    from pydantic import ValidationError

    from scaleproof.record.digest import machine_id
    from scaleproof.simulate.case_costs import cost_model
    from scaleproof.simulate.predicted_scaling import Question

    fabric, words = fabric_fields(given.fabric)
    every = nodes_of(given.nodes)
    network, unused = _network(given)
    compute, profiles, fields = _compute(given, network)
    minibatch, per_node = (given.minibatch, None) if given.minibatch is not None else (None, given.per_node)
    for option, samples in (("--minibatch", minibatch), ("--per-node", per_node)):
        if samples is not None and samples < 1:
            raise SpecError(f"{option} {samples}: give at least one sample")
    fields |= (
        fabric
        | _exchange(given)
        | {"workload": given.workload if ":" not in given.workload else "vgg_a", "workload.width": given.width}
    )
    fields |= {"workload.image_side": given.image_side} if given.image_side else {}
    nodes = [count for count in every if minibatch is None or minibatch % count == 0]
    if not nodes:
        raise SpecError(
            f"--nodes {given.nodes}: no such number divides --minibatch {minibatch}; --per-node grows the "
            "minibatch with the nodes"
        )
    question = Question(fields, network, _no_costs(), profiles, minibatch, per_node)
    try:
        case = [question.case(count) for count in (nodes[0], nodes[-1])][-1]
    except ValidationError as failed:
        raise _wrong(failed) from None
    costs = cost_model(case, given.results, machine_id()).also_assumed(*_taken_for_granted(given, minibatch, nodes))
    question = Question(fields, network, costs, profiles, minibatch, per_node)
    return Asked(question, nodes, [count for count in every if count not in nodes], unused, compute, words)


def _taken_for_granted(given: argparse.Namespace, minibatch: int | None, nodes: list[int]) -> list[str]:
    """What of computing nobody measured."""
    if not (given.profile or given.peak):
        return [
            "every node computes as long as every other, in every step: what `scaleproof fit` finds of that is "
            "drawn in launches of fabric simulated only"
        ]
    if minibatch is not None and nodes[-1] > 1:
        return [f"{minibatch} samples on a node and {minibatch // nodes[-1]} reach the same share of the peak rate"]
    return []


def _no_costs() -> Any:
    """Of a question that is only checked: which costs there are follows from its case."""
    from scaleproof.simulate.cost_model import CostModel, Uncertain

    return CostModel(
        (None,), (Uncertain("alpha", 0.0),), (Uncertain("beta", 0.0),), Uncertain("gamma", 0.0), 1.0, "none"
    )


def nodes_of(text: str) -> list[int]:
    """`1..512`: powers of two between, with both ends; or a list, `1,2,24`. SpecError for anything else."""
    spanned, listed = re.fullmatch(r"([0-9]+)\.\.([0-9]+)", text), re.fullmatch(r"[0-9]+(,[0-9]+)*", text)
    if spanned:
        first, last = int(spanned[1]), int(spanned[2])
        found = sorted(
            {first, last, *(2**power for power in range(MOST_NODES.bit_length()) if first < 2**power < last)}
        )
    elif listed:
        found = sorted({int(part) for part in text.split(",")})
    else:
        raise SpecError(f"--nodes {text!r} is no number of nodes; write 1..128, or a list as 1,2,24")
    if found[0] < 1 or (spanned and int(spanned[1]) > int(spanned[2])) or found[-1] > MOST_NODES:
        raise SpecError(f"--nodes {text}: give numbers from 1 to {MOST_NODES}, the smaller first")
    return found


def fabric_fields(name: str) -> tuple[dict[str, Any], str]:
    """Fields of a case, and what it is in words."""
    from scaleproof.spec.cluster import ready_clusters

    if name in ready_clusters() or name.endswith((".yaml", ".yml")):
        return {"fabric.cluster": name}, f"cluster {name}"
    short = SHORT.fullmatch(name)
    if short is None:
        raise SpecError(f"unknown fabric {name!r}; {nearest(name, [*ready_clusters(), *RATES])}")
    if float(short[1]) == 0:
        raise SpecError(f"--fabric {name}: a link needs a rate above 0")
    ready = f"ethernet_{short[1]}g"
    if ready in ready_clusters():
        return {"fabric.cluster": ready}, f"cluster {ready}"
    return {"fabric.link_mbit": float(short[1]) * 1000}, f"one switch, {short[1]} Gbit/s to every node"


def _network(given: argparse.Namespace) -> tuple[Network, list[str]]:
    if ":" in given.workload:
        from scaleproof.workloads.traced import parse_inputs, trace

        if given.image_side or given.width != 1:
            raise SpecError(
                "--image-side and --width reduce networks of ours; a module's size is what its function makes "
                "and what --input says"
            )
        return trace(given.workload, parse_inputs(given.input) if given.input else None)
    if given.workload not in registry.names("workload"):
        known = nearest(given.workload, registry.names("workload"))
        raise SpecError(
            f"unknown workload {given.workload!r}; {known}; a torch module of your own is package.module:name"
        )
    if given.input:
        raise SpecError(
            f"--input is for a torch module of your own; {given.workload} has its input (--image-side reduces images)"
        )
    network: Network = registry.load("workload", given.workload)(given.image_side, given.width)
    return network, []


def _exchange(given: argparse.Namespace) -> dict[str, Any]:
    try:
        strategy = registry.get("strategy", given.strategy)
    except SpecError as unknown:
        raise SpecError(f"--strategy: {unknown}") from None
    if strategy.divides_layers and ":" in given.workload:
        raise SpecError(
            f"--strategy {given.strategy} divides the fully connected layers at the end of networks of ours; it does "
            "not know those of a module"
        )
    transport = registry.get("transport", given.transport)
    if transport.one_node and nodes_of(given.nodes)[-1] > 1:
        raise SpecError(
            f"--transport {given.transport} ends at the node; take tcp, grpc, gloo, mpi, ucx or nccl, or --nodes 1"
        )
    ours = transport.point_to_point or (strategy.divides_update and transport.sends)
    collective = given.collective or ("ring" if ours else "native")
    fields = {
        "transport": given.transport,
        "collective": collective,
        "strategy": given.strategy,
        "launcher": transport.launcher,
    }
    if "bucket_mib" in strategy.options.model_fields:
        fields["strategy.bucket_mib"] = given.bucket_mib
    return fields | ({"strategy.servers": given.servers} if given.servers else {})


def _compute(
    given: argparse.Namespace, network: Network
) -> tuple[str, Callable[[TrainCase], tuple[Profile, ...]], dict[str, Any]]:
    """Of a node type or peak rate over a range of efficiency, or as it was measured here: words, profiles of a case,
    fields of a case."""
    from scaleproof.record.digest import machine_id
    from scaleproof.spec.cluster import node_type
    from scaleproof.workloads.profile import peak_profile, profile_of

    if given.profile and given.peak:
        raise SpecError("--profile names a node type, --peak gives its rate: one of them")
    if given.profile or given.peak:
        if not given.efficiency:
            raise SpecError(
                "--efficiency LOW..HIGH is missing: the share of the peak rate that computing reaches, e.g. 0.4..0.6"
            )
        low, high = efficiency_of(given.efficiency)
        kind = node_type(given.profile) if given.profile else _given_rate(given.peak)
        shares = [low] if low == high else [(low * high) ** 0.5, low, high]
        name = f"{kind.summary}, " if given.profile else ""
        words = f"{name}{kind.peak_flops / 1e12:.3g} TFLOP/s at its peak, of which {low:.0%}" + (
            f" to {high:.0%}" if high > low else ""
        )

        def reckoned(case: TrainCase) -> tuple[Profile, ...]:
            return tuple(peak_profile(network, case.minibatch // case.ranks, kind, share) for share in shares)

        return words, reckoned, {"compute.profile": given.profile or GIVEN, "compute.efficiency": shares[0]}
    if given.efficiency:
        raise SpecError("--efficiency is a share of a peak rate: give --profile NODE_TYPE, or --peak TFLOPS")
    if ":" in given.workload:
        raise SpecError(
            f"how fast does a node compute {given.workload}? Give --profile NODE_TYPE or --peak TFLOPS, and "
            "--efficiency LOW..HIGH"
        )
    folder = given.results / "machines" / machine_id()
    threads = f"{given.threads} thread{'s' if given.threads > 1 else ''}"
    return f"this machine, {threads}", lambda case: (profile_of(case, folder),), {"threads_per_rank": given.threads}


def _given_rate(tera: float) -> NodeType:
    from scaleproof.spec.cluster import NodeType

    if tera <= 0:
        raise SpecError(f"--peak {tera:g}: give TFLOP/s of a node, above 0")
    return NodeType(
        summary="a node of the given rate", cores=1, ghz=tera * 1000, flop_per_cycle=1, source="the command line"
    )


def efficiency_of(text: str) -> tuple[float, float]:
    """`0.4..0.6`, or one share."""
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


def _wrong(failed: ValidationError) -> SpecError:
    from scaleproof.spec.case import TrainCase, form_keys
    from scaleproof.spec.messages import field_of, options_of, phrase

    error = failed.errors(include_url=False)[0]
    loc = [str(part) for part in error["loc"]]
    name = field_of(error) or (loc[0] if loc else "")
    option = OPTION.get(name, f"--{name.rpartition('.')[2].replace('_', '-')}")
    return SpecError(f"{option}: {phrase({**error, 'loc': loc}, form_keys(TrainCase), options_of(TrainCase, name))}")
