"""A remote machine as a device with a memory (xue2019): an edge is a tensor that one rank sends to another, a channel
places the tensors of its edges in memory, and a mechanism moves them.

A channel is opened once, by all ranks with the same list of edges. Then, per tensor: the sender computes it into the
array that `outgoing` returns and sends it with `send`; the receiver gets an array from `recv` and calls `release` when
it no longer needs it. Until then the sender does not overwrite it. Tensors between two ranks are received in the order
in which they were sent.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports.contract import Array, Handle, Transport

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

Mechanism = Literal["messages", "rpc", "copy", "zero_copy", "dynamic"]
"""How a tensor is moved. `messages`: the transport's sends and receives; `rpc`: request and answer over a one-sided
device; `copy`: one-sided writes with a bounce buffer at both ends; `zero_copy`: one-sided writes between tensors in
registered memory; `dynamic`: a metadata block, then a one-sided read."""


class NotStatic(TransportError):
    """A tensor does not have the shape that its edge declares."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor that rank `source` repeatedly sends to rank `destination`. Edges of one source with the same name are
    one tensor, sent to several ranks from one buffer."""

    name: str
    source: int
    destination: int
    shape: tuple[int, ...]
    """Elements per dimension; for an edge that is not static their maximum. The number of dimensions is fixed."""
    dtype: str = "float32"
    static: bool = True
    """Whether every tensor has exactly this shape; if not, shapes vary and are sent with each tensor."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_hash", hash((self.name, self.source, self.destination, self.shape, self.dtype, self.static))
        )

    def __hash__(self) -> int:
        """Computed once: an edge is a dictionary key in every call of a channel."""
        return self._hash

    @property
    def nbytes(self) -> int:
        """Bytes of the (largest) tensor."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(slots=True)
class TransferCounts:
    """Work of this rank for the tensors of an edge. The sum over both ends is the cost of a tensor."""

    tensors: int = 0
    """Tensors sent by this rank."""
    nbytes: int = 0
    """Payload of these tensors."""
    copies: int = 0
    """Copies of a payload that the mechanism makes in this rank's memory."""
    copied_bytes: int = 0
    messages: int = 0
    """Messages until the receiver has the tensor: sends, one-sided writes and reads."""
    writes: int = 0
    """Messages that are one-sided writes."""
    reads: int = 0
    """Messages that are one-sided reads."""
    round_trips: int = 0
    """Requests of this rank whose answer was needed before the receiver had the tensor."""
    releases: int = 0
    """Messages by which the receiver reports free memory afterwards. No receiver waits for them."""

    def __add__(self, other: TransferCounts) -> TransferCounts:
        return TransferCounts(
            *(getattr(self, item.name) + getattr(other, item.name) for item in fields(TransferCounts))
        )


@dataclass(slots=True)
class EdgeCounts:
    """Counts of one rank by edge. Each end of an edge has its own counts."""

    edges: dict[Edge, TransferCounts] = field(default_factory=dict)

    def of(self, edge: Edge) -> TransferCounts:
        """The counters of an edge."""
        return self.edges.setdefault(edge, TransferCounts())

    @property
    def total(self) -> TransferCounts:
        """Sum over all edges."""
        return sum(self.edges.values(), TransferCounts())


class Arrival(Protocol):
    """A tensor that is being received."""

    def test(self) -> bool:
        """Make progress without blocking; True when the tensor has arrived. A polling scheduler calls it between other
        work."""

    def wait(self) -> Array:
        """Block until the tensor has arrived; the array is valid until `release`. Raises PeerLost."""


class TensorChannel(Protocol):
    """All edges of a launch under one mechanism. One thread at a time may call it; a call that waits also answers
    requests of peers."""

    edges: tuple[Edge, ...]
    counts: EdgeCounts

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """The array in which the sender should compute its tensor, so that `send` needs the fewest copies. `shape`:
        shape of this tensor if the edge is not static. A static edge has the same memory at every call and for all
        edges of the tensor."""

    def incoming(self, edge: Edge) -> Array:
        """The array in which tensors of a static edge arrive: the same memory every time."""

    def send(self, edge: Edge, array: Array) -> Handle:
        """Start sending. The array may be overwritten when the handle is done. An array other than that of `outgoing`
        takes a copy, which is counted. Only one send per edge may be in progress. Raises NotStatic, TransportError."""

    def recv(self, edge: Edge) -> Arrival:
        """Start receiving the edge's next tensor; the previous one must have been released."""

    def release(self, edge: Edge) -> None:
        """The receiver no longer needs the array; the sender may send the next tensor."""

    def advance(self) -> None:
        """Make progress without blocking, for a rank that computes while its tensors wait."""

    def settle(self) -> None:
        """Return when everything that this rank reported to its peers is written in their regions. Raises PeerLost."""

    def close(self) -> None:
        """Free the channel's memory; the transport stays open. Before, all ranks must have called `settle` and passed a
        barrier, because a late release would be written into memory that is in use again."""


@contextmanager
def shared_channel(
    mechanism: Mechanism, transport: Transport, edges: Sequence[Edge], context: RankContext
) -> Iterator[TensorChannel]:
    """A channel that is closed when all ranks have finished using it."""
    channel = open_channel(mechanism, transport, edges, context)
    yield channel
    channel.settle()
    transport.barrier()
    channel.close()


def open_channel(
    mechanism: Mechanism, transport: Transport, edges: Sequence[Edge], context: RankContext
) -> TensorChannel:
    """Collective call: all ranks pass the same edges. Raises TransportError when the transport does not support the
    mechanism."""
    module = importlib.import_module(f"scaleproof.remote.{mechanism}_mechanism")
    channel: TensorChannel = module.connect(transport, tuple(edges), context)
    return channel
