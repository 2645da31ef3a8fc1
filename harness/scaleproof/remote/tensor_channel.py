"""A remote machine as a device with a memory (xue2019): tensors that cross between ranks are edges, a channel places
them, and a mechanism moves them.

A channel is opened once, by all ranks with the same list of edges. Then, per tensor: the sender computes it into the
array that `outgoing` returns and sends it with `send`; the receiver gets an array from `recv` and calls `release` when
it no longer needs it. Until then the sender does not overwrite it. Between two ranks tensors are received in the order
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
"""How a tensor reaches a peer: a transport's own messages; a request and an answer over a one-sided device; its writes
with a bounce buffer at both ends; its writes from and into tensors that were born in registered memory; a metadata
block, then a one-sided read."""


class NotStatic(TransportError):
    """A tensor does not have the shape that its edge declares."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One tensor that travels from rank `source` to rank `destination`, again and again. Edges of one source with the
    same name are one tensor that is sent to several ranks from one buffer."""

    name: str
    source: int
    destination: int
    shape: tuple[int, ...]
    """Elements per dimension. Of an edge that is not static: the maximum, with the number of dimensions of every tensor
    on it."""
    dtype: str = "float32"
    static: bool = True
    """Whether every tensor has exactly this shape; else shapes vary from send to send and travel with the tensor."""
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
    """Work of this rank for the tensors of an edge; the sum over both ends is a tensor's cost."""

    tensors: int = 0
    """Sent by this rank."""
    nbytes: int = 0
    """Payload of these."""
    copies: int = 0
    """Copies of a payload within this rank's memory by the mechanism."""
    copied_bytes: int = 0
    messages: int = 0
    """Messages before the receiver has the tensor: sends, one-sided writes and reads."""
    writes: int = 0
    """Messages that are one-sided writes."""
    reads: int = 0
    """Messages that are one-sided reads."""
    round_trips: int = 0
    """Requests of this rank whose answer was needed before the receiver had the tensor."""
    releases: int = 0
    """Messages after that, by which the receiver reports free memory. No receiver of a tensor waits for them."""

    def __add__(self, other: TransferCounts) -> TransferCounts:
        return TransferCounts(
            *(getattr(self, item.name) + getattr(other, item.name) for item in fields(TransferCounts))
        )


@dataclass(slots=True)
class EdgeCounts:
    """Counts of one rank by edge; both ends of an edge count."""

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
        """The array in which the sender should compute its tensor, so that `send` needs the fewest copies. `shape`: of
        this send where the edge is not static. Static edges get the same memory at every call and for all edges of the
        tensor."""

    def incoming(self, edge: Edge) -> Array:
        """The array in which the receiver's tensor of a static edge arrives: the same memory every time."""

    def send(self, edge: Edge, array: Array) -> Handle:
        """Start sending. The array may be written again when the handle is done. An array other than that of `outgoing`
        costs a copy, which is counted. At most one send per edge may be under way. Raises NotStatic, TransportError."""

    def recv(self, edge: Edge) -> Arrival:
        """Start handle the edge's next tensor; the one before must have been released."""

    def release(self, edge: Edge) -> None:
        """The receiver no longer needs the array; the sender may send the next tensor."""

    def advance(self) -> None:
        """Make progress without blocking, for a rank that computes while its tensors wait."""

    def settle(self) -> None:
        """Return when everything that this rank reported to its peers is written in their regions. Raises PeerLost."""

    def close(self) -> None:
        """Release the channel's memory; the transport stays open. All ranks must have settled and met in a barrier
        before: a late release would be written into memory that is reused by then."""


@contextmanager
def shared_channel(
    mechanism: Mechanism, transport: Transport, edges: Sequence[Edge], context: RankContext
) -> Iterator[TensorChannel]:
    """A channel that is closed when all ranks have finished with it."""
    channel = open_channel(mechanism, transport, edges, context)
    yield channel
    channel.settle()
    transport.barrier()
    channel.close()


def open_channel(
    mechanism: Mechanism, transport: Transport, edges: Sequence[Edge], context: RankContext
) -> TensorChannel:
    """Collective call: all ranks pass the same edges. Raises TransportError when the transport lacks what the mechanism
    needs."""
    module = importlib.import_module(f"scaleproof.remote.{mechanism}_mechanism")
    channel: TensorChannel = module.connect(transport, tuple(edges), context)
    return channel
