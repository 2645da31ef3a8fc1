"""What a noise floor belongs to: launches of one kind spread alike, launches of different kinds do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase

Way = Literal["no exchange", "memory", "loopback", "network", "namespaces", "guests"]
ComputeKind = Literal["real", "replayed", "none"]


class LaunchKind(BaseModel):
    """Program, compute, way of the bytes, transport, ranks, and whether communication shares cores with compute."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    program: str = Field(
        description="`transfer`, `collective`, `train`, or a suite's own program as `own SUITE.ENTRY`."
    )
    compute: ComputeKind = Field(description="real: ranks compute; replayed: they sleep instead; none: neither.")
    way: Way = Field(
        description="How bytes move between ranks: memory or loopback of one machine, the network between machines, "
        "namespaces or guests made for the launch."
    )
    transport: str | None = Field(
        None,
        description="What moves them: one transport may be steady where another has two speeds. null: nothing, or in "
        "namespaces any, as the links there set the pace of all.",
    )
    ranks: int = Field(description="Processes of a launch.")
    shared_cores: bool = Field(False, description="Communication threads or servers share cores with compute.")

    def __str__(self) -> str:
        ranks = "one rank" if self.ranks == 1 else f"{self.ranks} ranks without exchange"
        if self.way != "no exchange":
            over = self.way if self.transport is None else f"{self.transport} ({self.way})"
            ranks = f"{self.ranks} ranks over {over}"
        shared = ", shared cores" if self.shared_cores else ""
        return f"{self.program}, {self.compute} compute, {ranks}{shared}"


def kind_of(case: AnyCase, shared_cores: bool = False) -> LaunchKind | None:
    """The kind of a case's launches; None for predictions, which have no noise of a machine."""
    if case.plugin("fabric").predicted:
        return None
    way = _way(case)
    return LaunchKind(
        program=_program(case),
        compute=_compute(case),
        way=way,
        transport=None if way in ("no exchange", "namespaces") else case.transport,
        ranks=case.ranks,
        shared_cores=shared_cores,
    )


def kind_on(case: AnyCase, cores: float) -> LaunchKind | None:
    """The kind of a case's launches on a machine with so many cores; None for predictions, and for launches whose times
    do not count because they have more compute threads than cores."""
    if not sleeps(case) and case.ranks * case.threads_per_rank > cores and case.nodes == 1:
        return None
    return kind_of(case, shares_cores(case, cores))


def shares_cores(case: AnyCase, cores: float) -> bool:
    """Whether cores that suffice for the compute threads of all ranks do not suffice for their communication threads
    or servers too. Ranks that compute nothing, or sleep, share no core with compute."""
    if not computes(case) or case.ranks * case.threads_per_rank > cores:
        return False
    return case.ranks * (case.threads_per_rank + communication_threads(case)) > cores


def communication_threads(case: AnyCase) -> int:
    """Threads of each rank that are busy with bytes while it computes: on each channel one of the transport or of the
    strategy, where the other waits for it, and one of a server in the rank."""
    if case.transport is None or case.ranks == 1:
        return 0
    own_server = case.value("strategy") is not None and case.plugin("strategy").has_servers
    in_every_rank = own_server and not case.value("strategy.servers")
    beside = case.plugin("transport").progress == "background" or calls_from_a_thread(case)
    return int(beside) * case.value("strategy.channels", 1) + int(in_every_rank)


def calls_from_a_thread(case: AnyCase) -> bool:
    """Whether the strategy's own thread makes the calls, so that it moves what the transport moves in a wait."""
    if case.value("strategy") is None or not case.plugin("strategy").communicates_beside_compute:
        return False
    return case.value("strategy.communication", "thread") != "main" and case.value("transport.fusion_mib") is None


def computes(case: AnyCase) -> bool:
    """Whether ranks need their cores between exchanges: they compute, or burn a core for as long."""
    return _compute(case) == "real" or bool(case.value("compute.burns"))


def replays(case: AnyCase) -> bool:
    """Whether the time of compute is made up: compute is replayed, or the option `slept` of a suite's own program says
    so. What else makes a launch emulated: spec/evidence.py."""
    return case.value("compute") == "replay" or bool(case.value("slept", False))


def sleeps(case: AnyCase) -> bool:
    """Whether ranks sleep in place of computing, and leave their cores to others."""
    return replays(case) and not case.value("compute.burns")


def _program(case: AnyCase) -> str:
    entry = case.value("entry")
    return case.program if entry is None else f"own {case.suite}.{entry}"


def _compute(case: AnyCase) -> ComputeKind:
    if replays(case):
        return "replayed"
    if case.program == "train":
        return "none" if case.value("compute") == "none" else "real"
    return "real" if case.value("entry") is not None else "none"


def _way(case: AnyCase) -> Way:
    fabric = case.plugin("fabric")
    if case.ranks == 1 or case.transport is None:
        return "no exchange"
    if fabric.own_kernels:
        return "guests"
    if fabric.makes_nodes:
        return "namespaces"
    if case.nodes > 1 or case.interface != "lo":
        return "network"
    return "memory" if case.plugin("transport").within_node == "memory" else "loopback"
