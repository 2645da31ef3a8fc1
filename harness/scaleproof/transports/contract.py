"""The interface of a transport: endpoints, handles, capabilities, and counters of its traffic.

Buffers are C-contiguous NumPy arrays. Sizes are in bytes unless a docstring says elements. A call that cannot be
completed raises TransportError, or PeerLost (a TransportError) when the peer has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, Self, runtime_checkable

import numpy as np

from scaleproof.core.transport_errors import TransportError

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

ReduceOperation = Literal["sum", "max"]
Array = np.ndarray
Reducing = Callable[..., np.ndarray]
"""Of two arrays into `out`: a NumPy function, or one that takes longer (programs/replayed_reduction.py)."""
UFUNCS: dict[ReduceOperation, Reducing] = {"sum": np.add, "max": np.maximum}
"""The function that reduces one array into another, by operation."""
REAL_DTYPES = frozenset(
    ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
"""NumPy's real types, for transports whose messages are plain bytes and whose reductions are NumPy's."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a transport can do. `dtypes`: names of NumPy's types. `progress`: whether the bytes are moved by the caller
    in `wait` and `test`, or by a thread of the library. `library`: name and version of the loaded library that moves
    the bytes."""

    point_to_point: bool
    one_sided: bool
    collective: bool
    dtypes: frozenset[str]
    progress: Literal["caller", "background"]
    path: Literal["shared memory", "socket", "verbs", "library's choice"]
    library: str


@dataclass(slots=True)
class Traffic:
    """Bytes and messages that this rank has sent by the transport; a barrier counts as a message of zero bytes."""

    nbytes: int = 0
    messages: int = 0

    def count(self, nbytes: int) -> None:
        """Count one message."""
        self.nbytes += nbytes
        self.messages += 1


class Handle(Protocol):
    """A call in progress. The buffer belongs to the transport until `wait` has returned or `test` has returned True."""

    def test(self) -> bool:
        """Make progress without blocking; True when done. Raises PeerLost or TransportError."""

    def wait(self) -> None:
        """Block until done. Raises PeerLost or TransportError."""


class Done:
    """The handle of a call that has already finished."""

    def test(self) -> bool:
        """Always True."""
        return True

    def wait(self) -> None:
        """Return immediately."""


@dataclass(slots=True)
class Region:
    """Memory of one rank that its peers may write and read. `offset`: its start, relative to a base that the transport
    defines. `local`: its bytes as a flat uint8 array; None for a peer's region that is not mapped in this process."""

    rank: int
    offset: int
    nbytes: int
    local: Array | None = field(default=None, repr=False)

    def check_inside(self, offset: int, nbytes: int) -> None:
        """Raises TransportError where `nbytes` at an offset are outside of the region."""
        if offset < 0 or offset + nbytes > self.nbytes:
            raise TransportError(f"bytes [{offset}, {offset + nbytes}) are outside of a region of {self.nbytes} bytes")


@runtime_checkable
class Transport(Protocol):
    """The part of the interface that every transport has. Transports are made by `connect`."""

    capabilities: Capabilities
    rank: int
    world_size: int
    traffic: Traffic

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """Join all ranks of the launch. Raises TransportError when a peer does not join."""

    def allocate(self, nbytes: int) -> Array:
        """A flat uint8 array of `nbytes`, not zeroed, in the memory that this transport moves fastest (registered or
        shared), or in plain memory if it has none. Raises RegionExhausted when that memory is full."""

    def barrier(self) -> None:
        """Return when all ranks have called it. Raises PeerLost."""

    def close(self) -> None:
        """Release connections, regions and threads, and leave nothing behind. Closing twice does nothing."""


class PointToPoint(Transport, Protocol):
    """Messages between two ranks, in order per (source, destination). Buffers may have any shape and any declared dtype
    and may be empty. Both sides state the same number of bytes; otherwise one of them raises TransportError."""

    def send(self, buffer: Array, peer: int) -> Handle:
        """Start sending all bytes of the buffer."""

    def recv(self, buffer: Array, peer: int) -> Handle:
        """Start receiving exactly as many bytes as the buffer has."""


