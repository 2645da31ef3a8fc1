"""Mechanism `rpc`: remote procedure call over the device, as in TensorFlow's verbs transport (xue2019's gRPC.RDMA;
tensorflow/networking, README of verbs).

The receiver requests a tensor: the request holds the offset of the target in its region and the tensor's last known
shape. The sender copies the tensor into its registered buffer and writes it to that offset. If the shape has changed,
it answers with the new one, and the receiver sends another request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scaleproof.remote._control_messages import Control, MessageBuffers, TwoSidedMessages, Words
from scaleproof.remote._one_sided_channel import (
    EdgeEnd,
    OneSidedChannel,
    ReceiveHandle,
    Steps,
    until_done,
    with_flag,
)
from scaleproof.remote._region_plan import DESCRIPTION, Plan, describe, described, own_tensor, rounded, view
from scaleproof.remote.tensor_channel import Edge, TransferCounts
from scaleproof.transports.contract import Array, OneSided, ShortMessages

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

REQUEST, METADATA = 1, 2
MESSAGE = 4 + DESCRIPTION
"""Words of a message: kind, edge, number of the tensor, its offset at the receiver, description."""
UNKNOWN = [0] * DESCRIPTION
"""Description in the first request for an edge, before any tensor has arrived."""


class RemoteCall(OneSidedChannel):
    """See the module."""

    mechanism = "rpc"
    receiver_acts = True

    def __init__(self, transport: OneSided, edges: tuple[Edge, ...], context: RankContext) -> None:
        super().__init__(transport, edges, context)
        self._send_buffers = {edge.name: own_tensor(edge) for edge in edges if edge.source == self.rank}
        self._numbers = {edge: number for number, edge in enumerate(edges)}
        self._descriptions: dict[Edge, Words] = {}
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
        self._two_sided = isinstance(transport, ShortMessages)
        self._control: Control
        if isinstance(transport, ShortMessages):
            self._control = TwoSidedMessages(transport, peers, self._on_message)
        else:
            self._control = MessageBuffers(transport, self.region, self.plan, peers, MESSAGE, self._on_message)

    def reserve(self, plan: Plan, edge: Edge) -> None:
        """Reserve the registered copy at the source, the target at the destination, and both directions of control
        messages."""
        plan.reserve(edge.source, ("registered", edge), edge.nbytes)
        plan.reserve(edge.destination, ("arrival", edge), with_flag(edge.nbytes))
        MessageBuffers.reserve(plan, edge.source, edge.destination, MESSAGE)
        MessageBuffers.reserve(plan, edge.destination, edge.source, MESSAGE)

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel."""
        return view(
            self._send_buffers[edge.name].reshape(-1).view(np.uint8),
            0,
            edge.shape if shape is None else shape,
            edge.dtype,
        )

    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""
        return view(self.memory, self.plan.offset(self.rank, ("arrival", edge)), edge.shape, edge.dtype)

    def advance(self) -> None:
        """See TensorChannel."""
        self._control.advance()
        super().advance()

    def settle(self) -> None:
        """See TensorChannel."""
        super().settle()
        self._control.settle()

    def close(self) -> None:
        """See TensorChannel. The control object refers back to this channel; without it the memory is freed now, not by
        the garbage collector."""
        del self._control
        super().close()

    def move_out(self, end: EdgeEnd, array: Array) -> Steps:
        """See OneSidedChannel."""
        number, edge, description = end.number, end.edge, describe(array.shape, end.edge.dtype)
        while True:
            while edge not in self._requests:
                yield
            offset, expected = self._requests.pop(edge)
            if expected == description:
                break
            self._post(METADATA, end, number, 0, description)
        registered = self.plan.offset(self.rank, ("registered", edge))
        self.copy(end, array, view(self.memory, registered, array.shape, edge.dtype))
        yield from until_done(self.write_tensor(end, self.own_bytes(registered, array.nbytes), offset, number))

    def move_in(self, end: EdgeEnd, handle: ReceiveHandle) -> Steps:
        """See OneSidedChannel. The flag's offset depends on the shape, so it is cleared before the sender knows the
        shape."""
        number, edge, offset = end.number, end.edge, self.plan.offset(self.rank, ("arrival", end.edge))
        description = self._descriptions.get(edge, UNKNOWN)
        while True:
            shape, dtype = described(description)
            handle.array = view(self.memory, offset, shape, dtype)
            flag = offset + rounded(handle.array.nbytes)
            view(self.memory, flag, (1,), "uint64")[0] = 0
            end.cost.round_trips += 1
            self._post(REQUEST, end, number, offset, description)
            while self.transport.poll_word(self.region, flag) != number:
                if edge in self._corrections:
                    break
                yield
            else:
                return
            description = self._descriptions[edge] = self._corrections.pop(edge)

    def on_release(self, end: EdgeEnd) -> None:
        """Nothing to report: the next request implies the release."""

    def _post(self, kind: int, end: EdgeEnd, number: int, offset: int, description: Words) -> None:
        self._count(end.cost)
        self._control.post([kind, self._numbers[end.edge], number, offset, *description], end.peer)

    def _on_message(self, peer: int, message: Words) -> None:
        kind, index, _, offset, *description = message
        edge = self.edges[index]
        if kind == REQUEST:
            self._requests[edge] = offset, description
        else:
            self._corrections[edge] = description
        if not self._two_sided:
            self._count(self.counts.of(edge))

    def _count(self, cost: TransferCounts) -> None:
        """A control message or the acknowledgement of one."""
        cost.messages += 1
        cost.writes += not self._two_sided


connect = RemoteCall.connect
