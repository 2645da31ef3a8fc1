"""What the passes of a training step are made of: real computing, nothing, or a profile that is replayed."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from scaleproof.spec.errors import FieldError
from scaleproof.spec.mixed_nodes import other_nodes
from scaleproof.spec.plugins import Options
from scaleproof.spec.straggler_law import NODE_LAW, straggler_law


class ComputeOptions(Options):
    """What the passes of a training step are made of."""

    name: Literal["real", "none", "replay"] = Field(
        "real",
        description="real: the framework computes; none: no forward and backward pass, gradients stay as they are (the "
        "control arm that shows communication alone); replay: each layer's time, as profiled, is slept.",
    )
    profile: str | None = Field(
        None,
        description="Whose compute is replayed or simulated: a node type of clusters/nodes.yaml by its peak rate, or "
        "of clusters/gpu_nodes.yaml by that of one of its GPUs; "
        "null: this machine's, as measured by `scaleproof profile`.",
    )
    efficiency: float | None = Field(None, gt=0, le=1, description="Share of the peak rate that compute reaches.")

    burns: bool = Field(
        False,
        description="replay: take the core for as long as compute would, in place of sleeping, so that threads that "
        "share it with compute slow it down. For ranks that have a core each, and no dilation.",
    )

    @model_validator(mode="after")
    def _only_replay_burns(self) -> ComputeOptions:
        if self.burns and self.name != "replay":
            raise FieldError("burns", f"only compute that is replayed burns a core, not {self.name!r}")
        return self

    reduces: float | None = Field(
        None,
        gt=0,
        description="replay: GB/s at which a node reduces in collectives of ours, where that is slower than this "
        "machine; null: as this machine.",
    )

    @model_validator(mode="after")
    def _only_replay_reduces(self) -> ComputeOptions:
        if self.reduces is not None and self.name != "replay":
            raise FieldError("reduces", f"only compute that is replayed reduces at a rate, not {self.name!r}")
        return self

    jitter: str | None = Field(
        None,
        description="replay: law of the factor by which a rank's compute lasts longer in a step, as for "
        "`fabric.stragglers`, drawn from the launch's seed, rank and step; null: every step lasts as long as profiled.",
    )

    @model_validator(mode="after")
    def _only_replay_is_uneven(self) -> ComputeOptions:
        if self.jitter is None:
            return self
        if self.name != "replay":
            raise FieldError("jitter", f"only compute that is replayed has it, not {self.name!r}; leave it out")
        try:
            law = straggler_law(self.jitter)
        except ValueError as error:
            raise FieldError("jitter", str(error)) from None
        if law.name == NODE_LAW and self.profile is None:
            raise FieldError("jitter", "as the node type states: give a node type as profile, or write fitted")
        return self

    others: str | None = Field(
        None,
        description="Nodes of other types than `profile`, the last ones of the case, as COUNT*NODE_TYPE@EFFICIENCY: "
        "2*xeon_e5_2666v3_x2@0.5, several with commas. Replayed or simulated; null: all nodes are alike.",
    )

    @model_validator(mode="after")
    def _others_beside_a_profile(self) -> ComputeOptions:
        if self.others is None:
            return self
        if self.profile is None:
            raise FieldError("others", "nodes of other types: give the type of the first ones as profile")
        try:
            other_nodes(self.others)
        except ValueError as error:
            raise FieldError("others", str(error)) from None
        return self

    @model_validator(mode="after")
    def _profile_with_efficiency(self) -> ComputeOptions:
        if (self.profile is None) != (self.efficiency is None):
            field = "profile" if self.profile is not None else "efficiency"
            raise FieldError(field, "profile (a node type) and efficiency (a share of its peak rate) go together")
        return self


def compute_of(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value
