"""Mechanism `messages`: a transport's own sends and receives, which every point-to-point transport has. A tensor whose
shape varies is preceded by a message that describes it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, cast

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.remote._region_plan import DESCRIPTION, WORD, check_shape, describe, described, view
from scaleproof.remote.tensor_channel import Arrival, Edge, EdgeCounts, TensorChannel
from scaleproof.transports.contract import Array, Handle, PointToPoint, Transport

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext


def connect(transport: Transport, edges: tuple[Edge, ...], context: RankContext) -> TensorChannel:
    """See open_channel."""
    if not transport.capabilities.point_to_point:
        raise TransportError(f"{transport.capabilities.library} has collectives only, no sends and receives")
    return MessageChannel(cast(PointToPoint, transport), edges)


class MessageChannel:
    """See the module and remote/tensor_channel.py's TensorChannel. Messages are assigned to tensors by their order
    between two ranks, which the transport keeps."""

    def __init__(self, transport: PointToPoint, edges: tuple[Edge, ...]) -> None:
        self.edges, self.counts = edges, EdgeCounts()
        self.transport, self.rank = transport, transport.rank
        self._send_buffers = {edge.name: transport.allocate(edge.nbytes) for edge in edges if edge.source == self.rank}
        self._receive_buffers = {
            edge: transport.allocate(edge.nbytes) for edge in edges if edge.destination == self.rank
        }
        self._last: dict[Edge, SendHandle] = {}
        self._free = dict.fromkeys(self._receive_buffers, True)
        self._expected: dict[int, deque[ReceiveHandle]] = {peer: deque() for peer in range(transport.world_size)}

    def outgoing(self, edge: Edge, shape: tuple[int, ...] | None = None) -> Array:
        """See TensorChannel; in the transport's memory if it has any."""
        return view(self._send_buffers[edge.name], 0, edge.shape if shape is None else shape, edge.dtype)

    def incoming(self, edge: Edge) -> Array:
        """See TensorChannel."""
        return view(self._receive_buffers[edge], 0, edge.shape, edge.dtype)

    def send(self, edge: Edge, array: Array) -> Handle:
        """See TensorChannel."""
        check_shape(edge, array.shape, array.dtype)
        last = self._last.get(edge)
        if edge.source != self.rank or (last is not None and not last.test()):
            raise TransportError(
                f"rank {self.rank} cannot send on edge {edge.name!r} from {edge.source}, "
                "or its last tensor is still being sent"
            )
        buffers = [array] if edge.static else [np.array(describe(array.shape, edge.dtype), np.uint64), array]
        cost = self.counts.of(edge)
        cost.tensors += 1
        cost.nbytes += array.nbytes
        cost.messages += len(buffers)
        self._last[edge] = sending = SendHandle(
            [self.transport.send(buffer, edge.destination) for buffer in buffers], buffers
        )
        return sending

    def recv(self, edge: Edge) -> Arrival:
        """See TensorChannel."""
        if edge.destination != self.rank or not self._free[edge]:
            raise TransportError(
                f"rank {self.rank} cannot receive on edge {edge.name!r} to {edge.destination}, "
                "or it still holds the previous tensor"
            )
        self._free[edge] = False
        expected = self._expected[edge.source]
        handle = ReceiveHandle(self.transport, edge, self._receive_buffers[edge], expected)
        expected.append(handle)
        post_receives(expected)
        return handle

    def release(self, edge: Edge) -> None:
        """See TensorChannel; no tensor arrives before the next receive is posted."""
        if self._free[edge]:
            raise TransportError(f"edge {edge.name!r} holds no tensor to release")
        self._free[edge] = True

    def advance(self) -> None:
        """See TensorChannel."""
        self._last = {edge: sending for edge, sending in self._last.items() if not sending.test()}
        for expected in self._expected.values():
            post_receives(expected)

    def settle(self) -> None:
        """See TensorChannel; every message has a receive, so nothing is left to report."""

    def close(self) -> None:
        """See TensorChannel."""
        self._send_buffers, self._receive_buffers, self._last = {}, {}, {}


class SendHandle:
    """Handle of a tensor that is being sent."""

    def __init__(self, handles: list[Handle], buffers: list[Array]) -> None:
        self._handles, self._buffers = handles, buffers

    def test(self) -> bool:
        while self._handles and self._handles[0].test():
            self._handles.pop(0)
        return not self._handles

    def wait(self) -> None:
        for handle in self._handles:
            handle.wait()
        self._handles = []


class ReceiveHandle:
    """Arrival of a tensor. The expected tensors of a peer are in a queue, and post their receives in that order."""

    def __init__(self, transport: PointToPoint, edge: Edge, memory: Array, queue: deque[ReceiveHandle]) -> None:
        self._transport, self._edge, self._memory, self._queue = transport, edge, memory, queue
        self._words = np.empty(0 if edge.static else DESCRIPTION * WORD, np.uint8)
        self._header: Handle | None = None
        self._payload: Handle | None = None
        self._array = view(memory, 0, (0,), edge.dtype)

    def test(self) -> bool:
        post_receives(self._queue)
        return self._payload is not None and self._payload.test()

    def wait(self) -> Array:
        while self._payload is None:
            self._queue[0].wait_for_header()
            post_receives(self._queue)
        self._payload.wait()
        return self._array

    def post(self) -> bool:
        """Post the receives that can be posted; True when all are."""
        edge, shape = self._edge, self._edge.shape
        if not edge.static:
            self._header = self._header or self._transport.recv(self._words, edge.source)
            if not self._header.test():
                return False
            shape, dtype = described([int(word) for word in self._words.view(np.uint64)])
            check_shape(edge, shape, np.dtype(dtype))
        self._array = view(self._memory, 0, shape, edge.dtype)
        self._payload = self._transport.recv(self._array, edge.source)
        return True

    def wait_for_header(self) -> None:
        """Block until the tensor's shape is known."""
        if self._header is not None:
            self._header.wait()


def post_receives(queue: deque[ReceiveHandle]) -> None:
    """Post receives in order until a tensor has to wait for its shape."""
    while queue and queue[0].post():
        queue.popleft()