class OneSided(PointToPoint, Protocol):
    """Peers whose memory can be written and read without their help (xue2019): regions, one-sided writes and reads. Two
    ways tell a peer that bytes have arrived: a flag for each region and writing rank (`set_flag`, `poll_flag`), and a
    word at the end of a message (`write_flagged`, `poll_word`). Bytes outside of a region raise TransportError."""

    def register(self, nbytes: int) -> Region:
        """Collective call: every rank registers a region of `nbytes`, zeroed. Returns this rank's region. Raises
        RegionExhausted."""

    def deregister(self, region: Region) -> None:
        """Release a region of this rank. No rank may use it or its counterparts afterwards."""

    def remote(self, region: Region, peer: int) -> Region:
        """The peer's counterpart of a region of this rank."""

    def write(self, source: Array, target: Region, offset: int = 0) -> Handle:
        """Write all bytes of `source` at `offset` of a peer's region, without the peer's help."""

    def read(self, source: Region, target: Array, offset: int = 0) -> Handle:
        """Read as many bytes as `target` has from `offset` of a peer's region, without the peer's help."""

    def set_flag(self, target: Region, value: int) -> None:
        """Publish a flag after everything that was written before it: a uint64 for each region and writing rank."""

    def poll_flag(self, region: Region, writer: int) -> int:
        """The latest flag that `writer` set on this rank's region; 0 before the first."""

    def write_flagged(self, source: Array, target: Region, offset: int, value: int) -> Handle:
        """Write bytes followed by the uint64 `value`, as one message: a rank that sees the value sees all bytes.

        `source` has a multiple of 8 bytes, possibly none, and must not change before the handle is done. `offset` is a
        multiple of 8, relative to the region.
        """

    def poll_word(self, region: Region, offset: int) -> int:
        """The current uint64 at an offset of this rank's region, after the progress that the library needs to make a
        peer's write visible."""

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """Call `ready` until it returns True. `peer` is the rank that has to make it true: raises PeerLost if it ends
        before that."""


@runtime_checkable
class ShortMessages(Protocol):
    """Optional for a one-sided transport: short messages into receive requests that are posted in advance, apart from
    `send` and `recv`. RPC uses them."""

    def post_message(self, message: bytes, peer: int) -> None:
        """Send up to 256 bytes (a two-sided SEND), in order per peer. At most one message to a peer may be in
        progress."""

    def next_message(self, peer: int) -> bytes | None:
        """The peer's oldest message that has not been returned; None if there is none."""


BufferUse = Literal["message", "collective"]
"""What a buffer is passed to: `send`, or a collective that accesses it where it is."""


class PeerMemory(Protocol):
    """Plain memory of other ranks, which the kernel copies from and to. A copy is prepared once and made by every
    call; it raises PeerLost when the peer has ended."""

    def suits(self, nbytes: int, use: BufferUse) -> bool:
        """Whether a buffer of this size is moved faster so than through shared memory, in this use."""

    def reader(self, peer: int, address: int, target: Array) -> Callable[..., None]:
        """A copy from an address of a peer into an array of this rank, which must stay where it is."""

    def writer(self, peer: int, address: int, source: Array) -> Callable[..., None]:
        """A copy from an array of this rank, which must stay where it is, to an address of a peer."""

    def part(self, members: Sequence[int]) -> PeerMemory:
        """The memories of some ranks, in the order of their new numbers."""


@runtime_checkable
class Mapped(Protocol):
    """Optional for a one-sided transport: peers' memory is mapped in this process, so that collectives need no copies
    between ranks' buffers."""

    rank: int
    world_size: int
    traffic: Traffic
    private_memory: PeerMemory | None
    """For buffers outside of the shared memory; None where the kernel does not let ranks copy from each other."""

    def register(self, nbytes: int) -> Region:
        """See OneSided.register."""

    def remote(self, region: Region, peer: int) -> Region:
        """See OneSided.remote; `local` is set."""

    def allocate(self, nbytes: int) -> Array:
        """See Transport.allocate."""

    def locate(self, buffer: Array) -> int | None:
        """Offset of a buffer in this rank's shared memory, in bytes; None if it is elsewhere."""

    def memory(self, rank: int) -> Array:
        """All bytes of a rank's memory as a flat uint8 array, mapped in this process."""

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See OneSided.wait_for."""


class Collectives(Protocol):
    """The interface that strategies and programs call: a collective transport, or a Group that implements collectives
    over a point-to-point transport (collectives/group.py). All ranks make the same calls in the same order. Buffers are
    flat and of a declared dtype, with equal size and dtype on all ranks; a wrong dtype raises TransportError."""

    rank: int
    world_size: int
    capabilities: Capabilities

    @property
    def traffic(self) -> Traffic:
        """What this rank has sent so far."""

    def allocate(self, nbytes: int) -> Array:
        """See Transport.allocate."""

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """Reduce in place over all ranks; every rank gets the result."""

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """Sum `source` (world_size * n elements) over all ranks; rank r gets elements [r*n, (r+1)*n) in `target` (n
        elements)."""

    def all_gather(self, source: Array, target: Array) -> Handle:
        """Gather every rank's `source` (n elements) in `target` (world_size * n elements), in the order of ranks."""

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """Copy the root's buffer into every rank's buffer."""

    def barrier(self) -> None:
        """See Transport.barrier."""

    def close(self) -> None:
        """Close the underlying transport."""
