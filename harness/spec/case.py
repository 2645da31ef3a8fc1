"""A case: one fully resolved, flat configuration. Its id is the hash of its canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, TypeAdapter, model_validator

from harness.spec import registry

Operation = Literal["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
NATIVE = "native"


class CommonCase(BaseModel):
    """What every program's case holds. `collective` is an algorithm's name over a point-to-point transport, else `native`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str
    experiment: str
    arm: str
    ranks: PositiveInt
    transport: str | None = None
    collective: str = NATIVE
    fabric: str = "host"
    launcher: str = "local"
    interface: str = "lo"
    threads_per_rank: PositiveInt = 1

    @model_validator(mode="after")
    def _names_fit(self) -> CommonCase:
        registry.entry("fabric", self.fabric)
        registry.entry("launcher", self.launcher)
        if self.transport is None:
            return self
        transport = registry.entry("transport", self.transport)
        if self.collective != NATIVE:
            registry.entry("collective", self.collective)
        if transport.point_to_point == (self.collective == NATIVE) and not isinstance(self, TransferCase):
            wanted = "an algorithm (" + ", ".join(registry.names("collective")) + ")" if transport.point_to_point else f"{NATIVE!r}"
            raise ValueError(f"collective {self.collective!r} does not fit transport {self.transport!r}; it takes {wanted}")
        if (transport.launcher or "local") != self.launcher:
            raise ValueError(f"transport {self.transport!r} needs launcher {transport.launcher or 'local'!r}, not {self.launcher!r}")
        return self

    def canonical(self) -> str:
        """Canonical JSON: keys sorted, no spaces; the seed is no part of a case."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @property
    def case_id(self) -> str:
        """First 16 hex digits of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:16]


class TransferCase(CommonCase):
    """Ping-pong between rank 0 and rank 1 over message sizes in bytes; a sample is one round trip."""

    program: Literal["transfer"] = "transfer"
    ranks: Annotated[int, Field(ge=2)] = 2
    transport: str
    sizes: tuple[NonNegativeInt, ...]
    iterations: PositiveInt = 20
    warmup: NonNegativeInt = 3


class CollectiveCase(CommonCase):
    """One operation over array sizes in bytes (total array, as nccl-tests counts); a sample is one call on one rank."""

    program: Literal["collective"] = "collective"
    transport: str
    operation: Operation = "all_reduce"
    dtype: str = "float32"
    sizes: tuple[NonNegativeInt, ...]
    iterations: PositiveInt = 20
    warmup: NonNegativeInt = 3


class TrainCase(CommonCase):
    """Training steps. `minibatch` is global; `image_side` and `width` declare a reduction of the network (None and 1.0: layer-exact)."""

    program: Literal["train"] = "train"
    framework: str = "torch"
    strategy: str
    workload: str
    image_side: PositiveInt | None = None
    width: Annotated[float, Field(gt=0, le=1)] = 1.0
    minibatch: PositiveInt
    steps: PositiveInt
    warmup: NonNegativeInt = 2
    data: Literal["synthetic", "digits"] = "synthetic"
    learning_rate: PositiveFloat = 0.01
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    bucket_mib: PositiveFloat = 25.0
    evaluate_every: NonNegativeInt = 0

    @model_validator(mode="after")
    def _training_fits(self) -> TrainCase:
        registry.entry("strategy", self.strategy)
        registry.entry("workload", self.workload)
        registry.entry("framework", self.framework)
        if (self.transport is None) != (self.strategy == "local_only"):
            raise ValueError("strategy 'local_only' and no transport go together: give both or neither")
        if self.minibatch % self.ranks:
            raise ValueError(f"minibatch {self.minibatch} does not divide over {self.ranks} ranks")
        return self


Case = Annotated[TransferCase | CollectiveCase | TrainCase, Field(discriminator="program")]
_ADAPTER: TypeAdapter[TransferCase | CollectiveCase | TrainCase] = TypeAdapter(Case)


def parse_case(values: dict[str, Any]) -> TransferCase | CollectiveCase | TrainCase:
    """A case from its flat mapping; pydantic's ValidationError tells what is wrong."""
    return _ADAPTER.validate_python(values)
