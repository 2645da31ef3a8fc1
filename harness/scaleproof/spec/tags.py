"""Where a case stands on the axes of two surveys of distributed training, so that unlike papers can be sorted and
filtered alike.

Langer, He, Rahayu, Xue, Distributed Training of Deep Learning Models: A Taxonomic Perspective, IEEE TPDS 31(12), 2020
(arXiv 2007.03970): parallelism, optimization, scheduling, parameter_exchange, topology. Ben-Nun, Hoefler, Demystifying
Parallel and Distributed Deep Learning, ACM CSUR 52(4), 2019 (arXiv 1802.09941): consistency, parallel_dim, compression.
Of our own: transport, memory_placement, copy.
"""

from __future__ import annotations

from collections.abc import Mapping

from scaleproof.spec.case import AnyCase, CollectiveCase, OwnCase, TrainCase

NONE = "n/a"
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

TRANSPORTS = {
    "tcp": "sockets",
    "shm": "shared-memory",
    "ucx": "UCX",
    "grpc": "gRPC",
    "rdma": "one-sided-RDMA",
    "gloo": "GLOO",
    "nccl": "NCCL",
    "torch-mpi": "MPI",
    "ucc": "UCC",
    "mpi": "MPI",
    "mpich": "MPI",
    "horovod": "No-gRPC:Horovod-GLOO",
    "grpc+mpi": "gRPC+MPI",
    "grpc+shm": "gRPC+shared-memory",
    "grpc+rdma": "gRPC+Verbs",
    "horovod-mpi": "No-gRPC:Horovod-MPI",
    "tensorflow-grpc": "gRPC",
    "tensorflow-mirrored": "gRPC",
}
STRATEGIES = {
    "sync": ("DP", "all-reduce", "data"),
    "sync_overlap": ("DP", "all-reduce", "data"),
    "distributed_update": ("DP", "scatter-reduce", "data"),
    "hybrid": ("MP+DP", "scatter-reduce", "hybrid"),
    "parameter_server": ("DP", "scatter-reduce", "data"),
    "tensorflow_parameter_server": ("DP", "scatter-reduce", "data"),
    "local_only": (NONE, NONE, NONE),
}
"""Parallelism, exchange and parallel dimension; all of them are centralized and synchronous, and none compresses."""
OF_ALGORITHM = {
    "ring": ("all-reduce", "closed-ring"),
    "tree": ("binomial-tree", "tree"),
    "halving_doubling": ("all-reduce", "replicated-PS"),
    "hierarchical": ("all-reduce", "closed-ring"),
}
"""Exchange and topology of an algorithm over a transport's sends; a library's own collective is a replicated parameter
server."""
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
    """One value on every axis, in the order of AXES."""
    found = dict.fromkeys(AXES, NONE)
    if case.transport is not None:
        found["transport"] = TRANSPORTS[case.transport]
    if isinstance(case, TrainCase):
        found |= _of_training(case)
    elif isinstance(case, CollectiveCase):
        found["parameter_exchange"], found["topology"] = _of_collective(case.collective)
    elif isinstance(case, OwnCase) and (scheme := SCHEMES.get(str(case.options.get("scheme")))):
        found |= _centralized("DP", "data") | dict(
            zip(("scheduling", "parameter_exchange", "topology"), scheme, strict=True)
        )
        found["consistency"] = found["scheduling"]
    mechanism = case.options.get("mechanism") if isinstance(case, OwnCase) else getattr(case, "mechanism", None)
    if mechanism in PLACED:
        found["memory_placement"], found["copy"] = PLACED[str(mechanism)]
    return found


def _of_collective(algorithm: str) -> tuple[str, str]:
    return OF_ALGORITHM.get(algorithm, ("all-reduce", "replicated-PS"))


def _of_training(case: TrainCase) -> Tags:
    parallelism, exchange, dimension = STRATEGIES[case.strategy]
    if parallelism == NONE:
        return {}
    topology = "distributed-PS(k=n)"
    if exchange == "all-reduce":
        exchange, topology = _of_collective(case.collective)
    elif case.strategy.endswith("parameter_server"):
        exchange, topology = _of_servers(case)
    return _centralized(parallelism, dimension) | {"parameter_exchange": exchange, "topology": topology}


def _centralized(parallelism: str, dimension: str) -> Tags:
    """Everything of this version that trains has one state, in step."""
    found = {"parallelism": parallelism, "optimization": "centralized", "scheduling": "synchronous"}
    return found | {"consistency": "synchronous", "parallel_dim": dimension, "compression": "none"}


def _of_servers(case: TrainCase) -> tuple[str, str]:
    """One-sided mechanisms are an exchange of their own (xue2019); else one server reduces, several have a part each."""
    servers = case.servers or case.ranks
    topology = (
        "distributed-PS(k=n)" if servers == case.ranks else "single-PS" if servers == 1 else "distributed-PS(k<n)"
    )
    exchange = "ad-hoc" if case.mechanism != "messages" else "reduce" if servers == 1 else "scatter-reduce"
    return exchange, topology
