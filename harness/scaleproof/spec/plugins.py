"""What the plugins of each kind say of themselves beside what all have (plugin.py)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from scaleproof.spec.faults import Name as FaultName
from scaleproof.spec.plugin import NONE as NONE
from scaleproof.spec.plugin import Kind as Kind
from scaleproof.spec.plugin import NameOf, Progress, accepts_any
from scaleproof.spec.plugin import Options as Options
from scaleproof.spec.plugin import Plugin as Plugin
from scaleproof.spec.plugin import loaded as loaded
from scaleproof.spec.replica_traits import ReplicaTraits

MESSAGE_MAILBOX = "scaleproof.transports.message_mailbox:MessageMailbox"
"""The mailbox over the sends and receives of any transport."""
ONE_SIDED_MAILBOX = "scaleproof.transports.one_sided_mailbox:OneSidedMailbox"
"""The same, with puts, gets and flags by the one-sided operations of a transport that exposes memory."""


class FusionOptions(Options):
    """Options of a transport that fuses tensors."""

    fusion_mib: float | None = Field(
        None,
        ge=0,
        description="Size of the buffer in which tensors are fused into one call, MiB; 0: off; null: the strategy "
        "packs buckets and the transport fuses nothing.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportPlugin(Plugin):
    """How bytes move."""

    kind = "transport"
    axis: str
    """Its value on the axis `transport` of the taxonomy."""
    point_to_point: bool = False
    """Sends and receives are all it has: collectives are lifted over them."""
    sends: bool = True
    """Has sends and receives; without them it cannot run program `transfer`."""
    one_sided: bool = False
    """Peers are devices with a memory: mechanisms other than `messages` need one."""
    own_memory: bool = False
    """Its `allocate` provides memory that it moves with fewer copies than plain memory: cases choose with `buffers`."""
    one_node: bool = False
    """Moves bytes through memory that ends at the node."""
    needs_framework: str | None = None
    """The framework that its library is built on, imported where the case names none."""
    within_node: Literal["memory", "loopback"] = "loopback"
    """How bytes move between ranks of one machine; a noise floor belongs to one of them."""
    pinned_bytes: Callable[[Any, int], int] | None = None
    """Bytes that a rank of a case locks (limit `memlock`), with so many ranks on its node; None: it locks none."""
    progress: Progress = "background"
    """Who moves the bytes of a call under way: the caller inside wait and test, or a thread of the library's own."""
    moves_in_wait: bool = False
    """Large sends move only while the caller waits or tests: what a server gets leaves behind the backward pass."""
    eager_to_socket: bool = False
    """A send is done when the socket's buffer has taken it, so that senders run ahead of receivers."""
    channels: bool = False
    """A process may connect it several times at once, a thread each, as option `channels` of strategies asks for."""
    mailbox: str | None = None
    """`module:class` of its mailbox (transports/mailbox.py), which rank programs need: MESSAGE_MAILBOX,
    ONE_SIDED_MAILBOX, or one of its own."""
    no_mailbox: str = ""
    """Why it has none."""
    stated_costs: str = ""
    """File beside its own with its costs where nothing was measured (docs/costs.md); empty: simulate/stated.yaml."""
    polls: bool = False
    """A rank that waits for a message keeps its core busy: processor time does not say what messages take."""
    message_threads: int = 1
    """Threads of a process that move its messages at once; 1 also where Python's lock lets one work at a time."""
    calls_between_gpus: bool = False
    """Its collectives run between GPUs as NCCL's do: nodes with GPUs are simulated by its model (docs/nccl.md)."""
    launcher: str = "local"
    """The launcher that it needs."""
    bears: frozenset[FaultName] = frozenset()
    """Faults of a peer that take nothing but the connections with it: kill, and replace where a successor can join."""

    @property
    def fuses(self) -> bool:
        """Fuses tensors itself where the case says so."""
        return issubclass(self.options, FusionOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectivePlugin(Plugin):
    """An algorithm over point-to-point sends and receives."""

    kind = "collective"
    exchange: str = "all-reduce"
    """Its value on the axis `parameter_exchange`."""
    topology: str = "replicated-PS"
    """Its value on the axis `topology`."""
    rounds_are_alike: bool = False
    """In every round of all_reduce, reduce_scatter and all_gather each rank sends one equal part to the next rank: the
    simulator multiplies one round in place of listing all messages."""
    exchanges: bool = False
    """Two ranks send each other the same elements in one round, so that each must keep a copy: not over memory that all
    ranks map."""
    knows_nodes: bool = False
    """Its schedule depends on the number of nodes, so that it runs over all ranks only, not inside a group of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyPlugin(Plugin):
    """How replicas stay in step."""

    kind = "strategy"
    communicates: bool = True
    """False: a control arm that needs no transport."""
    collective_calls: bool = True
    """Exchanges by collectives, so that the case's algorithm is what moves the bytes."""
    has_servers: bool = False
    """Some ranks are parameter servers: option `servers`, 0 for one on every rank."""
    divides_update: bool = False
    """Every rank steps only a part of the parameters."""
    divides_layers: bool = False
    """Fully connected layers are divided over the ranks of a group."""
    communicates_beside_compute: bool = False
    """Makes calls during the backward pass: by a thread of its own, unless option `communication` says `main` or the
    transport fuses."""
    rank_program: ReplicaTraits | None = None
    """Of a program of each rank (strategies/replica.py), which needs a mailbox in place of collectives."""
    simulated_step: Callable[..., Generator[Any, Any, Any]] | None = None
    """A step after the forward pass as effects (strategies/step_program.py); None: it is not simulated."""
    simulated_plan: Callable[..., Any] | None = None
    """What it exchanges in a step; None: buckets that all ranks hold."""
    simulated_passes: Callable[..., Generator[Any, Any, Any]] | None = None
    """Adds the calls that the forward and backward passes wait for."""
    tags: Callable[[Any], Mapping[str, str]] | None = None
    """Its values on the axes of the taxonomy for a case (spec/tags.py: `synchronous_tags`); None: none applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPlugin(Plugin):
    """What every rank runs."""

    kind = "program"
    case: type[Any]
    """The form of its cases: a subclass of CommonCase."""
    network: Callable[[Any], Any] | None = None
    """The network that its cases train, from which time and memory are estimated; None: none."""
    check_resolved: Callable[[Any], None] = accepts_any
    """Raises FieldError for what only a planned case can show, as a data set that does not fit its network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricPlugin(Plugin):
    """The network that the ranks stand on."""

    kind = "fabric"
    evidence: Literal["measured", "emulated", "simulated"] = "measured"
    predicted: bool = False
    """Nothing is started: the simulator predicts the record."""
    makes_nodes: bool = False
    """Nodes are made for the launch and taken away after it."""
    own_kernels: bool = False
    """Every node has a kernel of its own: the supervisor maps none of its memory and sees none of its processes."""
    slows_links: bool = False
    """Link rates and delays follow a case's `dilation` and `shrink`."""
    interface: str = "lo"
    """The interface that ranks bind where the case names none."""
    starter: str = ""
    """`module:class` of what starts ranks on nodes that it makes, around the case's launcher."""
    node_per_rank: bool = False
    """A case that names no number of nodes has one for each rank."""

    @property
    def existing_network(self) -> bool:
        """Ranks run on a network that is there without the launch: of this machine, or of an allocation's nodes."""
        return not (self.predicted or self.makes_nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherPlugin(Plugin):
    """Who starts the ranks."""

    kind = "launcher"
    process_per_rank: bool = False
    """Every rank is a process of its own from the start, so that each pays for imports."""
    substitutes: str = ""
    """Another launcher, whose transports also run under this one."""
    outlives_ranks: bool = False
    """A rank that is killed does not end the others, and a successor can be started."""


class WorkloadOptions(Options):
    """A network with what reduces it. Layer-exact: no `image_side`, width 1."""

    image_side: int | None = Field(None, gt=0, description="Side of the input images in pixels; null: the paper's.")
    width: float = Field(1.0, gt=0, le=1, description="Share of every layer's width that is kept.")
    data: Annotated[str, NameOf("dataset")] = Field(
        "synthetic",
        description="Training data: random tensors of the true shape, or a data set that can be learned.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPlugin(Plugin):
    """A network with its data."""

    kind = "workload"
    options: type[Options] = WorkloadOptions
    title: str = ""
    """As the papers write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPlugin(Plugin):
    """Data that networks train on."""

    kind = "dataset"
    target: float | None = None
    """Test accuracy that counts as learned; None: nothing can be learned from these data, they are for timing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkPlugin(Plugin):
    """What computes forward and backward passes."""

    kind = "framework"
    gradients_one_by_one: bool = True
    """Tells when each gradient is final, so that its exchange can begin within the backward pass."""
    own_optimiser_memory: bool = False
    """Parameters lie where the framework puts them: no part of them can be stepped alone."""
    stacked: str = ""
    """`module:class` of its model of many replicas (workloads/stacked_contract.py); empty: it has none."""
    stage: str = ""
    """`module:class` of its stage of a pipeline (workloads/stage_contract.py); empty: it has none."""
    import_s: float = 0.5
    """Seconds from the start of a process to its first step, about."""
    resident_bytes: int = 100 * 2**20
    """Memory of a process that has imported it, about."""


KINDS: dict[Kind, type[Plugin]] = {
    plugin.kind: plugin
    for plugin in (
        TransportPlugin,
        CollectivePlugin,
        StrategyPlugin,
        ProgramPlugin,
        FabricPlugin,
        LauncherPlugin,
        WorkloadPlugin,
        DatasetPlugin,
        FrameworkPlugin,
    )
}
