"""Options that several strategies share, and their checks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import Options


class PeriodOptions(Options):
    """Options of strategies that exchange every few steps."""

    tau: int = Field(1, ge=1, description="Steps between two exchanges of a rank.")


class BucketOptions(Options):
    """Options of strategies that exchange gradients in buckets."""

    bucket_mib: float = Field(25.0, gt=0, description="Gradients exchanged in one call, MiB.")


class OverlapOptions(BucketOptions):
    """Options of strategies that make calls during the backward pass."""

    communication: Literal["thread", "main"] = Field(
        "thread",
        description="Who makes the calls during the backward pass: a thread with a queue of commands, or the main "
        "thread, which polls between two layers.",
    )


class ExchangeOptions(BucketOptions):
    """Options of strategies whose calls may run side by side, and which the simulator can also order and overlap in
    other ways."""

    channels: int = Field(
        1,
        gt=0,
        description="Calls of a rank that run in parallel, each on a thread and connections of its own; bucket n uses "
        "channel n mod channels. Over transports that a process can connect several times, and on fabric simulated.",
    )
    bucket_order: Literal["ready", "front_first"] = Field(
        "ready",
        description="Fabric simulated: buckets are exchanged in the order in which they become ready; or, of the "
        "buckets that are ready on all ranks, the bucket of the foremost layer first.",
    )
    forward_waits: Literal["step", "layer"] = Field(
        "step",
        description="Fabric simulated: a step begins when all gradients of the previous step are exchanged; or each "
        "layer's forward pass begins when the gradients of that layer are exchanged.",
    )


def check_overlap(case: TrainCase) -> None:
    """Raises FieldError if the main thread cannot make the calls."""
    if case.value("strategy.communication") == "main" and case.value("transport.fusion_mib") is not None:
        message = "a transport that fuses takes tensors from the main thread and moves them with its own; leave it out"
        raise FieldError("strategy.communication", message)


def check_exchange(case: TrainCase) -> None:
    """Raises FieldError for options that only the simulator has, on other fabrics or in combinations without
    meaning."""
    defaults = {"channels": 1, "bucket_order": "ready", "forward_waits": "step"}
    chosen = [name for name, default in defaults.items() if case.value(f"strategy.{name}") != default]
    if not chosen:
        return
    field = f"strategy.{chosen[0]}"
    if not case.plugin("fabric").predicted:
        _check_real(case, chosen)
    if case.value("transport.fusion_mib") is not None:
        raise FieldError(field, "a transport that fuses makes one call of what is ready; leave it out")
    if case.value("strategy.communication") == "main":
        message = "the main thread makes one call after the other, as buckets get ready; leave it out, or communication"
        raise FieldError(field, message)
    if case.value("strategy.channels") > 1 and len(chosen) > 1:
        several = "several are simulated for calls as they get ready, all done before the next step"
        raise FieldError("strategy.channels", f"{several}; leave out {chosen[1]}")


def _check_real(case: TrainCase, chosen: list[str]) -> None:
    """Raises FieldError for what only the simulator has, and for channels over a transport that connects once."""
    if simulated := [name for name in chosen if name != "channels"]:
        real = "calls in bucket order, and all of them before the next step"
        message = f"on fabric {case.fabric!r} strategies make {real}; 'simulated' has it"
        raise FieldError(f"strategy.{simulated[0]}", message)
    if case.transport is not None and not case.plugin("transport").channels:
        able = " or ".join(map(repr, registry.with_trait("transport", "channels")))
        message = f"a process connects transport {case.transport!r} once, for one channel; take {able}"
        raise FieldError("strategy.channels", f"{message}, or fabric 'simulated'")


def check_divided(case: TrainCase) -> None:
    """Raises FieldError if the framework cannot update parts of parameters, or the transport fuses."""
    if case.plugin("framework").own_optimiser_memory:
        message = (
            f"strategy {case.strategy!r} steps parts of parameters where they lie; use 'torch', whose can lie anywhere"
        )
        raise FieldError("framework", message)
    if case.value("transport.fusion_mib") is not None:
        message = f"strategy {case.strategy!r} exchanges buckets; nothing is left to fuse"
        raise FieldError("transport.fusion_mib", message)
    check_overlap(case)
