"""Mechanism `copy`: one-sided writes through registered bounce buffers (RDMA.cp of xue2019). The sender copies its
tensor into the region, one write moves it, the receiver copies it out. It shows the cost for a framework that allocates
its own memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaleproof.remote._one_sided_channel import (
    EdgeEnd,
    OneSidedChannel,
    ReceiveHandle,
    Steps,
    until_done,
    with_flag,
)
from scaleproof.remote._region_plan import Plan, own_tensor, rounded, view
from scaleproof.remote.tensor_channel import Edge
from scaleproof.transports.contract import Array, OneSided

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class Copying(OneSidedChannel):
    """See the module. Bounce buffers hold whole tensors."""

    mechanism = "copy"
    static_only = True

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        self._send_buffers = {edge.name: own_tensor(edge) for edge in edges if edge.source == self.rank}
        self._receive_buffers = {edge: own_tensor(edge) for edge in edges if edge.destination == self.rank}

    def reserve(self, plan: Plan, edge: Edge) -> None:
        """A bounce buffer at both ends."""
        plan.reserve(edge.source, ("bounce", edge), edge.nbytes)
        plan.reserve(edge.destination, ("arrival", edge), with_flag(edge.nbytes))

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""
        return self._send_buffers[edge.name]

    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""
        return self._receive_buffers[edge]

    def move_out(self, end: EdgeEnd, array: Array) -> Steps:
        """See OneSidedChannel. The last write has finished, so this rank's bounce buffer is free; the receiver's may
        still be in use."""
        number, edge = end.number, end.edge
        bounce = self.plan.offset(self.rank, ("bounce", edge))
        self.copy(end, array, view(self.memory, bounce, edge.shape, edge.dtype))
        while self.freed(end) < number - 1:
            yield
        yield from until_done(
            self.write_tensor(
                end, self.own_bytes(bounce, edge.nbytes), self.plan.offset(edge.destination, ("arrival", edge)), number
            )
        )

    def move_in(self, end: EdgeEnd, handle: ReceiveHandle) -> Steps:
        """See OneSidedChannel. The bounce buffer is free once its tensor is copied out."""
        number, edge, offset = end.number, end.edge, self.plan.offset(self.rank, ("arrival", end.edge))
        while self.transport.poll_word(self.region, offset + rounded(edge.nbytes)) < number:
            yield
        handle.array = self._receive_buffers[edge]
        self.copy(end, view(self.memory, offset, edge.shape, edge.dtype), handle.array)
        self.report_freed(end)

    def on_release(self, end: EdgeEnd) -> None:
        """`move_in` has reported it already."""


connect = Copying.connect
