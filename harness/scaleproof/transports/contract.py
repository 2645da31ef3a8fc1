"""Contract of a transport: endpoints, handles, capabilities, and the traffic that a transport counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, Self, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

ReduceOperation = Literal["sum", "max"]
Array = np.ndarray
UFUNCS: dict[ReduceOperation, np.ufunc] = {"sum": np.add, "max": np.maximum}
"""What reduces one array into another, by operation."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a transport can do. `progress`: who moves the bytes, the caller inside wait/test or a thread of the
    library's own."""

    point_to_point: bool
    one_sided: bool
    collective: bool
    dtypes: frozenset[str]
    progress: Literal["caller", "background"]
    path: Literal["shared memory", "socket", "verbs", "library's choice"]
    library: str
    """Name and version of the library that moves the bytes, as loaded."""


@dataclass(slots=True)
class Traffic:
    """Bytes and messages that this rank asked the transport to send; barriers count a message of zero bytes."""

    nbytes: int = 0
    messages: int = 0

    def count(self, nbytes: int) -> None:
        """Count one message."""
        self.nbytes += nbytes
        self.messages += 1


class Handle(Protocol):
    """A call under way. The buffer belongs to the transport until `wait` returned or `test` said True."""

    def test(self) -> bool:
        """Advance without blocking; True when done."""

    def wait(self) -> None:
        """Block until done; raises PeerLost or TransportError."""


class Done:
    """The handle of a call that finished at once."""

    def test(self) -> bool:
        """Always done."""
        return True

    def wait(self) -> None:
        """Nothing to wait for."""


@dataclass(slots=True)
class Region:
    """A piece of memory of one rank that peers may write and read: `local` is the bytes here, None for a peer's region
    without a mapping."""

    rank: int
    offset: int
    nbytes: int
    local: Array | None = field(default=None, repr=False)


@runtime_checkable
class Transport(Protocol):
    """What every transport has. Made by `connect`; `close` is idempotent and leaves nothing behind."""

    capabilities: Capabilities
    rank: int
    world_size: int
    traffic: Traffic

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """Join all ranks of the launch; raises TransportError when a peer does not come."""

    def allocate(self, nbytes: int) -> Array:
        """A uint8 array in the memory that this transport moves best (registered or shared); plain aligned memory where
        it has none."""

    def barrier(self) -> None:
        """Return when all ranks have called it."""

    def close(self) -> None:
        """Release connections, regions, threads."""


class PointToPoint(Transport, Protocol):
    """Messages between two ranks, in order per (source, destination). Buffers: C-contiguous, any declared dtype, also
    of 0 bytes; sizes on both sides agree."""

    def send(self, buffer: Array, peer: int) -> Handle:
        """Start sending the buffer's bytes."""

    def recv(self, buffer: Array, peer: int) -> Handle:
        """Start receiving exactly the buffer's bytes."""


class OneSided(PointToPoint, Protocol):
    """A remote machine as a device with a memory (xue2019): regions, one-sided writes and reads, a flag to poll."""

    def register(self, nbytes: int) -> Region:
        """Collective call: every rank registers a region of the same size; returns the own one."""

    def deregister(self, region: Region) -> None:
        """Give an own region back; nobody may use it or its counterparts any more."""

    def remote(self, region: Region, peer: int) -> Region:
        """The peer's counterpart of an own region."""

    def write(self, source: Array, target: Region, offset: int = 0) -> Handle:
        """Put bytes into a peer's region without its help."""

    def read(self, source: Region, target: Array, offset: int = 0) -> Handle:
        """Get bytes out of a peer's region without its help."""

    def set_flag(self, target: Region, value: int) -> None:
        """Publish a tail flag after everything written before it (uint64, one per region and writing rank)."""

    def poll_flag(self, region: Region, writer: int) -> int:
        """The last flag value that `writer` set on the own region."""

    def write_flagged(self, source: Array, target: Region, offset: int, value: int) -> Handle:
        """Put bytes into a peer's region and behind them `value` (uint64), which must not be seen there before all of
        the bytes: one message. `source` has a multiple of 8 bytes, possibly none, and does not change before the handle
        is done; `offset` is a multiple of 8, relative to the region."""

    def poll_word(self, region: Region, offset: int) -> int:
        """The uint64 at an offset of the own region as it is now, after whatever progress the library needs for a
        peer's write to be seen."""

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """Return when `ready()`, which polls; raises PeerLost when the peer has ended before."""


@runtime_checkable
class TwoSided(Protocol):
    """What a one-sided transport adds that also has short messages into receive requests posted in advance, apart from
    `send` and `recv`: RPC uses them."""

    def post_message(self, message: bytes, peer: int) -> None:
        """Send up to 256 bytes (a two-sided SEND), in order per peer; one may be under way until the peer has taken it."""

    def next_message(self, peer: int) -> bytes | None:
        """The oldest message of a peer that was not taken yet; None when there is none."""


@runtime_checkable
class Mapped(Protocol):
    """What a one-sided transport adds when peers' memory can be addressed like the own one: collectives then need no
    copies between ranks' buffers."""

    rank: int
    world_size: int
    traffic: Traffic

    def register(self, nbytes: int) -> Region:
        """See OneSided.register; the region is zeroed."""

    def remote(self, region: Region, peer: int) -> Region:
        """See OneSided.remote; `local` is set."""

    def allocate(self, nbytes: int) -> Array:
        """See Transport.allocate."""

    def locate(self, buffer: Array) -> int | None:
        """Offset of a buffer in the own memory; None when it lies elsewhere."""

    def memory(self, rank: int) -> Array:
        """All bytes of a rank's memory, as seen from here."""

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """Return when `ready()`; raises PeerLost when the peer has ended before."""


class Collectives(Protocol):
    """What strategies and programs call: a collective transport itself, or a Group that lifts a point-to-point one
    (collectives/group.py)."""

    rank: int
    world_size: int
    traffic: Traffic
    capabilities: Capabilities

    def allocate(self, nbytes: int) -> Array:
        """See Transport.allocate."""

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """Reduce in place over all ranks; buffer: flat, C-contiguous, same size and dtype everywhere."""

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """Sum `source` (world_size * n elements) over ranks; rank r ends with elements [r*n, (r+1)*n) in `target`."""

    def all_gather(self, source: Array, target: Array) -> Handle:
        """Every rank's `source` (n elements) ends in `target` (world_size * n elements), in rank order."""

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """The root's buffer ends in every rank's buffer."""

    def barrier(self) -> None:
        """Return when all ranks have called it."""

    def close(self) -> None:
        """Release the transport below."""
