"""How fast a node computes, by the options of `scaleproof predict`: as measured on this machine, or by a peak rate."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from scaleproof.spec.errors import SpecError

if TYPE_CHECKING:
    from scaleproof.calibrate.measured_node_types import MeasuredNodeType
    from scaleproof.spec.case import TrainCase
    from scaleproof.spec.gpu_node import RankType
    from scaleproof.workloads.networks import Network
    from scaleproof.workloads.profile import Profile

COMMAND_LINE = "the command line"
COMMAND_LINE_PROFILE = "as given"
"""Name of the profile in a case whose peak rate comes from --peak."""


class NodeCompute(NamedTuple):
    """How fast a node computes: description for the output, profiles of a case, and fields of a case."""

    description: str
    profiles: Callable[[TrainCase], tuple[Profile, ...]]
    fields: dict[str, Any]


def node_compute(options: argparse.Namespace, network: Network) -> NodeCompute:
    """By a peak rate and a range of efficiency where the options give one, as a node type was measured, or as measured
    on this machine."""
    from scaleproof.record.digest import machine_id
    from scaleproof.workloads.profile import profile_of

    if options.profile and options.peak:
        raise SpecError("--profile names a node type, --peak gives its rate: one of them")
    if (measured := measured_compute(options)) is not None:
        return _compute_as_measured(options, network, measured)
    if options.node:
        return _compute_of_gpus(options, network)
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


def measured_compute(options: argparse.Namespace) -> MeasuredNodeType | None:
    """The node type of `--profile` where it was measured on a GPU; None where it has a peak rate. SpecError for an
    unknown one."""
    from scaleproof.calibrate.measured_node_types import measured_node_type, refuse_unknown
    from scaleproof.spec.cluster import node_types
    from scaleproof.spec.gpu_node import gpu_nodes

    if options.profile is None:
        return None
    measured = measured_node_type(options.profile, options.results)
    if measured is None:
        refuse_unknown(options.profile, [*node_types(), *gpu_nodes()], options.results)
    return measured


def _compute_as_measured(options: argparse.Namespace, network: Network, measured: MeasuredNodeType) -> NodeCompute:
    """The GPU's own times; `--node` says how many a node has, and its links. Messages have stated costs, since they run
    on another machine than this one."""
    if options.efficiency:
        raise SpecError(f"--profile {measured.name} was measured: leave out --efficiency")
    if ":" in options.workload:
        raise SpecError(
            f"--profile {measured.name} was measured with networks of ours; for a module give --peak TFLOPS"
        )
    taken = max(profile.measured_at for profile in measured.profiles)[:10]
    fields: dict[str, Any] = {"fabric.costs": "stated"}
    if options.node:  # the efficiency is not used: the profiles are those that were measured
        fields |= {"compute.profile": options.node, "compute.efficiency": 1.0}
    return NodeCompute(
        f"{measured.summary}, measured {taken} layer by layer (node type {measured.name})",
        lambda case: (measured.profile_of(network, case.batch),),
        fields,
    )


def _compute_by_peak(options: argparse.Namespace, network: Network) -> NodeCompute:
    """The profiles of a case: at the middle of the efficiency range, at its lower and at its upper end."""
    from scaleproof.spec.gpu_node import rank_type

    if not options.efficiency:
        raise SpecError(
            "--efficiency LOW..HIGH is missing: the share of the peak rate that computing reaches, e.g. 0.4..0.6"
        )
    low, high = efficiency_of(options.efficiency)
    node = rank_type(options.profile) if options.profile else _node_with_peak(options.peak)
    return _by_shares(options.profile or COMMAND_LINE_PROFILE, node, low, high, network)


def _compute_of_gpus(options: argparse.Namespace, network: Network) -> NodeCompute:
    """By the peak rate of a GPU of the node type, or of `--peak`, and the share that its file states."""
    from scaleproof.spec.gpu_node import gpu_node, gpu_of, rank_type

    if options.profile:
        raise SpecError(
            "--node and --profile both say how fast a rank computes: one of them, or a --profile measured on a GPU"
        )
    gpu_node(options.node)
    if options.peak and not options.efficiency:
        raise SpecError("--efficiency LOW..HIGH is missing: the share of --peak that a GPU reaches, e.g. 0.2..0.4")
    node = _node_with_peak(options.peak) if options.peak else rank_type(options.node)
    low, high = efficiency_of(options.efficiency) if options.efficiency else gpu_of(options.node).efficiency
    found = _by_shares(options.node, node, low, high, network)
    whose = "as given" if options.efficiency else f"source in clusters/gpus.yaml, {gpu_node(options.node).gpu}"
    return found._replace(description=f"{found.description} ({whose})")


def _by_shares(name: str, node: RankType, low: float, high: float, network: Network) -> NodeCompute:
    from scaleproof.workloads.profile import peak_profile

    shares = [low] if low == high else [(low * high) ** 0.5, low, high]
    summary = "" if node.source == COMMAND_LINE else f"{node.summary}, "
    upper = f" to {high:.0%}" if high > low else ""
    description = f"{summary}{node.peak_flops / 1e12:.3g} TFLOP/s at its peak, of which {low:.0%}{upper}"

    def profiles(case: TrainCase) -> tuple[Profile, ...]:
        return tuple(peak_profile(network, case.minibatch // case.ranks, node, share) for share in shares)

    fields = {"compute.profile": name, "compute.efficiency": shares[0]}
    return NodeCompute(description, profiles, fields)


def _node_with_peak(tera: float) -> RankType:
    """A node type with this peak rate in TFLOP/s."""
    from scaleproof.spec.gpu_node import RankType

    if tera <= 0:
        raise SpecError(f"--peak {tera:g}: give TFLOP/s of a node, above 0")
    return RankType("a node of the given rate", tera * 1e12, COMMAND_LINE)


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
