"""Remote procedure call over the device, as TensorFlow's verbs transport does it (xue2019's gRPC.RDMA;
tensorflow/networking, README of verbs).

The receiver asks for a tensor: its request says where in its region the tensor shall go and which shape it had the last
time. The sender copies the tensor into its registered buffer and writes it there; where the shape is another one, it
answers with the right one and the receiver asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scaleproof.remote._control_messages import Control, MessageBuffers, TwoSidedMessages, Words
from scaleproof.remote._one_sided_channel import End, OneSidedChannel, Receiving, Steps, flagged, need_device, until
from scaleproof.remote._region_plan import DESCRIPTION, Plan, describe, described, own_memory, rounded, view
from scaleproof.remote.tensor_channel import Edge, TensorChannel, TransferCounts
from scaleproof.transports.contract import Array, OneSided, Transport, TwoSided

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

REQUEST, METADATA = 1, 2
MESSAGE = 4 + DESCRIPTION
"""Words of a message: kind, edge, number of the tensor, place for it, description."""
UNKNOWN = [0] * DESCRIPTION
"""Description in the first request for an edge: no tensor has come yet."""


def connect(transport: Transport, edges: tuple[Edge, ...], context: RankContext) -> TensorChannel:
    """See open_channel."""
    return RemoteCall(need_device(transport, "rpc"), edges, context)


class RemoteCall(OneSidedChannel):
    """See the module."""

    receiver_acts = True

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        self._born = {edge.name: own_memory(edge) for edge in edges if edge.source == self.rank}
        self._numbers = {edge: number for number, edge in enumerate(edges)}
        self._known: dict[Edge, Words] = {}
        self._requests: dict[Edge, tuple[int, Words]] = {}
        self._corrections: dict[Edge, Words] = {}
        peers = sorted(
            {
                rank
                for edge in edges
                for rank in (edge.source, edge.destination)
                if self.rank in (edge.source, edge.destination)
            }
            - {self.rank}
        )
        self._two_sided = isinstance(transport, TwoSided)
        self._control: Control
        if isinstance(transport, TwoSided):
            self._control = TwoSidedMessages(transport, peers, self._take)
        else:
            self._control = MessageBuffers(transport, self.region, self.plan, peers, MESSAGE, self._take)

    def places(self, plan: Plan, edge: Edge) -> None:
        """Both ends: the tensor's place and its registered copy, and both directions of the control channel."""
        plan.put(edge.source, ("registered", edge), edge.nbytes)
        plan.put(edge.destination, ("arrival", edge), flagged(edge.nbytes))
        MessageBuffers.places(plan, edge.source, edge.destination, MESSAGE)
        MessageBuffers.places(plan, edge.destination, edge.source, MESSAGE)

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""
        return view(
            self._born[edge.name].reshape(-1).view(np.uint8), 0, edge.shape if shape is None else shape, edge.dtype
        )

    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""
        return view(self.memory, self.plan.at(self.rank, ("arrival", edge)), edge.shape, edge.dtype)

    def advance(self) -> None:
        """See TensorChannel."""
        self._control.advance()
        super().advance()

    def settle(self) -> None:
        """See TensorChannel."""
        super().settle()
        self._control.settle()

    def close(self) -> None:
        """See TensorChannel. The channel knows the channel: without it the memory goes now, not when the garbage collector comes
        by."""
        del self._control
        super().close()

    def move_out(self, end: End, array: Array) -> Steps:
        """See OneSidedChannel."""
        number, edge, description = end.number, end.edge, describe(array.shape, end.edge.dtype)
        while True:
            while edge not in self._requests:
                yield
            place, wanted = self._requests.pop(edge)
            if wanted == description:
                break
            self._post(METADATA, end, number, 0, description)
        registered = self.plan.at(self.rank, ("registered", edge))
        self.copy(end, array, view(self.memory, registered, array.shape, edge.dtype))
        yield from until(self.put(end, self.own(registered, array.nbytes), place, number))

    def move_in(self, end: End, receiving: Receiving) -> Steps:
        """See OneSidedChannel. The flag's place depends on the shape, so it is cleared before the sender can know of it."""
        number, edge, place = end.number, end.edge, self.plan.at(self.rank, ("arrival", end.edge))
        known = self._known.get(edge, UNKNOWN)
        while True:
            shape, dtype = described(known)
            receiving.array = view(self.memory, place, shape, dtype)
            flag = place + rounded(receiving.array.nbytes)
            view(self.memory, flag, (1,), "uint64")[0] = 0
            end.cost.round_trips += 1
            self._post(REQUEST, end, number, place, known)
            while self.transport.poll_word(self.region, flag) != number:
                if edge in self._corrections:
                    break
                yield
            else:
                return
            known = self._known[edge] = self._corrections.pop(edge)

    def let_go(self, end: End) -> None:
        """The next request tells it."""

    def _post(self, kind: int, end: End, number: int, place: int, description: Words) -> None:
        self._count(end.cost)
        self._control.post([kind, self._numbers[end.edge], number, place, *description], end.peer)

    def _take(self, peer: int, words: Words) -> None:
        kind, index, _, place, *description = words
        edge = self.edges[index]
        if kind == REQUEST:
            self._requests[edge] = place, description
        else:
            self._corrections[edge] = description
        if not self._two_sided:
            self._count(self.counts.of(edge))

    def _count(self, cost: TransferCounts) -> None:
        """A control message or the acknowledgement of one."""
        cost.messages += 1
        cost.writes += not self._two_sided
