"""Fields of a case that are right alone and wrong together: each check raises FieldError, which names the field to
point at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError

if TYPE_CHECKING:
    from scaleproof.spec.case import CommonCase, TrainCase

NATIVE, HIERARCHICAL = "native", "hierarchical"
SLOWED = ("netns", "simulated")
"""Fabrics whose links follow a case's dilation and shrink."""
SHAPING = ("nodes", "guest", "link_mbit", "link_delay_ms", "cluster", "node_cores")
DIVIDED = ("distributed_update", "hybrid")
"""Strategies whose ranks step parts of the parameters."""


def names_fit(case: CommonCase, sends_only: bool) -> None:
    """Transport, collective and launcher. `sends_only`: the program needs no collectives."""
    if case.transport is None:
        return
    transport = registry.entry("transport", case.transport)
    lifted = case.collective != NATIVE
    if (lifted and not transport.sends) or (transport.point_to_point and not lifted and not sends_only):
        wanted = (
            "an algorithm (" + ", ".join(registry.names("collective")) + ")"
            if transport.point_to_point
            else f"{NATIVE!r}"
        )
        raise FieldError(
            _given(case, "collective"),
            f"collective {case.collective!r} does not fit transport {case.transport!r}; it takes {wanted}",
        )
    if (transport.launcher or "local") != case.launcher:
        raise FieldError(
            _given(case, "launcher"),
            f"transport {case.transport!r} needs launcher {transport.launcher or 'local'!r}, not {case.launcher!r}",
        )
    if case.fusion_mib is not None and not transport.fuses:
        fusing = ", ".join(name for name in registry.names("transport") if registry.entry("transport", name).fuses)
        raise FieldError("fusion_mib", f"transport {case.transport!r} fuses no tensors; {fusing} do")
    if case.region_mib is not None and not transport.pins_memory:
        raise FieldError("region_mib", f"transport {case.transport!r} registers no memory; rdma does")


def network_fits(case: CommonCase) -> None:
    """The fabric, and what it is told of nodes and links."""
    if case.fabric == "host" and (shaped := _set(case, *SHAPING)):
        raise FieldError(
            shaped[0], "fabric 'host' is this machine with the network it has; use 'netns', 'guests' or 'simulated'"
        )
    if case.cluster is not None and case.fabric == "guests":
        raise FieldError(
            "cluster",
            "fabric 'guests' has one switch with equal links; use 'netns' or 'simulated', or link_mbit and link_delay_ms",
        )
    if case.cluster is not None and (case.link_mbit is not None or case.link_delay_ms):
        raise FieldError("cluster", "its description has the rates and delays; leave out link_mbit and link_delay_ms")
    _slowness_fits(case)
    if case.costs is not None and case.fabric != "simulated":
        raise FieldError(
            "costs", f"fabric {case.fabric!r} takes the time that it takes; leave it out, or set fabric: simulated"
        )
    if case.node_cores is not None and case.fabric != "netns":
        raise FieldError("node_cores", f"fabric {case.fabric!r} limits no processor time; 'netns' does")
    if case.collective == HIERARCHICAL and (case.nodes in (1, case.ranks) or case.ranks % case.nodes):
        told = (
            f"is for several nodes with as many ranks on each, at least two, not for {case.ranks} ranks on {case.nodes}"
        )
        raise FieldError("collective", f"{HIERARCHICAL!r} {told}; set nodes, or use 'ring'")
    if case.nodes > case.ranks:
        raise FieldError("nodes", f"{case.nodes} nodes for {case.ranks} ranks; every node needs one")
    if case.transport is None and (alone := _set(case, "fusion_mib", "region_mib")):
        raise FieldError(alone[0], "is for a transport; this case has none")


def _slowness_fits(case: CommonCase) -> None:
    """Dilation and shrink: something must follow them, and they must leave whole elements."""
    slow = _set(case, "dilation", "shrink")
    if not slow:
        return
    if getattr(case, "program", None) == "own":
        raise FieldError(
            slow[0], "a suite's own program is not slowed by it, its times would be divided all the same; leave it out"
        )
    if case.transport and case.fabric not in SLOWED:
        raise FieldError(
            slow[0], f"fabric {case.fabric!r} does not slow its links with it; use {' or '.join(map(repr, SLOWED))}"
        )
    stated = case.costs == "stated" or (case.costs is None and getattr(case, "profile", None) is not None)
    if case.fabric == "simulated" and case.transport and stated:
        raise FieldError(
            slow[0],
            "stated costs are of hardware at full speed with whole tensors: leave it out, or set costs: fitted as for an emulated case",
        )
    try:
        itemsize = np.dtype(getattr(case, "dtype", "uint8")).itemsize
    except TypeError:
        raise FieldError("dtype", f"{getattr(case, 'dtype', '')!r} is no data type of NumPy") from None
    if uneven := [size for size in getattr(case, "sizes", ()) if size % (case.shrink * itemsize)]:
        raise FieldError(
            "shrink", f"size {uneven[0]} does not divide by {case.shrink:g} into whole elements of {itemsize} B"
        )


