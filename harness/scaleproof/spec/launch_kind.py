"""What a noise floor belongs to: launches of one kind spread alike, launches of different kinds do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase

Way = Literal["no exchange", "memory", "loopback", "network", "namespaces", "guests"]
ComputeKind = Literal["real", "replayed", "none"]


class LaunchKind(BaseModel):
    """Program, compute, way of the bytes, ranks, and whether communication shares cores with compute."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    program: str = Field(
        description="`transfer`, `collective`, `train`, or a suite's own program as `own SUITE.ENTRY`."
    )
    compute: ComputeKind = Field(description="real: ranks compute; replayed: they sleep instead; none: neither.")
    way: Way = Field(
        description="How bytes move between ranks: memory or loopback of one machine, the network between machines, "
        "namespaces or guests made for the launch."
    )
    ranks: int = Field(description="Processes of a launch.")
    shared_cores: bool = Field(False, description="Communication threads or servers share cores with compute.")

    def __str__(self) -> str:
        ranks = "one rank" if self.ranks == 1 else f"{self.ranks} ranks without exchange"
        if self.way != "no exchange":
            ranks = f"{self.ranks} ranks over {self.way}"
        shared = ", shared cores" if self.shared_cores else ""
        return f"{self.program}, {self.compute} compute, {ranks}{shared}"


def kind_of(case: AnyCase, shared_cores: bool = False) -> LaunchKind | None:
    """The kind of a case's launches; None for predictions, which have no noise of a machine."""
    if case.plugin("fabric").predicted:
        return None
    return LaunchKind(
        program=_program(case), compute=_compute(case), way=_way(case), ranks=case.ranks, shared_cores=shared_cores
    )


def shares_cores(case: AnyCase, cores: float) -> bool:
    """Whether cores that suffice for the compute threads of all ranks do not suffice for their communication threads
    or servers too. Ranks that compute nothing, or sleep, share no core with compute."""
    if not computes(case) or case.ranks * case.threads_per_rank > cores:
        return False
    return case.ranks * (case.threads_per_rank + communication_threads(case)) > cores


def communication_threads(case: AnyCase) -> int:
    """Threads of each rank that move bytes while it computes: the transport's, and those of a server in the rank."""
    if case.transport is None or case.ranks == 1:
        return 0
    own_server = case.value("strategy") is not None and case.plugin("strategy").has_servers
    in_every_rank = own_server and not case.value("strategy.servers")
    return int(case.plugin("transport").progress == "background") + int(in_every_rank)


def computes(case: AnyCase) -> bool:
    """Whether ranks really compute between exchanges."""
    return _compute(case) == "real"


def sleeps(case: AnyCase) -> bool:
    """Whether ranks sleep in place of computing: compute is replayed, or the option `slept` of a suite's own program
    says so."""
    return case.value("compute") == "replay" or bool(case.value("slept", False))


def _program(case: AnyCase) -> str:
    entry = case.value("entry")
    return case.program if entry is None else f"own {case.suite}.{entry}"


def _compute(case: AnyCase) -> ComputeKind:
    if sleeps(case):
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
