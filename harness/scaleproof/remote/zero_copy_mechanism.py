"""Static placement (xue2019): the receiver's tensor has its place in the registered region before the run, the sender's
tensor is born in its own region.

One one-sided write moves the tensor and the flag behind it; nobody copies, nobody asks. The flag holds the number of
the tensor on its edge, so it needs no clearing. The receiver writes back how many tensors it has released; the sender
looks at that before it writes again.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from scaleproof.remote._one_sided_channel import End, OneSidedChannel, Receiving, Steps, flagged, need_device, until
from scaleproof.remote._region_plan import Plan, all_static, rounded, same_memory, view
from scaleproof.remote.tensor_channel import Edge, TensorChannel
from scaleproof.transports.contract import Array, OneSided, Transport

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


def connect(transport: Transport, edges: tuple[Edge, ...], context: RankContext) -> TensorChannel:
    """See open_channel."""
    all_static(edges, "zero_copy")
    return ZeroCopy(need_device(transport, "zero_copy"), edges, context)


class ZeroCopy(OneSidedChannel):
    """See the module."""

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        self._born = {edge: self._view("born", edge.name, edge) for edge in self.out}
        self._sources = {
            edge: (
                self.own(self._at("born", edge.name), edge.nbytes),
                self.plan.at(edge.destination, ("arrival", edge)),
            )
            for edge in self.out
        }
        self._arrivals = {
            edge: (self._view("arrival", edge, edge), self._at("arrival", edge) + rounded(edge.nbytes))
            for edge in self.into
        }

    def places(self, plan: Plan, edge: Edge) -> None:
        """A tensor's birthplace serves all its edges."""
        plan.put(edge.source, ("born", edge.name), edge.nbytes)
        plan.put(edge.destination, ("arrival", edge), flagged(edge.nbytes))

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""
        return self._born[edge]

    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""
        return self._arrivals[edge][0]

    def move_out(self, end: End, array: Array) -> Steps:
        """See OneSidedChannel."""
        number, born = end.number, self._born[end.edge]
        while self.freed(end) < number - 1:
            yield
        if array is not born and not same_memory(array, born):
            self.copy(end, array, born)
        yield from until(self.put(end, *self._sources[end.edge], number))

    def move_in(self, end: End, receiving: Receiving) -> Steps:
        """See OneSidedChannel."""
        number, poll, region = end.number, self.transport.poll_word, self.region
        receiving.array, flag = self._arrivals[end.edge]
        while poll(region, flag) < number:
            yield

    def close(self) -> None:
        """See TensorChannel."""
        self._born, self._sources, self._arrivals = {}, {}, {}
        super().close()

    def _at(self, *name: Hashable) -> int:
        return self.plan.at(self.rank, name)

    def _view(self, kind: str, name: Hashable, edge: Edge) -> Array:
        return view(self.memory, self._at(kind, name), edge.shape, edge.dtype)
