"""Messages through shared memory: descriptors that the receiver follows, and staging slots for bytes that lie outside
of the shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._buffers import CACHE_LINE, as_bytes
from scaleproof.transports.contract import Array
from scaleproof.transports.shm.arena import Arena

RING = 64
"""Descriptors that can be under way per ordered pair of ranks."""
SLOTS = 8
SLOT_BYTES = 256 << 10
REDUCE_BYTES = 256 << 10
"""Bytes that a receiver reduces in one go."""
PIECE_BYTES = 128 << 20
"""Bytes that a receiver copies before it tells that they move: on a machine that is short of memory 1 GiB can take
longer than a rank may stand still."""
HALF_BYTES = 2 * CACHE_LINE + RING * 16 + SLOTS * SLOT_BYTES
"""What one rank's memory holds for one peer: its head, its tail for the other direction, descriptors, slots."""


class Channel:
    """One direction between two ranks. `here` is the sender's half (head, descriptors, slots), `there` the receiver's
    (tail)."""

    def __init__(self, arena: Arena, source: int, here: int, destination: int, there: int) -> None:
        self.source_words, self.destination_words = arena.words[source], arena.words[destination]
        self.memory = arena.memory[source]
        self._head, self._tail, self._ring = here // 8, (there + CACHE_LINE) // 8, (here + 2 * CACHE_LINE) // 8
        self._slots = here + 2 * CACHE_LINE + RING * 16
        self.moved = 0
        """Pieces published or taken by this rank."""

    @property
    def head(self) -> int:
        """Packets published by the sender."""
        return self.source_words[self._head]

    @property
    def tail(self) -> int:
        """Packets consumed by the receiver."""
        return self.destination_words[self._tail]

    def publish(self, head: int, offset: int, nbytes: int) -> None:
        """Packet number `head` is `nbytes` at `offset` of the sender's memory."""
        entry = self._ring + 2 * (head % RING)
        self.source_words[entry], self.source_words[entry + 1] = offset, nbytes
        self.source_words[self._head] = head + 1
        self.moved += 1

    def packet(self, tail: int) -> Array:
        """Bytes of packet number `tail`, in the sender's memory."""
        entry = self._ring + 2 * (tail % RING)
        offset = self.source_words[entry]
        return self.memory[offset : offset + self.source_words[entry + 1]]

    def consume(self, tail: int) -> None:
        """Packet number `tail` may be overwritten."""
        self.destination_words[self._tail] = tail + 1
        self.moved += 1

    def slot(self, head: int) -> int:
        """Place of the staging slot of packet number `head`."""
        return self._slots + head % SLOTS * SLOT_BYTES


class Pending:
    """A message under way; the transport drives it."""

    def __init__(self, drive: Callable[[], None], block: Callable[[Callable[[], bool]], None]) -> None:
        self.done = False
        self._drive = drive
        self._block = block

    def test(self) -> bool:
        if not self.done:
            self._drive()
        return self.done

    def wait(self) -> None:
        if not self.done:
            self._block(self.test)


class Send(Pending):
    """Publishes one packet when the bytes lie in the shared memory (done when pulled), else one per slot (done when
    staged)."""

    def __init__(
        self,
        channel: Channel,
        buffer: Array,
        offset: int | None,
        drive: Callable[[], None],
        block: Callable[[Callable[[], bool]], None],
    ) -> None:
        super().__init__(drive, block)
        self._channel = channel
        self._bytes = as_bytes(buffer)
        self._offset = offset
        self._position = 0
        self._last: int | None = None

    def advance(self) -> bool:
        """True when done; only the oldest send of a channel is advanced."""
        if self._offset is None or self._bytes.size == 0:
            self.done = self._stage()
        elif self._last is None:
            head = self._channel.head
            if head - self._channel.tail < RING:
                self._channel.publish(head, self._offset, self._bytes.size)
                self._last = head
        else:
            self.done = self._channel.tail > self._last
        return self.done

    def _stage(self) -> bool:
        channel, head = self._channel, self._channel.head
        while True:
            if head - channel.tail >= SLOTS:
                return False
            chunk = self._bytes[self._position : self._position + SLOT_BYTES]
            place = channel.slot(head)
            channel.memory[place : place + chunk.size] = chunk
            channel.publish(head, place, chunk.size)
            head += 1
            self._position += chunk.size
            if self._position == self._bytes.size:
                return True


class Receive(Pending):
    """Copies or reduces packets into a buffer until it is full."""

    def __init__(
        self,
        channel: Channel,
        buffer: Array,
        ufunc: np.ufunc | None,
        drive: Callable[[], None],
        block: Callable[[Callable[[], bool]], None],
    ) -> None:
        super().__init__(drive, block)
        self._channel = channel
        self._dtype = buffer.dtype
        self._bytes = as_bytes(buffer)
        self._ufunc = ufunc
        self._position = self._taken = 0
        """Bytes that are in place, and those of them that are of the packet at hand."""

    def advance(self) -> bool:
        """True when done; only the oldest receive of a channel is advanced."""
        channel, tail = self._channel, self._channel.tail
        while channel.head > tail:
            packet = channel.packet(tail)
            if packet.size > PIECE_BYTES and not self._last_piece(packet):
                return False
            if self._taken:
                packet, self._taken = packet[self._taken :], 0
            target = self._bytes[self._position : self._position + packet.size]
            if target.size != packet.size:
                raise TransportError(
                    f"a message holds more than the {self._bytes.size} bytes that its receiver expects"
                )
            self._take(target, packet)
            channel.consume(tail)
            tail += 1
            self._position += packet.size
            if self._position == self._bytes.size:
                self.done = True
                return True
        return False

    def _last_piece(self, packet: Array) -> bool:
        """Take a piece of a large packet; True when what is left is no more than one."""
        left = packet.size - self._taken
        if left <= PIECE_BYTES or left > self._bytes.size - self._position:
            return True
        piece = packet[self._taken : self._taken + PIECE_BYTES]
        self._take(self._bytes[self._position : self._position + PIECE_BYTES], piece)
        self._taken += PIECE_BYTES
        self._position += PIECE_BYTES
        self._channel.moved += 1
        return False

    def _take(self, target: Array, packet: Array) -> None:
        if self._ufunc is None:
            np.copyto(target, packet)
            return
        for start in range(0, packet.size, REDUCE_BYTES):
            own = target[start : start + REDUCE_BYTES].view(self._dtype)
            self._ufunc(own, packet[start : start + REDUCE_BYTES].view(self._dtype), out=own)
