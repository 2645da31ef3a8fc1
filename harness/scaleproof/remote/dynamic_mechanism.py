"""Dynamic allocation (xue2019): for tensors whose shape varies, with a fixed number of dimensions.

The sender writes a metadata block (type, dimensions, where the tensor lies in its region) with a flag behind it; the
receiver takes memory for that size from its region, pulls the tensor by a one-sided read and tells the sender that the
buffer is free. Over static placement: one small write and one round trip more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.remote._one_sided_channel import End, OneSidedChannel, Receiving, Steps, flagged, need_device, until
from scaleproof.remote._region_plan import DESCRIPTION, WORD, Plan, describe, described, rounded, view
from scaleproof.remote.tensor_channel import Edge, TensorChannel
from scaleproof.transports._allocator import PAGE, Allocator
from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array, OneSided, Transport

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

BLOCK = (DESCRIPTION + 1) * WORD
"""Bytes of a metadata block."""
ROOM = 2
"""Times the largest tensors of all incoming edges: pieces of different sizes leave gaps."""


def connect(transport: Transport, edges: tuple[Edge, ...], context: RankContext) -> TensorChannel:
    """See open_channel."""
    return Dynamic(need_device(transport, "dynamic"), edges, context)


class Dynamic(OneSidedChannel):
    """See the module."""

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        self._address = address_of(self.memory)
        start = self.plan.at(self.rank, "pool")
        self._pool = Allocator(
            self.memory[start : start + self._room(self.rank)].data, "region for tensors whose shape varies,"
        )
        self._holding: dict[Edge, Array] = {}

    def lay_out(self, plan: Plan) -> None:
        """See OneSidedChannel; then memory from which receivers allocate."""
        super().lay_out(plan)
        for rank in range(self.transport.world_size):
            plan.put(rank, "pool", self._room(rank))

    def _room(self, rank: int) -> int:
        return ROOM * sum((rounded(max(edge.nbytes, 1), PAGE) for edge in self.edges if edge.destination == rank), PAGE)

    def places(self, plan: Plan, edge: Edge) -> None:
        """See OneSidedChannel."""
        plan.put(edge.source, ("born", edge.name), edge.nbytes)
        plan.put(edge.source, ("block", edge), BLOCK)
        plan.put(edge.destination, ("metadata", edge), flagged(BLOCK))

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""
        return view(
            self.memory,
            self.plan.at(self.rank, ("born", edge.name)),
            edge.shape if shape is None else shape,
            edge.dtype,
        )

    def incoming(self, edge: Edge) -> Array:
        """No tensor has a place before it comes."""
        raise TransportError(
            f"edge {edge.name!r} has no fixed place: mechanism 'dynamic' allocates when a tensor comes"
        )

    def move_out(self, end: End, array: Array) -> Steps:
        """See OneSidedChannel. The last tensor was pulled, so its metadata block was read."""
        number, edge, block = end.number, end.edge, self.plan.at(self.rank, ("block", end.edge))
        place = address_of(array) - self._address
        if not (array.flags.c_contiguous and 0 <= place <= self.memory.nbytes - array.nbytes):
            born = self.outgoing(edge, array.shape)
            self.copy(end, array, born)
            place = address_of(born) - self._address
        view(self.memory, block, (DESCRIPTION + 1,), "uint64")[:] = [*describe(array.shape, edge.dtype), place]
        yield from until(
            self.put(end, self.own(block, BLOCK), self.plan.at(edge.destination, ("metadata", edge)), number)
        )
        while self.freed(end) < number:
            yield

    def move_in(self, end: End, receiving: Receiving) -> Steps:
        """See OneSidedChannel."""
        number, place = end.number, self.plan.at(self.rank, ("metadata", end.edge))
        while self.transport.poll_word(self.region, place + BLOCK) < number:
            yield
        *description, source = (int(word) for word in view(self.memory, place, (DESCRIPTION + 1,), "uint64"))
        shape, dtype = described(description)
        array = view(self._pool.allocate(math.prod(shape) * np.dtype(dtype).itemsize), 0, shape, dtype)
        end.cost.messages += 1
        end.cost.reads += 1
        end.cost.round_trips += 1
        yield from until(self.transport.read(end.remote, array, source))
        self.tell_free(end)
        receiving.array = self._holding[end.edge] = array

    def let_go(self, end: End) -> None:
        """The sender knows already; the memory is free for the next tensor once the receiver's views are gone."""
        del self._holding[end.edge]

    def close(self) -> None:
        """See TensorChannel."""
        self._holding = {}
        super().close()
