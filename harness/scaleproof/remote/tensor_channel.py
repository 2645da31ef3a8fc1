"""A remote machine as a device with a memory (xue2019): tensors that cross between ranks are edges, a channel places them,
a mechanism moves them.

A channel is made once, by all ranks with the same list of edges. Then, per tensor: the sender asks `outgoing` where the
tensor should be born, `send`s it; the receiver `recv`s an array and `release`s it when it is done with it. Until then
the sender does not overwrite it. Between two ranks tensors are received in the order in which they were sent.
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
"""How a tensor reaches a peer: a transport's own messages; a request and an answer over a one-sided device; its writes
with a bounce buffer at both ends; its writes from and into tensors that were born in registered memory; a metadata
block, then a one-sided read."""


class NotStatic(TransportError):
    """A tensor does not have the shape that its edge promised."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One tensor that travels from rank `source` to rank `destination`, again and again. Edges of one source with the
    same name are one tensor that goes to several ranks: it is born once."""

    name: str
    source: int
    destination: int
    shape: tuple[int, ...]
    """Elements per dimension; of an edge that is not static the most there can be, with as many dimensions as every
    tensor on it has."""
    dtype: str = "float32"
    static: bool = True
    """Every tensor has exactly this shape; else shapes vary from send to send and travel with the tensor."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_hash", hash((self.name, self.source, self.destination, self.shape, self.dtype, self.static))
        )

    def __hash__(self) -> int:
        """Kept: an edge is a key in every call of a channel."""
        return self._hash

    @property
    def nbytes(self) -> int:
        """Bytes of the (largest) tensor."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(slots=True)
class TransferCounts:
    """What moving tensors took on this rank; the sum over both ends is a tensor's cost. Counted where it happens."""

    tensors: int = 0
    """Sent by this rank."""
    nbytes: int = 0
    """Payload of these."""
    copies: int = 0
    """Times that a mechanism copied a payload within this rank's memory."""
    copied_bytes: int = 0
    messages: int = 0
    """Messages before the receiver has the tensor: sends, one-sided writes and reads."""
    writes: int = 0
    """Those that are one-sided writes."""
    reads: int = 0
    """Those that are one-sided reads."""
    round_trips: int = 0
    """Times that this rank asked and needed the answer before the receiver had the tensor."""
    releases: int = 0
    """Messages after it: the receiver tells that memory is free again. Nobody who holds a tensor waits for these."""

    def __add__(self, other: TransferCounts) -> TransferCounts:
        return TransferCounts(
            *(getattr(self, item.name) + getattr(other, item.name) for item in fields(TransferCounts))
        )


@dataclass(slots=True)
class EdgeCounts:
    """Counts of one rank by edge; an edge counts at both of its ends."""

    edges: dict[Edge, TransferCounts] = field(default_factory=dict)

    def of(self, edge: Edge) -> TransferCounts:
        """The counters of an edge."""
        return self.edges.setdefault(edge, TransferCounts())

    @property
    def total(self) -> TransferCounts:
        """Sum over all edges."""
        return sum(self.edges.values(), TransferCounts())


class Arrival(Protocol):
    """A tensor on its way in."""

    def test(self) -> bool:
        """Look once, and advance without blocking; True when the tensor is here. What a scheduler that polls calls
        between other work."""

    def wait(self) -> Array:
        """Block until the tensor is here; the array is valid until `release`. Raises PeerLost."""


class TensorChannel(Protocol):
    """All edges of a launch under one mechanism. One thread at a time; whoever waits in it also answers what peers ask
    of this rank."""

    edges: tuple[Edge, ...]
    counts: EdgeCounts

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """Where the sender's tensor should be born: the array that `send` moves with the fewest copies. `shape` of this
        send where the edge is not static. Static: the same memory at every call, also for all edges of the tensor."""

    def incoming(self, edge: Edge) -> Array:
        """Where the receiver's tensor of a static edge arrives, the same memory every time; what holds it may be a view
        of it."""

    def send(self, edge: Edge, array: Array) -> Handle:
        """Start sending. The array may be written again when the handle is done. A tensor born elsewhere than
        `outgoing` says is taken too; what copies that needs is counted. One send per edge is under way at a time.
        Raises NotStatic."""

    def recv(self, edge: Edge) -> Arrival:
        """Start receiving the edge's next tensor; the one before must have been released."""

    def release(self, edge: Edge) -> None:
        """The receiver is done with the array: the sender may send the next."""

    def advance(self) -> None:
        """Move what can move, without blocking; for a rank that computes while its tensors wait."""

    def settle(self) -> None:
        """Return when all that this rank told its peers is written in their regions. Raises PeerLost."""

    def close(self) -> None:
        """Give the channel's memory back; the transport stays open. Only after all ranks have settled and met in a
        barrier: a late release would be written into memory that is somebody else's by then."""


@contextmanager
def shared_channel(
    mechanism: Mechanism, transport: Transport, edges: Sequence[Edge], context: RankContext
) -> Iterator[TensorChannel]:
    """A channel for as long as all ranks use it."""
    channel = open_channel(mechanism, transport, edges, context)
    yield channel
    channel.settle()
    transport.barrier()
    channel.close()


def open_channel(
    mechanism: Mechanism, transport: Transport, edges: Sequence[Edge], context: RankContext
) -> TensorChannel:
    """A collective call: all ranks with the same edges. Raises TransportError when the transport cannot do what the
    mechanism needs."""
    module = importlib.import_module(f"scaleproof.remote.{mechanism}_mechanism")
    channel: TensorChannel = module.connect(transport, tuple(edges), context)
    return channel
