"""Where a case stands on the axes of two surveys of distributed training, so that unlike papers can be sorted and
filtered alike.

Langer, He, Rahayu, Xue, Distributed Training of Deep Learning Models: A Taxonomic Perspective, IEEE TPDS 31(12), 2020
(arXiv 2007.03970): parallelism, optimization, scheduling, parameter_exchange, topology. Ben-Nun, Hoefler, Demystifying
Parallel and Distributed Deep Learning, ACM CSUR 52(4), 2019 (arXiv 1802.09941): consistency, parallel_dim, compression.
Of our own: transport, memory_placement, copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plugins import NONE

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase, TrainCase

AXES: Mapping[str, tuple[str, ...]] = {
    "parallelism": ("DP", "MP", "MP+DP"),
    "optimization": ("centralized", "decentralized"),
    "scheduling": ("synchronous", "bounded-asynchronous", "soft-bounded-asynchronous", "asynchronous"),
    "parameter_exchange": (
        "ad-hoc",
        "reduce",
        "binomial-tree",
        "scatter-reduce",
        "all-reduce",
        "2:1-reduce",
        "eager-scatter",
    ),
    "topology": (
        "single-PS",
        "distributed-PS(k<n)",
        "distributed-PS(k=n)",
        "replicated-PS",
        "dedicated-master",
        "closed-ring",
        "tree",
        "p2p-mesh",
    ),
    "consistency": ("synchronous", "stale-synchronous", "asynchronous", "nondeterministic"),
    "parallel_dim": ("data", "model", "pipeline", "hybrid"),
    "compression": ("none", "quantization", "sparsification"),
    "transport": (
        "sockets",
        "shared-memory",
        "one-sided-RDMA",
        "UCX",
        "UCC",
        "gRPC",
        "gRPC+Verbs",
        "gRPC+MPI",
        "gRPC+shared-memory",
        "MPI",
        "GLOO",
        "NCCL",
        "No-gRPC:Horovod-MPI",
        "No-gRPC:Horovod-GLOO",
    ),
    "memory_placement": ("static", "dynamic"),
    "copy": ("zero-copy", "copy"),
}
"""The values of every axis; `n/a` is one more on each. Values of `transport` are those of the papers and of our own
transports."""
Tags = dict[str, str]

PLACED = {
    "rpc": ("static", "copy"),
    "copy": ("static", "copy"),
    "zero_copy": ("static", "zero-copy"),
    "dynamic": ("dynamic", "zero-copy"),
}
"""Memory placement and copies of a mechanism (docs/remote.md)."""

SCHEMES = {
    "naive_sync_ps": ("synchronous", "reduce", "single-PS"),
    "binomial_tree": ("synchronous", "binomial-tree", "tree"),
    "scatter_reduce_bcast_single_ps": ("synchronous", "scatter-reduce", "single-PS"),
    "async_per_worker": ("asynchronous", "ad-hoc", "single-PS"),
    "async_all_workers": ("asynchronous", "ad-hoc", "single-PS"),
    "sharded_ps_k_eq_n_sync": ("synchronous", "scatter-reduce", "distributed-PS(k=n)"),
    "recursive_doubling": ("synchronous", "all-reduce", "replicated-PS"),
    "ring": ("synchronous", "all-reduce", "closed-ring"),
}
"""Scheduling, exchange and topology of an own program's option `scheme`: the schemes of Langer et al., section 3.4.1.
"""


def tags_of(case: AnyCase) -> Tags:
    """One value on every axis, in the order of AXES; a plugin that is not installed here has a place on none."""
    tags = dict.fromkeys(AXES, NONE)
    try:
        tags |= _of_plugins(case)
    except SpecError:
        return tags
    options = getattr(case, "options", {})
    if scheme := SCHEMES.get(str(options.get("scheme"))):
        tags |= _centralized("DP", "data") | dict(
            zip(("scheduling", "parameter_exchange", "topology"), scheme, strict=True)
        )
        tags["consistency"] = tags["scheduling"]
    mechanism = case.value("strategy.mechanism") or options.get("mechanism")
    if mechanism in PLACED:
        tags["memory_placement"], tags["copy"] = PLACED[str(mechanism)]
    return tags


def _of_plugins(case: AnyCase) -> Tags:
    tags: Tags = {}
    if case.transport is not None:
        tags["transport"] = case.plugin("transport").axis
    strategy = case.value("strategy")
    if strategy is not None:
        of_case = registry.get("strategy", strategy).tags
        tags |= of_case(case) if of_case else {}
    elif case.program == "collective":
        tags |= _of_collective(case)
    return tags


def _of_collective(case: AnyCase) -> Tags:
    collective = case.plugin("collective")
    return {"parameter_exchange": collective.exchange, "topology": collective.topology}


def _centralized(parallelism: str, dimension: str) -> Tags:
    """All replicas have one state, in step."""
    return {
        "parallelism": parallelism,
        "optimization": "centralized",
        "scheduling": "synchronous",
        "consistency": "synchronous",
        "parallel_dim": dimension,
        "compression": "none",
    }


def synchronous_tags(
    parallelism: str, dimension: str, exchange: str | None = None, topology: str | None = None
) -> Callable[[TrainCase], Tags]:
    """Of a synchronous strategy; without `exchange` and `topology` those of the case's collective."""

    def tags(case: TrainCase) -> Tags:
        own = {"parameter_exchange": exchange, "topology": topology}
        moved = _of_collective(case) | {axis: value for axis, value in own.items() if value is not None}
        return _centralized(parallelism, dimension) | moved

    return tags


def server_tags(case: TrainCase) -> Tags:
    """Of synchronous parameter servers. One-sided mechanisms are an exchange of their own (xue2019); else one server
    reduces, several have a part each."""
    servers = case.value("strategy.dedicated_servers") or case.value("strategy.servers") or case.ranks
    topology = (
        "distributed-PS(k=n)" if servers == case.ranks else "single-PS" if servers == 1 else "distributed-PS(k<n)"
    )
    exchange = "reduce" if servers == 1 else "scatter-reduce"
    if case.value("strategy.mechanism", "messages") != "messages":
        exchange = "ad-hoc"
    return _centralized("DP", "data") | {"parameter_exchange": exchange, "topology": topology}


def asynchronous_tags(optimization: str, scheduling: str, topology: str | None = None) -> Callable[[TrainCase], Tags]:
    """Of replicas at their own pace; without `topology` that of servers, by their number."""

    def tags(case: TrainCase) -> Tags:
        servers = case.value("strategy.dedicated_servers", 0)
        placed = topology or ("single-PS" if servers <= 1 else "distributed-PS(k<n)")
        consistency = "stale-synchronous" if scheduling == "bounded-asynchronous" else "asynchronous"
        return _centralized("DP", "data") | {
            "optimization": optimization,
            "scheduling": scheduling,
            "consistency": consistency,
            "parameter_exchange": "ad-hoc",
            "topology": placed,
        }

    return tags
