"""Starts no processes: the simulator predicts the record of a launch on the case's cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from scaleproof.fabric.link_options import ClusterOptions
from scaleproof.spec.common_case import CommonCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.launch_kind import computes
from scaleproof.spec.plugins import FabricPlugin
from scaleproof.spec.straggler_law import MEANING, straggler_law

if TYPE_CHECKING:
    from scaleproof.spec.case import AnyCase


class Simulated:
    """Nothing to set up."""

    evidence = "simulated"

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def address(self) -> str:
        """Empty: nobody connects."""
        return ""

    def obstacle(self, case: CommonCase | None = None) -> tuple[str, str] | None:
        """None: the simulator reports missing inputs (a profile, a cluster)."""
        return None


class SimulatedOptions(ClusterOptions):
    """Options of a predicted cluster."""

    costs: Literal["fitted", "stated"] | None = Field(
        None,
        description="alpha, beta and gamma as fitted on this machine by `scaleproof fit`, or as stated in ranges for "
        "other hardware; null: stated for the compute of a node type or if nothing was fitted, else fitted.",
    )
    cards: PositiveInt = Field(
        1, description="Links of each node to the one switch, each with link_mbit; a message uses one of them."
    )
    cores: PositiveFloat | Literal["machine"] | None = Field(
        None,
        description="Cores of each node: where its ranks' compute threads and communication threads are more, they "
        "take the cores from each other. machine: as many as this machine has; null: enough for all.",
    )
    stragglers: str | None = Field(
        None,
        description=f"{MEANING} null: compute.jitter of replayed compute; of real compute fitted, where it is this "
        "machine's and was fitted, and node, where it is a node type's that states one; else none.",
    )
    mathematics: Literal["stacked", "alone"] = Field(
        "stacked",
        description="Strategies that are programs of each rank learn for real in virtual time. stacked: the gradients "
        "of many ranks are computed together; alone: each by itself in the framework, with the bits of processes.",
    )
    messages: Literal["timed", "free"] = Field(
        "timed",
        description="Programs of each rank. free: their messages take no time, and there are no links: for models of "
        "computing alone, of many ranks.",
    )
    alpha_times: float = Field(
        1.0, ge=0, description="Factor on alpha: a control that shows what a prediction owes to it; 0: without it."
    )
    beta_times: float = Field(
        1.0, gt=0, description="Factor on beta and on the time that a link needs per byte, as alpha_times."
    )
    gamma_times: float = Field(1.0, ge=0, description="Factor on gamma, as alpha_times.")
    processor_times: float = Field(1.0, ge=0, description="Factor on the time of cores of servers, as alpha_times.")
    call_times: float = Field(
        1.0,
        ge=0,
        description="Factor on what a collective call takes beside its messages, and on hand-overs between threads, as "
        "alpha_times.",
    )

    @model_validator(mode="after")
    def _law_is_known(self) -> SimulatedOptions:
        try:
            straggler_law(self.stragglers or "fitted")
        except ValueError as error:
            raise FieldError("stragglers", str(error)) from None
        return self

    @model_validator(mode="after")
    def _cards_are_of_the_switch(self) -> SimulatedOptions:
        if self.cluster is not None and self.cards != 1:
            raise FieldError("cards", "the cluster's description has the links; leave it out")
        return self

    @model_validator(mode="after")
    def _free_messages_have_no_links(self) -> SimulatedOptions:
        linked = [name for name in ("cluster", "link_mbit", "link_delay_ms") if getattr(self, name)]
        if self.messages == "free" and linked:
            raise FieldError(
                linked[0], "messages that take no time have no links; leave it out, or set messages: timed"
            )
        return self


def check(case: CommonCase) -> None:
    """Raises FieldError for stragglers where nothing computes, free messages of what is no program of each rank, and
    for a dilated or shrunk case with costs of hardware at full speed."""
    if case.value("fabric.stragglers") is not None and (case.program != "train" or case.value("compute") == "none"):
        raise FieldError("fabric.stragglers", "stragglers are ranks of a training that compute longer; leave it out")
    if case.value("fabric.stragglers") is not None and case.value("compute.jitter") is not None:
        raise FieldError("fabric.stragglers", "compute.jitter states how ranks differ; leave one of them out")
    _check_cores(case)
    if case.options_of(SimulatedOptions).messages == "free" and not (case.program == "own" or case.value("replicas")):
        message = "only programs of each rank can have free messages (docs/strategies.md); leave it out"
        raise FieldError("fabric.messages", message)
    slow = [name for name in ("dilation", "shrink") if getattr(case, name) != 1]
    costs = case.options_of(SimulatedOptions).costs
    stated = costs == "stated" or (costs is None and case.value("compute.profile") is not None)
    if slow and case.transport and stated:
        message = (
            "stated costs are of hardware at full speed with whole tensors: leave it out, or set costs: fitted as for "
            "an emulated case"
        )
        raise FieldError(slow[0], message)


def _check_cores(case: CommonCase) -> None:
    """Raises FieldError for cores of nodes on which nothing computes, or on which more computes than they are."""
    cores = case.options_of(SimulatedOptions).cores
    if cores is None:
        return
    if case.program != "train" or not computes(cast("AnyCase", case)):
        message = "cores are shared where a training computes, or burns them (compute.burns); leave it out"
        raise FieldError("fabric.cores", message)
    threads = -(-case.ranks // case.nodes) * case.threads_per_rank
    if cores != "machine" and threads > cores:
        raise FieldError("fabric.cores", f"{threads} compute threads on a node of {cores:g} cores; give as many")


PLUGIN = FabricPlugin(
    name="simulated",
    summary="no processes: the simulator predicts the record",
    implementation=Simulated,
    options=SimulatedOptions,
    check=check,
    evidence="simulated",
    predicted=True,
    slows_links=True,
    interface="eth0",
    node_per_rank=True,
)
