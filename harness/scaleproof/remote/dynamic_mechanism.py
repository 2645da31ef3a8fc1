"""Mechanism `dynamic`, dynamic allocation (xue2019): for tensors whose shape varies, with a fixed number of dimensions.

The sender writes a metadata block (type, dimensions, offset of the tensor in its region) followed by a flag. The
receiver allocates memory of that size in its region, reads the tensor by a one-sided read and reports to the sender
that the buffer is free. Static placement needs one small write and one round trip less.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.remote._one_sided_channel import (
    EdgeEnd,
    OneSidedChannel,
    ReceiveHandle,
    Steps,
    until_done,
    with_flag,
)
from scaleproof.remote._region_plan import DESCRIPTION, WORD, Plan, describe, described, rounded, view
from scaleproof.remote.tensor_channel import Edge
from scaleproof.transports._allocator import PAGE, Allocator
from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array, OneSided

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

BLOCK = (DESCRIPTION + 1) * WORD
"""Bytes of a metadata block."""
POOL_FACTOR = 2
"""Size of the pool relative to the largest tensors of all incoming edges, since tensors of different sizes leave
gaps."""


class Dynamic(OneSidedChannel):
    """See the module."""

    mechanism = "dynamic"

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        self._address = address_of(self.memory)
        start = self.plan.offset(self.rank, "pool")
        self._pool = Allocator(
            self.memory[start : start + self._pool_nbytes(self.rank)].data, "region for tensors whose shape varies,"
        )
        self._held: dict[Edge, Array] = {}

    def reserve_all(self, plan: Plan) -> None:
        """See OneSidedChannel; also the pool from which receivers allocate."""
        super().reserve_all(plan)
        for rank in range(self.transport.world_size):
            plan.reserve(rank, "pool", self._pool_nbytes(rank))

    def _pool_nbytes(self, rank: int) -> int:
        return POOL_FACTOR * sum(
            (rounded(max(edge.nbytes, 1), PAGE) for edge in self.edges if edge.destination == rank), PAGE
        )

    def reserve(self, plan: Plan, edge: Edge) -> None:
        """See OneSidedChannel."""
        plan.reserve(edge.source, ("source", edge.name), edge.nbytes)
        plan.reserve(edge.source, ("block", edge), BLOCK)
        plan.reserve(edge.destination, ("metadata", edge), with_flag(BLOCK))

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""
        return view(
            self.memory,
            self.plan.offset(self.rank, ("source", edge.name)),
            edge.shape if shape is None else shape,
            edge.dtype,
        )

    def incoming(self, edge: Edge) -> Array:
        """Raises TransportError: no tensor has an address before it arrives."""
        raise TransportError(
            f"edge {edge.name!r} has no fixed address: mechanism 'dynamic' allocates when a tensor arrives"
        )

    def move_out(self, end: EdgeEnd, array: Array) -> Steps:
        """See OneSidedChannel. The last tensor was read, so its metadata block is free."""
        number, edge, block = end.number, end.edge, self.plan.offset(self.rank, ("block", end.edge))
        offset = address_of(array) - self._address
        if not (array.flags.c_contiguous and 0 <= offset <= self.memory.nbytes - array.nbytes):
            buffer = self.outgoing(edge, array.shape)
            self.copy(end, array, buffer)
            offset = address_of(buffer) - self._address
        view(self.memory, block, (DESCRIPTION + 1,), "uint64")[:] = [*describe(array.shape, edge.dtype), offset]
        yield from until_done(
            self.write_tensor(
                end, self.own_bytes(block, BLOCK), self.plan.offset(edge.destination, ("metadata", edge)), number
            )
        )
        while self.freed(end) < number:
            yield

    def move_in(self, end: EdgeEnd, handle: ReceiveHandle) -> Steps:
        """See OneSidedChannel."""
        number, block = end.number, self.plan.offset(self.rank, ("metadata", end.edge))
        while self.transport.poll_word(self.region, block + BLOCK) < number:
            yield
        *description, source = (int(word) for word in view(self.memory, block, (DESCRIPTION + 1,), "uint64"))
        shape, dtype = described(description)
        array = view(self._pool.allocate(math.prod(shape) * np.dtype(dtype).itemsize), 0, shape, dtype)
        end.cost.messages += 1
        end.cost.reads += 1
        end.cost.round_trips += 1
        yield from until_done(self.transport.read(end.remote, array, source))
        self.report_freed(end)
        handle.array = self._held[end.edge] = array

    def on_release(self, end: EdgeEnd) -> None:
        """`move_in` has reported it already; the memory is freed with the receiver's last view of it."""
        del self._held[end.edge]

    def close(self) -> None:
        """See TensorChannel."""
        self._held = {}
        super().close()


connect = Dynamic.connect
