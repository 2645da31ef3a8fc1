"""gRPC+X, the middle class of awan2019: control stays gRPC, tensors go over another transport X.

A receiver asks for a tensor by a gRPC message (number, size, place); the sender delivers it through X, and the delivery
is the answer: one round trip per tensor. Over a one-sided device the sender writes into the receiver's window, where
the tensor belongs (TensorFlow's +Verbs), then sets a tail flag. Over a transport of messages it sends, and the receiver
has posted its receive before it asked (TensorFlow's +MPI, whose requests go over MPI too; ours do not).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec import registry
from scaleproof.transports._allocator import Allocator, RegionExhausted
from scaleproof.transports._barrier import dissemination
from scaleproof.transports._waiting import CROWDED_SPINS, SPINS, wait_until
from scaleproof.transports.base import Array, Capabilities, Handle, OneSided, PointToPoint, Traffic
from scaleproof.transports.grpc import DTYPES, Grpc
from scaleproof.transports.shm.arena import as_bytes

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

WINDOW = 64 << 20
"""Bytes of a rank's window over a one-sided device, unless the case gives its region another size: then half of that.
"""
WORDS = 3
"""A request: number of the tensor among those between the two ranks, its bytes, its place in the receiver's window."""


class GrpcPlus:
    """The part of the case's transport name behind the plus is X. The caller drives progress inside `wait` and `test`;
    only its thread calls X."""

    def __init__(self, context: RankContext, control: Grpc, device: PointToPoint) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._control, self._device, self._post = control, device, context.post
        below = device.capabilities
        self.capabilities = Capabilities(
            point_to_point=True,
            one_sided=False,
            collective=False,
            dtypes=DTYPES & below.dtypes,
            progress="caller",
            path=below.path,
            library=f"{control.capabilities.library} and {below.library}",
        )
        self.counts = {
            "requests": 0,
            "request_nbytes": 0,
            "tensors": 0,
            "tensor_nbytes": 0,
            "staged": 0,
            "staged_nbytes": 0,
        }
        """Of this rank: requests that it made, tensors that it delivered, those of either kind that had to be copied
        because they lay outside the window."""
        context.facts["grpc_plus"] = self.counts
        self._delivery: _Delivery = (
            _Writes(self, cast(OneSided, device), context) if below.one_sided else _Messages(device)
        )
        self._peers = [_Peer(self, peer) if peer != self.rank else None for peer in range(self.world_size)]
        self._spins = CROWDED_SPINS if self.world_size > len(os.sched_getaffinity(0)) else SPINS
        self._under_way: list[Handle] = []
        self._closed = False

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect; joins X, then gRPC."""
        name = str(context.case.transport).partition("+")[2]
        device = registry.load("transport", name).connect(context)
        try:
            control = Grpc.connect(context)
        except BaseException:
            device.close()
            raise
        return cls(context, control, device)

    def allocate(self, nbytes: int) -> Array:
        """Bytes in the own window, where peers deliver without a copy; plain memory where there is none or it is full."""
        return self._delivery.allocate(nbytes)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send; nothing moves before the receiver has asked."""
        self.traffic.count(buffer.nbytes)
        return self._of(peer).send(as_bytes(buffer))

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv; asks for the tensor."""
        return self._of(peer).recv(as_bytes(buffer))

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
        """Take requests, deliver what was asked for, and drive deliveries that nobody waits for at the moment: a device
        moves on only when it is asked."""
        for peer in self._peers:
            if peer is not None:
                peer.advance()
        if self._under_way:
            self._under_way = [delivery for delivery in self._under_way if not delivery.test()]

    def started(self, delivery: Handle) -> Handle:
        """Keep a delivery until it is done."""
        self._under_way.append(delivery)
        return delivery

    def wait(self, handle: Handle, peer: int) -> None:
        """Block until the handle is done; raises PeerLost when the peer's stream has ended before."""
        wait_until(handle.test, partial(self._check, peer), self._spins, self._post, peer)

    def ask(self, request: Array, peer: int) -> None:
        """Send a request; gRPC's thread keeps it until it is gone."""
        self.counts["requests"] += 1
        self.counts["request_nbytes"] += request.nbytes
        self._control.send(request, peer)

    def listen(self, request: Array, peer: int) -> Handle:
        """Wait for the next request of a peer."""
        return self._control.recv(request, peer)

    def staged(self, nbytes: int) -> None:
        """Count a copy."""
        self.counts["staged"] += 1
        self.counts["staged_nbytes"] += nbytes

    def _of(self, peer: int) -> _Peer:
        found = self._peers[peer]
        if found is None:
            raise TransportError(f"rank {self.rank} sends nothing to itself")
        return found

    def _check(self, peer: int) -> None:
        self._of(peer).check()


