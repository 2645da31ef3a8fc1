"""gRPC+X, the middle class of awan2019: control stays on gRPC, tensors go over another transport X, the device.

A receiver requests a tensor by a gRPC message (number, bytes, offset). The sender delivers it over X, and the delivery
is the answer: one round trip per tensor. Over a one-sided device the sender writes into the receiver's window, where
the tensor belongs (TensorFlow's +Verbs), then sets a tail flag. Over a transport of messages it sends, and the receiver
has posted its receive before its request (TensorFlow's +MPI, whose requests go over MPI too; ours do not).
"""

from __future__ import annotations

import os
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec import registry
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports._waiting import CROWDED_SPINS, SPINS, wait_until
from scaleproof.transports.contract import Array, Capabilities, Handle, OneSided, PointToPoint, Traffic
from scaleproof.transports.grpc import Grpc
from scaleproof.transports.grpc_plus.tensor_delivery import Delivery, MessageDelivery, WindowDelivery

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext
    from scaleproof.spec.case import AnyCase

WINDOW_MIB = 64
"""A rank's window over a one-sided device, in MiB, unless the case sets another size."""
REQUEST_WORDS = 3
"""A request in words of 8 bytes: number of the tensor between the two ranks, its bytes, its offset in the receiver's
window."""


class GrpcPlus:
    """Base of every gRPC+X transport. The caller drives progress inside `wait` and `test`; only its thread calls X."""

    DEVICE: ClassVar[str]
    """Name of the transport X."""

    def __init__(self, context: RankContext, control: Grpc, device: PointToPoint) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._control, self._device, self._post = control, device, context.post
        self.capabilities = Capabilities(
            point_to_point=True,
            one_sided=False,
            collective=False,
            dtypes=control.capabilities.dtypes & device.capabilities.dtypes,
            progress="caller",
            path=device.capabilities.path,
            library=f"{control.capabilities.library} and {device.capabilities.library}",
        )
        names = ("requests", "request_nbytes", "tensors", "tensor_nbytes", "staged", "staged_nbytes", "without_room")
        self.counts = dict.fromkeys(names, 0)
        """Of this rank: requests that it made, tensors that it delivered, tensors that it received through a bounce
        buffer because their targets lie outside the window, and those that came as messages of the device because the
        window had no room for a bounce buffer either."""
        context.facts["grpc_plus"] = self.counts
        self.delivery = self._make_delivery(context)
        self._exchanges = [TensorExchange(self, peer) if peer != self.rank else None for peer in range(self.world_size)]
        self._spins = CROWDED_SPINS if self.world_size > len(os.sched_getaffinity(0)) else SPINS
        self._under_way: list[Handle] = []
        self._closed = False

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect; joins X, then gRPC."""
        device = registry.load("transport", cls.DEVICE).connect(context)
        try:
            control = Grpc.connect(context)
        except BaseException:
            device.close()
            raise
        return cls(context, control, device)

    @staticmethod
    def window_mib(case: AnyCase) -> float:
        """Size of a rank's window over a one-sided device, in MiB."""
        return WINDOW_MIB

    def allocate(self, nbytes: int) -> Array:
        """Bytes in the own window, where peers deliver without a copy; plain memory without a window or a full one."""
        return self.delivery.allocate(nbytes)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send; nothing moves before the receiver's request."""
        self.traffic.count(buffer.nbytes)
        return self._exchange(peer).send(as_bytes(buffer))

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv; requests the tensor."""
        return self._exchange(peer).recv(as_bytes(buffer))

    def barrier(self) -> None:
        """See Transport.barrier."""
        dissemination(self)

    def close(self) -> None:
        """See Transport.close; X first: what was delivered over it may still be under way."""
        if not self._closed:
            self._closed = True
            self._device.close()
            self._control.close()

    def advance(self) -> None:
        """Answer requests, and drive deliveries that nobody waits for at the moment: a device makes progress only when
        it is called."""
        for exchange in self._exchanges:
            if exchange is not None:
                exchange.advance()
        if self._under_way:
            self._under_way = [delivery for delivery in self._under_way if not delivery.test()]

    def deliver(self, peer: int, payload: Array, offset: int, count: int) -> Handle:
        """Start a delivery and drive it until it is done; see Delivery.deliver."""
        handle = self.delivery.deliver(peer, payload, offset, count)
        self._under_way.append(handle)
        return handle

    def wait(self, handle: Handle, peer: int) -> None:
        """Block until the handle is done; raises PeerLost when the peer's stream has ended before."""
        wait_until(handle.test, partial(self.check_peer, peer), self._spins, self._post, peer)

    def send_request(self, request: Array, peer: int) -> None:
        """Send a request; gRPC's thread keeps it until it is sent."""
        self.counts["requests"] += 1
        self.counts["request_nbytes"] += request.nbytes
        self._control.send(request, peer)

    def receive_request(self, request: Array, peer: int) -> Handle:
        """Start receiving the next request of a peer."""
        return self._control.recv(request, peer)

    def count_staged(self, nbytes: int) -> None:
        """See Progress.count_staged."""
        self.counts["staged"] += 1
        self.counts["staged_nbytes"] += nbytes

    def count_without_room(self) -> None:
        """See Progress.count_without_room."""
        self.counts["without_room"] += 1

    def _make_delivery(self, context: RankContext) -> Delivery:
        if not self._device.capabilities.one_sided:
            return MessageDelivery(self, self._device)
        nbytes = round(self.window_mib(context.case) * (1 << 20))
        return WindowDelivery(self, cast(OneSided, self._device), nbytes)

    def _exchange(self, peer: int) -> TensorExchange:
        exchange = self._exchanges[peer]
        if exchange is None:
            raise TransportError(f"rank {self.rank} sends nothing to itself")
        return exchange

    def check_peer(self, peer: int) -> None:
        """See WatchesPeers.check_peer."""
        self._control.check_peer(peer)


