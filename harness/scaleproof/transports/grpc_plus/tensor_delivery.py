"""How a requested tensor reaches its receiver: as a message, or by a one-sided write into the receiver's window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, cast

import numpy as np

from scaleproof.transports._allocator import Allocator, RegionExhausted
from scaleproof.transports.contract import Array, Handle, OneSided, PointToPoint

AS_MESSAGE = (1 << 64) - 1
"""In place of an offset: the receiver's window has no room, the tensor comes as a message of the device."""


class Progress(Protocol):
    """What the handle of a receive needs of its transport."""

    def advance(self) -> None:
        """Answer requests of peers and move what is under way."""

    def wait(self, handle: Handle, peer: int) -> None:
        """Block until the handle is done; raises PeerLost."""

    def count_staged(self, nbytes: int) -> None:
        """Count a tensor that needs a bounce buffer."""

    def count_without_room(self) -> None:
        """Count a tensor that comes as a message because the window is full."""


class ReceiveHandle(ABC):
    """Handle of a tensor on its way in. `offset`: where in the own window the sender writes it, in bytes, or
    AS_MESSAGE."""

    offset = 0

    def __init__(self, progress: Progress, peer: int) -> None:
        self._progress, self._peer = progress, peer

    @abstractmethod
    def arrived(self) -> bool:
        """Whether the tensor is in its target buffer."""

    def test(self) -> bool:
        if self.arrived():
            return True
        self._progress.advance()
        return self.arrived()

    def wait(self) -> None:
        self._progress.wait(self, self._peer)


class Delivery(ABC):
    """How tensors travel over the device."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Array:
        """See GrpcPlus.allocate."""

    @abstractmethod
    def expect(self, peer: int, number: int, target: Array) -> ReceiveHandle:
        """Prepare for tensor `number` (from 0) of a peer, before it is requested. `target`: uint8, flat."""

    @abstractmethod
    def deliver(self, peer: int, payload: Array, offset: int, count: int) -> Handle:
        """Start a delivery; with it `count` tensors have been delivered to the peer."""


class MessageDelivery(Delivery):
    """The device has sends and receives."""

    def __init__(self, progress: Progress, device: PointToPoint) -> None:
        self._progress, self._device = progress, device

    def allocate(self, nbytes: int) -> Array:
        return self._device.allocate(nbytes)

    def expect(self, peer: int, number: int, target: Array) -> ReceiveHandle:
        return _MessageReceive(self._progress, peer, self._device.recv(target, peer))

    def deliver(self, peer: int, payload: Array, offset: int, count: int) -> Handle:
        return self._device.send(payload, peer)


class _MessageReceive(ReceiveHandle):
    offset = AS_MESSAGE

    def __init__(self, progress: Progress, peer: int, handle: Handle) -> None:
        super().__init__(progress, peer)
        self._handle = handle

    def arrived(self) -> bool:
        return self._handle.test()


class WindowDelivery(Delivery):
    """The device is one-sided: every rank has a window that its peers write into, with one flag per peer."""

    def __init__(self, progress: Progress, device: OneSided, window_nbytes: int) -> None:
        self._progress, self.device = progress, device
        self.region = device.register(window_nbytes)
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

    def expect(self, peer: int, number: int, target: Array) -> ReceiveHandle:
        offset = self._window.offset(target)
        if offset is not None:
            return _WindowReceive(self._progress, self, peer, number, target, target, offset)
        try:
            bounce_buffer = self._window.allocate(target.nbytes)
        except RegionExhausted:
            if target.nbytes:
                self._progress.count_without_room()
            return _MessageReceive(self._progress, peer, self.device.recv(target, peer))
        if target.nbytes:
            self._progress.count_staged(target.nbytes)
        offset = cast(int, self._window.offset(bounce_buffer))
        return _WindowReceive(self._progress, self, peer, number, target, bounce_buffer, offset)

    def deliver(self, peer: int, payload: Array, offset: int, count: int) -> Handle:
        if offset == AS_MESSAGE:
            handle = self.device.send(payload, peer)
        else:
            handle = self.device.write(payload, self._remote[peer], offset)
        self.device.set_flag(self._remote[peer], count)
        return handle


class _WindowReceive(ReceiveHandle):
    """The peer writes into `landing`, which is the target itself or a bounce buffer."""

    def __init__(
        self,
        progress: Progress,
        delivery: WindowDelivery,
        peer: int,
        number: int,
        target: Array,
        landing: Array,
        offset: int,
    ) -> None:
        super().__init__(progress, peer)
        self._device, self._region, self._target = delivery.device, delivery.region, target
        self._needed_count, self.offset = number + 1, offset
        self._landing: Array | None = landing

    def arrived(self) -> bool:
        if self._landing is not None:
            if self._device.poll_flag(self._region, self._peer) < self._needed_count:
                return False
            if self._landing is not self._target:
                np.copyto(self._target, self._landing)
            self._landing = None
        return True
