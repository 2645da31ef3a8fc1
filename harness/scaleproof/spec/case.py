"""A case: one fully resolved, flat configuration. Its id is the hash of its canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    TypeAdapter,
    model_validator,
)

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.spec.fits import (
    NATIVE,
    division_fits,
    exchange_fits,
    names_fit,
    network_fits,
    servers_fit,
    training_fits,
)

Operation = Literal["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
Mechanism = Literal["messages", "rpc", "copy", "zero_copy", "dynamic"]
"""How a tensor reaches a peer: a transport's own messages; a request and an answer over a one-sided device; its writes
with a bounce buffer at both ends; its writes from and into tensors that were born in registered memory; a metadata
block, then a one-sided read (remote/)."""
NODES_OF_OWN = {"guests": "eth0", "netns": "eth0", "simulated": "eth0"}
"""Fabrics whose nodes are made for the launch, and the interface of such a node."""


_LATER = frozenset(
    {
        "budget_mib",
        "nodes",
        "guest",
        "link_mbit",
        "link_delay_ms",
        "fusion_mib",
        "region_mib",
        "mechanism",
        "servers",
        "cluster",
        "node_cores",
        "dilation",
        "shrink",
        "profile",
        "efficiency",
        "groups",
        "communication",
        "costs",
        "channels",
        "bucket_order",
        "forward_waits",
    }
)
"""Fields that earlier versions did not have."""


def _registered(kind: registry.Kind, *also: str) -> AfterValidator:
    def check(name: str) -> str:
        if name not in also:
            registry.entry(kind, name, also)
        return name

    return AfterValidator(check)


Transport = Annotated[str, _registered("transport")]


class CommonCase(BaseModel):
    """What every program's case holds. `collective` is an algorithm's name over a transport's sends and receives, or
    `native` for its own collectives."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    suite: str
    experiment: str
    arm: str
    ranks: PositiveInt
    transport: Transport | None = None
    collective: Annotated[str, _registered("collective", NATIVE)] = NATIVE
    fabric: Annotated[str, _registered("fabric")] = "host"
    launcher: Annotated[str, _registered("launcher")] = "local"
    interface: str = "lo"
    nodes: PositiveInt = 1
    """Nodes of the fabric; rank r stands on node r * nodes // ranks."""
    guest: Literal["uml", "qemu"] = "uml"
    """What boots a node of fabric guests: User-Mode Linux, or QEMU with a stock kernel."""
    link_mbit: PositiveFloat | None = None
    """Rate set on every link of the fabric, Mbit/s; None: as fast as it goes."""
    link_delay_ms: NonNegativeFloat = 0.0
    """Delay from node to node, one way, ms; of the two links of a star each has half of it."""
    cluster: str | None = None
    """Nodes and links that the fabric builds: a name in clusters/, or a file's path; None: one switch, links as
    link_mbit and link_delay_ms say."""
    node_cores: PositiveFloat | None = None
    """Processor time that each node of fabric netns gets, in cores; None: as much as there is."""
    dilation: Annotated[float, Field(ge=1)] = 1.0
    """Replayed compute and link delays last longer, and link rates are lower, by this factor; metrics divide times by
    it."""
    shrink: Annotated[float, Field(ge=1)] = 1.0
    """Tensors are smaller and link rates lower by this factor; metrics multiply bytes by it."""
    costs: Literal["fitted", "stated"] | None = None
    """Fabric simulated: alpha, beta and gamma as `scaleproof fit` found them on this machine, or as stated in ranges
    for hardware that is not here; None: stated where `profile` names a node type or nothing was fitted, else fitted."""
    fusion_mib: NonNegativeFloat | None = None
    """Tensor fusion of a transport that has it (Horovod, MultiWorkerMirroredStrategy), MiB; 0: off; None: strategies
    bucket, the transport does not."""
    region_mib: PositiveFloat | None = None
    """Memory that each rank registers with its device (transport rdma), MiB; None: a quarter of the node's, shared by
    its ranks, at most 1 GiB each."""
    threads_per_rank: PositiveInt = 1
    tracing: Literal["none", "full"] = "none"
    """`full` records every message of the engine too; such launches feed traces, never throughput or latency."""
    handicap: Annotated[float, Field(ge=0, le=1)] = 0.0
    """An injected slowdown: every timed sample lasts longer by this share of itself. Calibration checks with it that a
    slowdown is found."""

    @model_validator(mode="before")
    @classmethod
    def _no_truth_values(cls, values: Any) -> Any:
        wrong = [name for name, value in values.items() if isinstance(value, bool)] if isinstance(values, dict) else []
        if wrong:  # pydantic takes them as the numbers 0 and 1
            raise FieldError(wrong[0], f"{str(values[wrong[0]]).lower()} is neither a number nor a name")
        return values

    @model_validator(mode="before")
    @classmethod
    def _interface_of_nodes(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("fabric") not in NODES_OF_OWN:
            return values
        ranks = values.get("ranks", cls.model_fields["ranks"].get_default())
        everywhere = {"nodes": ranks} if values["fabric"] != "guests" and isinstance(ranks, int) else {}
        return {"interface": NODES_OF_OWN[values["fabric"]], **everywhere, **values}

    @model_validator(mode="after")
    def _fields_fit(self) -> CommonCase:
        names_fit(
            self, sends_only=isinstance(self, TransferCase) or (isinstance(self, OwnCase) and self.collective == NATIVE)
        )
        network_fits(self)
        return self

    def canonical(self) -> str:
        """Canonical JSON: keys sorted, no spaces; the seed is no part of a case. A field that came later is left out at
        its default, so that the case of an earlier version keeps its identity."""
        values = self.model_dump(mode="json")
        shown = {
            name: value
            for name, value in values.items()
            if name not in _LATER or value != type(self).model_fields[name].default
        }
        return json.dumps(shown, sort_keys=True, separators=(",", ":"))

    @property
    def case_id(self) -> str:
        """First 16 hex digits of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:16]


Budget = PositiveFloat | None
"""MiB that the timed iterations of one message size move at most: larger sizes get fewer of the case's iterations, at
least 5, so that a launch over many sizes stays short; None: as many at every size."""


class TransferCase(CommonCase):
    """Ping-pong between rank 0 and rank 1 over message sizes in bytes; a sample is one round trip."""

    program: Literal["transfer"] = "transfer"
    ranks: Annotated[int, Field(ge=2)] = 2
    transport: Transport
    sizes: Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
    iterations: PositiveInt = 20
    warmup: NonNegativeInt = 3
    budget_mib: Budget = None

    @model_validator(mode="after")
    def _can_send(self) -> TransferCase:
        if not registry.entry("transport", self.transport).sends:
            raise FieldError(
                "transport",
                f"{self.transport!r} has collectives only, no sends and receives; it cannot run program 'transfer'",
            )
        return self


class CollectiveCase(CommonCase):
    """One operation over array sizes in bytes (total array, as nccl-tests counts); a sample is one call on one rank."""

    program: Literal["collective"] = "collective"
    transport: Transport
    operation: Operation = "all_reduce"
    dtype: str = "float32"
    sizes: Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
    iterations: PositiveInt = 20
    warmup: NonNegativeInt = 3
    budget_mib: Budget = None


class TrainCase(CommonCase):
    """Training steps. `minibatch` is global; `image_side` and `width` declare a reduction of the network (None and 1.0:
    layer-exact)."""

    program: Literal["train"] = "train"
    framework: Annotated[str, _registered("framework")] = "torch"
    strategy: Annotated[str, _registered("strategy")]
    workload: Annotated[str, _registered("workload")]
    image_side: PositiveInt | None = None
    width: Annotated[float, Field(gt=0, le=1)] = 1.0
    minibatch: PositiveInt
    steps: PositiveInt
    warmup: NonNegativeInt = 2
    data: Literal["synthetic", "digits", "reversal", "topics"] = "synthetic"
    learning_rate: PositiveFloat = 0.01
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    bucket_mib: PositiveFloat = 25.0
    compute: Literal["real", "none", "replay"] = "real"
    """`none`: no forward or backward pass, gradients stay as they are; the control arm that shows communication alone.
    `replay`: each layer's time, as profiled, is slept; gradients are ready when they would be."""
    profile: str | None = None
    """Whose compute is replayed or simulated: a node type of clusters/nodes.yaml by its peak rate; None: this
    machine's, as `scaleproof profile` found it."""
    efficiency: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of that peak rate which compute reaches."""
    mechanism: Mechanism = "messages"
    """How a parameter server's tensors travel."""
    servers: NonNegativeInt = 0
    """Parameter servers, on the first ranks, parameters round-robin over them; 0: one on every rank."""
    groups: NonNegativeInt = 0
    """Groups of strategy hybrid: fully connected layers are divided over the ranks of a group, minibatches over groups;
    0: as many as send the fewest bytes."""
    communication: Literal["thread", "main"] = "thread"
    """Who makes a strategy's calls beside the backward pass: a thread with a queue of commands, or the main thread,
    which looks again between two layers."""
    channels: PositiveInt = 1
    """Fabric simulated: calls of a rank that move side by side, bucket n on channel n mod channels."""
    bucket_order: Literal["ready", "front_first"] = "ready"
    """Fabric simulated: buckets go as they get ready, or of those that are ready on all ranks the one of the foremost
    layer first."""
    forward_waits: Literal["step", "layer"] = "step"
    """Fabric simulated: a step begins when all gradients of the one before are exchanged, or each layer's forward pass
    when its own are."""
    evaluate_every: NonNegativeInt = 0

    @model_validator(mode="after")
    def _training_fits(self) -> TrainCase:
        training_fits(self)
        servers_fit(self)
        division_fits(self)
        exchange_fits(self)
        return self


class OwnCase(CommonCase):
    """A suite's own program: every rank calls `run(context)` of the suite's `programs/<entry>.py`. `options` are what
    only that program knows."""

    program: Literal["own"] = "own"
    entry: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    source: str = ""
    """Digest of the suite's folder `programs`, filled in by the harness: another program is another case."""
    options: dict[str, str | int | float] = {}
    sizes: tuple[NonNegativeInt, ...] = ()
    iterations: PositiveInt = 20
    warmup: NonNegativeInt = 3
    budget_mib: Budget = None


AnyCase = TransferCase | CollectiveCase | TrainCase | OwnCase
Case = Annotated[AnyCase, Field(discriminator="program")]
_ADAPTER: TypeAdapter[AnyCase] = TypeAdapter(Case)


def parse_case(values: dict[str, Any]) -> AnyCase:
    """A case from its flat mapping; pydantic's ValidationError tells what is wrong."""
    return _ADAPTER.validate_python(values)
