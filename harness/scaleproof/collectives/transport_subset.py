"""A view of some ranks of a transport that renumbers peers, so that collectives run inside a group of ranks (das2016,
section on hybrid parallelism). It opens no connection and allocates no memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._barrier import dissemination
from scaleproof.transports.contract import Array, Handle, Mapped, PointToPoint, ReduceOperation, Region, Traffic


class _SubsetTraffic(Traffic):
    """Traffic of the subset, which also counts in the underlying transport."""

    def __init__(self, total: Traffic) -> None:
        super().__init__()
        self._total = total

    def count(self, nbytes: int) -> None:
        """Count one message in the subset and in the underlying transport."""
        self.count_in_subset(nbytes)
        self._total.count(nbytes)

    def count_in_subset(self, nbytes: int) -> None:
        """Count one message that the underlying transport counts itself."""
        self.nbytes += nbytes
        self.messages += 1


class Subset:
    """PointToPoint over `members`, ranks of the transport in the order of their new numbers, this rank among them.
    Raises TransportError when it is not."""

    def __init__(self, transport: PointToPoint, members: Sequence[int]) -> None:
        self.members = tuple(members)
        if (
            transport.rank not in self.members
            or len(set(self.members)) < len(self.members)
            or not set(self.members) <= set(range(transport.world_size))
        ):
            this = f"rank {transport.rank} of {transport.world_size}"
            raise TransportError(f"{this} cannot have a part with the ranks {list(self.members)}")
        self._transport = transport
        self.rank, self.world_size = self.members.index(transport.rank), len(self.members)
        self.capabilities = transport.capabilities
        self.traffic = _SubsetTraffic(transport.traffic)
        if hasattr(transport, "recv_reduce"):
            self.recv_reduce = self._recv_reduce

    def allocate(self, nbytes: int) -> Array:
        """See Transport.allocate."""
        return self._transport.allocate(nbytes)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count_in_subset(buffer.nbytes)
        return self._transport.send(buffer, self.members[peer])

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return self._transport.recv(buffer, self.members[peer])

    def barrier(self) -> None:
        """Return when all members have called it."""
        dissemination(cast(PointToPoint, self))

    def close(self) -> None:
        """The transport stays open; whoever connected it closes it."""

    def _recv_reduce(self, buffer: Array, peer: int, operation: ReduceOperation) -> Handle:
        transport: Any = self._transport
        handle: Handle = transport.recv_reduce(buffer, self.members[peer], operation)
        return handle


class MappedSubset(Subset):
    """A subset of a transport whose peers' memory can be addressed."""

    def __init__(self, transport: PointToPoint, members: Sequence[int]) -> None:
        super().__init__(transport, members)
        self._mapped = cast(Mapped, transport)
        private = self._mapped.private_memory
        self.private_memory = None if private is None else private.part(self.members)

    def register(self, nbytes: int) -> Region:
        """See Mapped.register: all ranks of the transport call it, also those of other parts."""
        return self._mapped.register(nbytes)

    def remote(self, region: Region, peer: int) -> Region:
        """See Mapped.remote."""
        return self._mapped.remote(region, self.members[peer])

    def locate(self, buffer: Array) -> int | None:
        """See Mapped.locate."""
        return self._mapped.locate(buffer)

    def memory(self, rank: int) -> Array:
        """See Mapped.memory."""
        return self._mapped.memory(self.members[rank])

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See Mapped.wait_for."""
        self._mapped.wait_for(ready, self.members[peer])


def subset(transport: PointToPoint, members: Sequence[int]) -> PointToPoint:
    """The transport of some ranks. Every rank of the transport makes one at the same time, each of its own part, as
    with MPI_Comm_split."""
    kind = MappedSubset if isinstance(transport, Mapped) else Subset
    return cast(PointToPoint, kind(transport, members))