class TensorExchange:
    """Both directions between this rank and one peer: tensors that the peer requests, and those that it delivers."""

    def __init__(self, transport: GrpcPlus, peer: int) -> None:
        self.transport, self.peer = transport, peer
        self._request = np.zeros(REQUEST_WORDS, np.uint64)
        self._next_request = transport.receive_request(self._request, peer)
        self._not_requested: deque[_SendHandle] = deque()
        self._requested = self._delivered = 0

    def send(self, payload: Array) -> Handle:
        """Queue a tensor until it is requested. Requests come in the order of the receives, which is the order of the
        sends."""
        handle = _SendHandle(self.transport, self.peer, payload)
        self._not_requested.append(handle)
        self.advance()
        return handle

    def recv(self, target: Array) -> Handle:
        """Request the next tensor."""
        handle = self.transport.delivery.expect(self.peer, self._requested, target)
        self.transport.send_request(np.array([self._requested, target.nbytes, handle.offset], np.uint64), self.peer)
        self._requested += 1
        return handle

    def advance(self) -> None:
        """Deliver what is requested; raises TransportError when a request does not match the tensor that was sent."""
        while self._not_requested and self._next_request.test():
            number, nbytes, offset = (int(word) for word in self._request)
            handle = self._not_requested.popleft()
            if (number, nbytes) != (self._delivered, handle.payload.nbytes):
                raise TransportError(
                    f"rank {self.peer} requests tensor {number} of {nbytes} bytes; "
                    f"rank {self.transport.rank} has tensor {self._delivered} of {handle.payload.nbytes} bytes"
                )
            self._next_request = self.transport.receive_request(self._request, self.peer)
            self._delivered += 1
            self.transport.counts["tensors"] += 1
            self.transport.counts["tensor_nbytes"] += nbytes
            handle.delivery = self.transport.deliver(self.peer, handle.payload, offset, self._delivered)


class _SendHandle:
    """Handle of a tensor on its way out; `delivery` is None until the tensor is requested."""

    def __init__(self, transport: GrpcPlus, peer: int, payload: Array) -> None:
        self._transport, self._peer, self.payload = transport, peer, payload
        self.delivery: Handle | None = None

    def test(self) -> bool:
        self._transport.advance()
        return self.delivery is not None and self.delivery.test()

    def wait(self) -> None:
        self._transport.wait(self, self._peer)
