"""Static placement (xue2019): the receiver's tensor has its place in the registered region before the run, the sender's tensor is born in its own region.

One one-sided write moves the tensor and the flag behind it; nobody copies, nobody asks. The flag holds the number of the tensor on its edge, so it needs no
clearing. The receiver writes back how many tensors it has released; the sender looks at that before it writes again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.remote._device import DeviceLink, Steps, flag_place, flagged, need_device, until
from harness.remote._plan import WORD, Plan, all_static, same_memory, view
from harness.remote.base import Edge, Link
from harness.transports.base import Array, OneSided, Transport

if TYPE_CHECKING:
    from harness.rank.context import RankContext


def connect(transport: Transport, edges: tuple[Edge, ...], context: RankContext) -> Link:
    """See open_link."""
    all_static(edges, "zero_copy")
    return ZeroCopy(need_device(transport, "zero_copy"), edges, context)


class ZeroCopy(DeviceLink):
    """See the module."""

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        here, at = self.rank, self.plan.at
        self._born = {edge: view(self.memory, at(here, ("born", edge.name)), edge.shape, edge.dtype) for edge in edges if edge.source == here}
        self._arrivals = {edge: view(self.memory, at(here, ("arrival", edge)), edge.shape, edge.dtype) for edge in edges if edge.destination == here}

    def places(self, plan: Plan, edge: Edge) -> None:
        """A tensor's birthplace serves all its edges."""
        plan.put(edge.source, ("born", edge.name), flagged(edge.nbytes))
        plan.put(edge.source, ("freed", edge), WORD)
        plan.put(edge.destination, ("arrival", edge), flagged(edge.nbytes))

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See Link."""
        return self._born[edge]

    def incoming(self, edge: Edge) -> Array:
        """See Link."""
        return self._arrivals[edge]

    def move_out(self, edge: Edge, array: Array) -> Steps:
        """See DeviceLink."""
        number = self.sent[edge]
        while self.freed(edge) < number - 1:
            yield
        born = self._born[edge]
        if array is not born and not same_memory(array, born):
            self.copy(edge, array, born)
        yield from until(self.put(edge, self.plan.at(self.rank, ("born", edge.name)), edge.nbytes, self.plan.at(edge.destination, ("arrival", edge)), number))

    def move_in(self, edge: Edge, arrival: Callable[[Array], None]) -> Steps:
        """See DeviceLink."""
        number, flag = self.taken[edge], self.plan.at(self.rank, ("arrival", edge)) + flag_place(edge.nbytes)
        while self.transport.poll_word(self.region, flag) < number:
            yield
        arrival(self._arrivals[edge])

    def close(self) -> None:
        """See Link."""
        self._born, self._arrivals = {}, {}
        super().close()
