"""Mechanism `zero_copy`, static placement (xue2019): the receiver's tensor has a fixed offset in its registered region,
and the sender computes its tensor in its own region.

A single one-sided write moves the tensor and the flag that follows it, without a copy or a request. The flag holds the
number of the tensor on its edge, so it need not be cleared. The receiver writes back how many tensors it has released;
the sender polls that number before it writes again.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from scaleproof.remote._one_sided_channel import (
    EdgeEnd,
    OneSidedChannel,
    ReceiveHandle,
    Steps,
    until_done,
    with_flag,
)
from scaleproof.remote._region_plan import Plan, rounded, same_memory, view
from scaleproof.remote.tensor_channel import Edge
from scaleproof.transports.contract import Array, OneSided

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


class ZeroCopy(OneSidedChannel):
    """See the module."""

    mechanism = "zero_copy"
    static_only = True

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        self._send_buffers = {edge: self._view("source", edge.name, edge) for edge in self.out}
        self._sources = {
            edge: (
                self.own_bytes(self._at("source", edge.name), edge.nbytes),
                self.plan.offset(edge.destination, ("arrival", edge)),
            )
            for edge in self.out
        }
        self._arrivals = {
            edge: (self._view("arrival", edge, edge), self._at("arrival", edge) + rounded(edge.nbytes))
            for edge in self.into
        }

    def reserve(self, plan: Plan, edge: Edge) -> None:
        """One buffer of the sender serves all edges of a tensor."""
        plan.reserve(edge.source, ("source", edge.name), edge.nbytes)
        plan.reserve(edge.destination, ("arrival", edge), with_flag(edge.nbytes))

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""
        return self._send_buffers[edge]

    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""
        return self._arrivals[edge][0]

    def move_out(self, end: EdgeEnd, array: Array) -> Steps:
        """See OneSidedChannel."""
        number, buffer = end.number, self._send_buffers[end.edge]
        while self.freed(end) < number - 1:
            yield
        if array is not buffer and not same_memory(array, buffer):
            self.copy(end, array, buffer)
        yield from until_done(self.write_tensor(end, *self._sources[end.edge], number))

    def move_in(self, end: EdgeEnd, handle: ReceiveHandle) -> Steps:
        """See OneSidedChannel."""
        number, poll, region = end.number, self.transport.poll_word, self.region
        handle.array, flag = self._arrivals[end.edge]
        while poll(region, flag) < number:
            yield

    def close(self) -> None:
        """See TensorChannel."""
        self._send_buffers, self._sources, self._arrivals = {}, {}, {}
        super().close()

    def _at(self, *name: Hashable) -> int:
        return self.plan.offset(self.rank, name)

    def _view(self, kind: str, name: Hashable, edge: Edge) -> Array:
        return view(self.memory, self._at(kind, name), edge.shape, edge.dtype)


connect = ZeroCopy.connect
