"""Device writes through registered bounce buffers (RDMA.cp of xue2019): the sender copies its tensor into the region,
one write moves it, the receiver copies it out. What a device costs to a framework that keeps its own memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaleproof.remote._one_sided_channel import End, OneSidedChannel, Receiving, Steps, flagged, need_device, until
from scaleproof.remote._region_plan import Plan, all_static, own_memory, rounded, view
from scaleproof.remote.tensor_channel import Edge, TensorChannel
from scaleproof.transports.contract import Array, OneSided, Transport

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


def connect(transport: Transport, edges: tuple[Edge, ...], context: RankContext) -> TensorChannel:
    """See open_channel."""
    all_static(edges, "copy")
    return Copying(need_device(transport, "copy"), edges, context)


class Copying(OneSidedChannel):
    """See the module. Bounce buffers hold whole tensors."""

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        self._born = {edge.name: own_memory(edge) for edge in edges if edge.source == self.rank}
        self._arrived = {edge: own_memory(edge) for edge in edges if edge.destination == self.rank}

    def places(self, plan: Plan, edge: Edge) -> None:
        """A bounce buffer at both ends."""
        plan.put(edge.source, ("bounce", edge), edge.nbytes)
        plan.put(edge.destination, ("arrival", edge), flagged(edge.nbytes))

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""
        return self._born[edge.name]

    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""
        return self._arrived[edge]

    def move_out(self, end: End, array: Array) -> Steps:
        """See OneSidedChannel. The last write is done, so the own bounce buffer is free; the receiver's may not be."""
        number, edge = end.number, end.edge
        bounce = self.plan.at(self.rank, ("bounce", edge))
        self.copy(end, array, view(self.memory, bounce, edge.shape, edge.dtype))
        while self.freed(end) < number - 1:
            yield
        yield from until(
            self.put(end, self.own(bounce, edge.nbytes), self.plan.at(edge.destination, ("arrival", edge)), number)
        )

    def move_in(self, end: End, receiving: Receiving) -> Steps:
        """See OneSidedChannel. The bounce buffer is free once its tensor is copied out."""
        number, edge, place = end.number, end.edge, self.plan.at(self.rank, ("arrival", end.edge))
        while self.transport.poll_word(self.region, place + rounded(edge.nbytes)) < number:
            yield
        receiving.array = self._arrived[edge]
        self.copy(end, view(self.memory, place, edge.shape, edge.dtype), receiving.array)
        self.tell_free(end)

    def let_go(self, end: End) -> None:
        """The sender knows already."""