class _Peer:
    """Both directions between this rank and one other: tensors that the other asks for, tensors that this one waits
    for."""

    def __init__(self, transport: GrpcPlus, peer: int) -> None:
        self.transport, self.peer = transport, peer
        self._request = np.zeros(WORDS, np.uint64)
        self._coming = transport.listen(self._request, peer)
        self._unasked: deque[_Send] = deque()
        self._asked = self._delivered = 0

    def send(self, data: Array) -> Handle:
        """Queue a tensor until it is asked for; requests come in the order of the receives, so the order of the sends
        is theirs."""
        send = _Send(self.transport, self.peer, data)
        self._unasked.append(send)
        self.advance()
        return send

    def recv(self, target: Array) -> Handle:
        """Ask for the next tensor."""
        receive = self.transport._delivery.expect(self, self._asked, target)
        self.transport.ask(np.array([self._asked, target.nbytes, receive.place], np.uint64), self.peer)
        self._asked += 1
        return receive

    def advance(self) -> None:
        """Deliver what is asked for."""
        while self._unasked and self._coming.test():
            number, nbytes, place = (int(word) for word in self._request)
            send = self._unasked.popleft()
            if (number, nbytes) != (self._delivered, send.data.nbytes):
                raise TransportError(
                    f"rank {self.peer} asks for tensor {number} of {nbytes} bytes; rank {self.transport.rank} has {self._delivered} of {send.data.nbytes}"
                )
            self._coming = self.transport.listen(self._request, self.peer)
            self._delivered += 1
            self.transport.counts["tensors"] += 1
            self.transport.counts["tensor_nbytes"] += nbytes
            send.started = self.transport.started(
                self.transport._delivery.deliver(self.peer, send.data, place, self._delivered)
            )

    def check(self) -> None:
        """Raises PeerLost when the peer's stream has ended."""
        self._coming.test()


class _Send:
    """Handle of a tensor on its way out."""

    def __init__(self, transport: GrpcPlus, peer: int, data: Array) -> None:
        self._transport, self._peer, self.data = transport, peer, data
        self.started: Handle | None = None

    def test(self) -> bool:
        self._transport.advance()
        return self.started is not None and self.started.test()

    def wait(self) -> None:
        self._transport.wait(self, self._peer)


class _Receive(ABC):
    """Handle of a tensor on its way in. `place`: where in the own window it shall lie."""

    place = 0

    def __init__(self, transport: GrpcPlus, peer: int) -> None:
        self._transport, self._peer = transport, peer

    @abstractmethod
    def arrived(self) -> bool:
        """Whether the tensor is where it belongs."""

    def test(self) -> bool:
        if self.arrived():
            return True
        self._transport.advance()
        return self.arrived()

    def wait(self) -> None:
        self._transport.wait(self, self._peer)


class _Delivery(ABC):
    """How tensors travel over X."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Array:
        """See GrpcPlus.allocate."""

    @abstractmethod
    def expect(self, peer: _Peer, number: int, target: Array) -> _Receive:
        """Get ready for tensor `number` of a peer."""

    @abstractmethod
    def deliver(self, peer: int, data: Array, place: int, count: int) -> Handle:
        """Start the delivery of what is, with this one, `count` tensors."""


class _Messages(_Delivery):
    """X has sends and receives."""

    def __init__(self, device: PointToPoint) -> None:
        self._device = device

    def allocate(self, nbytes: int) -> Array:
        return self._device.allocate(nbytes)

    def expect(self, peer: _Peer, number: int, target: Array) -> _Receive:
        return _Message(peer, self._device.recv(target, peer.peer))

    def deliver(self, peer: int, data: Array, place: int, count: int) -> Handle:
        return self._device.send(data, peer)


class _Message(_Receive):
    def __init__(self, peer: _Peer, handle: Handle) -> None:
        super().__init__(peer.transport, peer.peer)
        self._handle = handle

    def arrived(self) -> bool:
        return self._handle.test()


class _Writes(_Delivery):
    """X is a one-sided device: every rank has a window that its peers write into, with one flag per peer."""

    def __init__(self, transport: GrpcPlus, device: OneSided, context: RankContext) -> None:
        given = getattr(context.case, "region_mib", None)
        self._transport, self.device = transport, device
        self.region = device.register(round(given * (1 << 19)) if given else WINDOW)
        assert self.region.local is not None
        self._remote = {
            peer: device.remote(self.region, peer) for peer in range(device.world_size) if peer != device.rank
        }
        self._window = Allocator(memoryview(self.region.local), "window")  # type: ignore[arg-type]

    def allocate(self, nbytes: int) -> Array:
        try:
            return self._window.allocate(nbytes)
        except RegionExhausted:
            return np.empty(nbytes, np.uint8)

    def expect(self, peer: _Peer, number: int, target: Array) -> _Receive:
        return _Written(self, peer, number, target)

    def deliver(self, peer: int, data: Array, place: int, count: int) -> Handle:
        handle = self.device.write(data, self._remote[peer], place)
        self.device.set_flag(self._remote[peer], count)
        return handle

    def land(self, target: Array) -> tuple[Array, int]:
        """Where a tensor shall arrive, and that as an offset in the window: in place, or in a bounce buffer."""
        place = self._window.offset(target)
        if place is not None:
            return target, place
        bounce = self._window.allocate(target.nbytes)
        if target.nbytes:
            self._transport.staged(target.nbytes)
        return bounce, cast(int, self._window.offset(bounce))


class _Written(_Receive):
    def __init__(self, delivery: _Writes, peer: _Peer, number: int, target: Array) -> None:
        super().__init__(peer.transport, peer.peer)
        self._device, self._region, self._wanted, self._target = delivery.device, delivery.region, number + 1, target
        self._landing: Any
        self._landing, self.place = delivery.land(target)

    def arrived(self) -> bool:
        if self._landing is not None:
            if self._device.poll_flag(self._region, self._peer) < self._wanted:
                return False
            if self._landing is not self._target:
                np.copyto(self._target, self._landing)
            self._landing = None
        return True
