"""Messages through shared memory: a ring of descriptors for each direction. Bytes that lie outside of the shared memory
pass through staging slots, or the kernel copies them from the sender's private memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._buffers import CACHE_LINE, as_bytes
from scaleproof.transports.contract import Array, Reducing
from scaleproof.transports.shm.arena import Arena

RING = 64
"""Descriptors that can be under way per ordered pair of ranks."""
SLOTS = 8
SLOT_BYTES = 256 << 10
"""Of a staging slot."""
REDUCE_BYTES = 256 << 10
"""Bytes that a receiver reduces in one call."""
PIECE_BYTES = 128 << 20
"""Bytes that a receiver copies before it reports progress: on a machine that is short of memory, 1 GiB can take longer
than the watchdog lets a rank stand still."""
HALF_BYTES = 2 * CACHE_LINE + RING * 16 + SLOTS * SLOT_BYTES
"""Bytes of one rank's memory for one peer: its head, its tail for the other direction, descriptors, slots."""
PRIVATE = 1 << 63
"""Set in a packet's offset that is an address of the sender's private memory."""


class Channel:
    """One direction between two ranks. `source_base`: offset of the sender's half (head, descriptors, slots) in its
    memory; `destination_base`: offset of the receiver's half (tail) in its memory."""

    def __init__(self, arena: Arena, source: int, source_base: int, destination: int, destination_base: int) -> None:
        self.source_words, self.destination_words = arena.words[source], arena.words[destination]
        self.memory = arena.memory[source]
        self._head, self._tail, self._ring = (
            source_base // 8,
            (destination_base + CACHE_LINE) // 8,
            (source_base + 2 * CACHE_LINE) // 8,
        )
        self._slots = source_base + 2 * CACHE_LINE + RING * 16
        self._source, self._private = source, arena.private
        self._scratch = np.empty(0, np.uint8)
        self.moved = 0
        """Packets and pieces of packets that this rank has published or consumed."""

    @property
    def head(self) -> int:
        """Packets published by the sender."""
        return self.source_words[self._head]

    @property
    def tail(self) -> int:
        """Packets consumed by the receiver."""
        return self.destination_words[self._tail]

    def publish(self, head: int, offset: int, nbytes: int) -> None:
        """Packet number `head` is `nbytes` at `offset` of the sender's shared memory, or with PRIVATE at an address."""
        entry = self._ring + 2 * (head % RING)
        self.source_words[entry], self.source_words[entry + 1] = offset, nbytes
        self.source_words[self._head] = head + 1
        self.moved += 1

    def packet(self, tail: int) -> tuple[int, int]:
        """Offset and bytes of packet number `tail`, as they were published."""
        entry = self._ring + 2 * (tail % RING)
        return self.source_words[entry], self.source_words[entry + 1]

    def read(self, offset: int, target: Array) -> None:
        """Copy bytes of a packet, from `offset` on."""
        if not offset & PRIVATE:
            np.copyto(target, self.memory[offset : offset + target.size])
        elif self._private is None:
            raise TransportError(f"rank {self._source} sent an address of memory that no other rank may read")
        else:
            self._private.reader(self._source, offset ^ PRIVATE, target)()

    def view(self, offset: int, nbytes: int) -> Array:
        """Bytes of a packet, from `offset` on; valid until the next call."""
        if not offset & PRIVATE:
            return self.memory[offset : offset + nbytes]
        if self._scratch.size < nbytes:
            self._scratch = np.empty(nbytes, np.uint8)
        self.read(offset, self._scratch[:nbytes])
        return self._scratch[:nbytes]

    def consume(self, tail: int) -> None:
        """Packet number `tail` may be overwritten."""
        self.destination_words[self._tail] = tail + 1
        self.moved += 1

    def slot(self, head: int) -> int:
        """Offset of the staging slot of packet number `head` in the sender's memory."""
        return self._slots + head % SLOTS * SLOT_BYTES


class Pending:
    """Handle of a message under way; the transport drives it."""

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
    """Publishes one packet when the receiver can copy the bytes from where they lie (done when it has), else one per
    slot (done when staged). `offset`: see Channel.publish; None for bytes that must be staged."""

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
            offset = channel.slot(head)
            channel.memory[offset : offset + chunk.size] = chunk
            channel.publish(head, offset, chunk.size)
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
        ufunc: Reducing | None,
        drive: Callable[[], None],
        block: Callable[[Callable[[], bool]], None],
    ) -> None:
        super().__init__(drive, block)
        self._channel = channel
        self._dtype = buffer.dtype
        self._bytes = as_bytes(buffer)
        self._ufunc = ufunc
        self._position = self._packet_position = 0
        """Bytes received, and those of them that belong to the current packet."""

    def advance(self) -> bool:
        """True when done; only the oldest receive of a channel is advanced."""
        channel, tail = self._channel, self._channel.tail
        while channel.head > tail:
            offset, nbytes = channel.packet(tail)
            remaining = nbytes - self._packet_position
            if remaining > self._bytes.size - self._position:
                raise TransportError(
                    f"a message holds more than the {self._bytes.size} bytes that its receiver expects"
                )
            piece = min(remaining, PIECE_BYTES)
            self._copy(offset + self._packet_position, piece)
            self._position += piece
            if piece < remaining:
                self._packet_position += piece
                channel.moved += 1
                return False
            self._packet_position = 0
            channel.consume(tail)
            tail += 1
            if self._position == self._bytes.size:
                self.done = True
                return True
        return False

    def _copy(self, offset: int, nbytes: int) -> None:
        target = self._bytes[self._position : self._position + nbytes]
        if self._ufunc is None:
            self._channel.read(offset, target)
            return
        for start in range(0, nbytes, REDUCE_BYTES):
            own = target[start : start + REDUCE_BYTES].view(self._dtype)
            self._ufunc(own, self._channel.view(offset + start, own.nbytes).view(self._dtype), out=own)