def training_fits(case: TrainCase) -> None:
    """Strategy, framework, batch, and whose compute it is."""
    if (case.transport is None) != (case.strategy == "local_only"):
        wanted = "takes no transport" if case.transport else "needs a transport; only 'local_only' has none"
        raise FieldError("transport" if case.transport else "strategy", f"strategy {case.strategy!r} {wanted}")
    if case.framework == "tensorflow" and case.strategy == "sync_overlap":
        raise FieldError(
            "strategy",
            "'sync_overlap' needs gradients one by one, which compiled TensorFlow steps do not give; use 'sync'",
        )
    if case.framework == "tensorflow" and case.fusion_mib is not None and (case.transport or "").startswith("horovod"):
        raise FieldError(
            "fusion_mib",
            "Horovod's eager calls for TensorFlow end one by one, so there is nothing to fuse; use framework 'torch'",
        )
    if case.minibatch % case.ranks:
        raise FieldError("minibatch", f"{case.minibatch} does not divide over {case.ranks} ranks")
    if (case.profile is None) != (case.efficiency is None):
        given = "profile" if "profile" in case.model_fields_set else "efficiency"
        raise FieldError(given, "profile (a node type) and efficiency (a share of its peak rate) go together")
    replayed = case.compute == "replay" or case.fabric == "simulated"
    if not replayed and (unreal := _set(case, "profile", "dilation", "shrink")):
        raise FieldError(unreal[0], "is for replayed compute: set compute: replay, or fabric: simulated")


def servers_fit(case: TrainCase) -> None:
    """Parameter servers, and how their tensors travel."""
    if case.servers and not case.strategy.endswith("parameter_server"):
        raise FieldError("servers", f"strategy {case.strategy!r} has no servers; 'parameter_server' has")
    if case.mechanism != "messages" and case.strategy != "parameter_server":
        raise FieldError(
            "mechanism",
            f"strategy {case.strategy!r} leaves how tensors travel to its transport; 'parameter_server' has mechanisms",
        )
    if case.mechanism != "messages" and case.transport and not registry.entry("transport", case.transport).one_sided:
        devices = ", ".join(name for name in registry.names("transport") if registry.entry("transport", name).one_sided)
        raise FieldError(
            _given(case, "mechanism"),
            f"mechanism {case.mechanism!r} needs one-sided writes ({devices}), not transport {case.transport!r}",
        )
    if case.strategy == "tensorflow_parameter_server" and case.transport != "tensorflow-grpc":
        raise FieldError(
            _given(case, "transport"), f"strategy {case.strategy!r} runs on the servers of transport 'tensorflow-grpc'"
        )
    if case.strategy == "tensorflow_parameter_server" and case.collective != NATIVE:
        raise FieldError(
            "collective", f"strategy {case.strategy!r} has TensorFlow exchange by itself; leave it out, or {NATIVE!r}"
        )
    if case.servers > case.ranks:
        raise FieldError("servers", f"{case.servers} servers for {case.ranks} ranks; a server is one of them")


def division_fits(case: TrainCase) -> None:
    """Strategies that divide layers or parameters over ranks, and who makes calls beside the backward pass."""
    if case.groups and case.strategy != "hybrid":
        raise FieldError("groups", f"strategy {case.strategy!r} divides no layers over groups of ranks; 'hybrid' does")
    if case.groups and case.ranks % case.groups:
        raise FieldError("groups", f"{case.groups} groups do not divide {case.ranks} ranks")
    if case.communication != "thread" and case.strategy not in ("sync_overlap", *DIVIDED):
        raise FieldError(
            "communication", f"strategy {case.strategy!r} makes no calls beside the backward pass; 'sync_overlap' does"
        )
    if case.communication != "thread" and case.fusion_mib is not None:
        raise FieldError(
            "communication",
            "a transport that fuses takes tensors from the main thread and moves them with its own; leave it out",
        )
    if case.strategy in DIVIDED and case.framework != "torch":
        raise FieldError(
            "framework",
            f"strategy {case.strategy!r} steps parts of parameters where they lie; use 'torch', whose can lie anywhere",
        )
    if case.strategy in DIVIDED and case.fusion_mib is not None:
        raise FieldError("fusion_mib", f"strategy {case.strategy!r} exchanges buckets; nothing is left to fuse")
    if case.strategy == "hybrid" and case.collective == NATIVE:
        wanted = "collectives inside groups of ranks: an algorithm (ring, ...) over a transport's sends, not 'native'"
        raise FieldError(_given(case, "collective"), f"strategy 'hybrid' needs {wanted}")
    if case.strategy == "hybrid" and case.collective == HIERARCHICAL:
        raise FieldError(
            "collective", "strategy 'hybrid' calls collectives of groups of ranks, which know no nodes; use 'ring'"
        )
    if case.strategy == "hybrid" and case.compute == "none":
        raise FieldError(
            "compute",
            "strategy 'hybrid' exchanges activations within the passes; without them there is nothing to show",
        )


def exchange_fits(case: TrainCase) -> None:
    """Channels, the order of buckets and what a forward pass waits for: the simulator has them, strategies that run do
    not."""
    asked = _set(case, "channels", "bucket_order", "forward_waits")
    if not asked:
        return
    if case.fabric != "simulated":
        real = "one call after the other, in bucket order, and all of them before the next step"
        raise FieldError(asked[0], f"on fabric {case.fabric!r} strategies make {real}; 'simulated' has it")
    if case.strategy not in ("sync", "sync_overlap"):
        raise FieldError(asked[0], f"is simulated for 'sync' and 'sync_overlap', not for strategy {case.strategy!r}")
    if case.fusion_mib is not None:
        raise FieldError(asked[0], "a transport that fuses makes one call of what is ready; leave it out")
    if case.communication == "main":
        raise FieldError(
            asked[0],
            "the main thread makes one call after the other, as buckets get ready; leave it out, or communication",
        )
    if case.channels > 1 and len(asked) > 1:
        raise FieldError(
            "channels",
            f"several are simulated for calls as they get ready, all done before the next step; leave out {asked[1]}",
        )


def _set(case: CommonCase, *fields: str) -> list[str]:
    """Which of these fields are not at their default."""
    return [field for field in fields if getattr(case, field) != type(case).model_fields[field].default]


def _given(case: CommonCase, field: str) -> str:
    """Which of two fields that do not fit to point at: this one where it was given, else the transport."""
    return field if field in case.model_fields_set else "transport"
