"""Sends and receives between two ranks. Small messages are eager: two-sided sends, copied out of a receive slot. Large
ones use a rendezvous: the receiver grants memory, and the sender writes the bytes there with immediate data, without a
copy at either side where both buffers are registered."""

from __future__ import annotations

import struct
import time
from collections import deque
from typing import NamedTuple

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array, Reducing
from scaleproof.transports.verbs.credits import NUMBERS, Kind, pack
from scaleproof.transports.verbs.one_sided_transfers import Transfer
from scaleproof.transports.verbs.peer_connection import (
    BULK_RECEIVES,
    SLOT_BYTES,
    STAGE_BYTES,
    CallHandle,
    PeerConnection,
)

_GRANT = struct.Struct("<QQQQQ")
REPORT_WAITING_NS = 500_000_000
"""A large message that waits this long for a grant is reported to the receiver, once. A receiver that is in time causes
no such message."""
LARGER = f"more than {SLOT_BYTES}"


class Grant(NamedTuple):
    """Number and bytes of a message, offset and bytes of the piece, and the address where the sender writes it."""

    number: int
    total: int
    offset: int
    nbytes: int
    address: int

    def pack(self) -> bytes:
        """As the payload of a message."""
        return _GRANT.pack(*self)

    @classmethod
    def unpack(cls, payload: Array) -> Grant:
        """From the payload of a message."""
        return cls._make(_GRANT.unpack(payload.tobytes()))


class Sending(CallHandle):
    """A message on its way out."""

    def __init__(self, connection: PeerConnection, number: int, data: Array) -> None:
        super().__init__(connection)
        self.number, self.data = number, data
        self.since: int | None = time.monotonic_ns()
        """When it began to wait for a grant; None once the receiver knows of it."""


class Outbox:
    """Messages to one peer."""

    def __init__(self, connection: PeerConnection) -> None:
        self._connection = connection
        self._count = 0
        self._small: deque[Sending] = deque()
        self._large: deque[Sending] = deque()
        self._grants: deque[Grant] = deque()
        self._transfer: Transfer | None = None

    def send(self, data: Array) -> Sending:
        """Start sending flat bytes."""
        sending = Sending(self._connection, self._count, data)
        self._count += 1
        (self._small if data.size <= SLOT_BYTES else self._large).append(sending)
        self.push()
        return sending

    def granted(self, payload: Array) -> None:
        """The peer has granted memory for a piece."""
        self._grants.append(Grant.unpack(payload))

    def push(self) -> None:
        """Post what can be posted, in order."""
        while self._small and self._connection.may_send():
            self._post(self._small.popleft())
        while self._large and self._grants and self._fill(self._large[0], self._grants[0]):
            self._grants.popleft()
        if self._large and not self._grants:
            self._report_waiting(self._large[0])

    def _report_waiting(self, sending: Sending) -> None:
        if sending.since is None or time.monotonic_ns() - sending.since <= REPORT_WAITING_NS:
            return
        if self._connection.may_send():
            sending.since = None
            self._connection.send_message(Kind.WAITING, sending.number)

    def _post(self, sending: Sending) -> None:
        connection, data = self._connection, sending.data
        inline = connection.control.goes_inline(connection.e.IBV_WR_SEND_WITH_IMM, data.size)
        if inline or not data.size:
            connection.send_message(Kind.DATA, sending.number, pieces=[(address_of(data), data.size)])
            sending.finish()
        elif connection.device.region.offset(data) is not None:
            connection.send_message(
                Kind.DATA, sending.number, pieces=[(address_of(data), data.size)], callback=sending.finish
            )
        else:
            connection.send_message(Kind.DATA, sending.number, payload=data)
            connection.copies["staged to send"] += data.size
            sending.finish()

    def _fill(self, sending: Sending, grant: Grant) -> bool:
        """Write the granted piece; True when all of it is posted."""
        number, total, offset, nbytes, address = grant
        connection, ends = self._connection, offset + nbytes == sending.data.size
        if (number, total) != (sending.number, sending.data.size):
            own = f"message {sending.number} of {sending.data.size} bytes"
            connection.fail(
                TransportError(f"rank {connection.peer} expects message {number} of {total} bytes where {own} goes")
            )
            return False
        sending.since = None
        if self._transfer is None:
            queue_pair, piece = connection.bulk[number % len(connection.bulk)], sending.data[offset : offset + nbytes]
            finish = sending.finish if ends else None
            self._transfer = Transfer(
                connection, queue_pair, piece, address, finish, imm=pack(Kind.FILLED, 0, number), early=True
            )
        if not self._transfer.step():
            return False
        self._transfer = None
        if ends:
            self._large.popleft()
        return True


class Receiving(CallHandle):
    """A message on its way in. `pieces`: bytes of each piece that was granted and is not filled yet, with its bounce
    buffer (None: written directly into the buffer)."""

    def __init__(
        self, connection: PeerConnection, number: int, buffer: Array, data: Array, ufunc: Reducing | None
    ) -> None:
        super().__init__(connection)
        self.number, self.data = number, data
        self._dtype, self._ufunc = buffer.dtype, ufunc
        self.direct = ufunc is None and connection.device.region.offset(data) is not None
        self.granted = self.filled = 0
        self.pieces: deque[tuple[int, Array | None]] = deque()

    def accept(self, source: Array) -> None:
        """Copy or reduce the next bytes into the buffer."""
        target = self.data[self.filled : self.filled + source.size]
        if self._ufunc is None:
            np.copyto(target, source)
            self.connection.copies["received"] += source.size
        else:
            own = target.view(self._dtype)
            self._ufunc(own, source.view(self._dtype), out=own)

    def advance(self, nbytes: int) -> None:
        """Count bytes that have arrived in the buffer."""
        self.filled += nbytes
        if self.filled == self.data.size:
            self.finish()


class Inbox:
    """Messages from one peer."""

    def __init__(self, connection: PeerConnection) -> None:
        self._connection = connection
        self._count = 0
        self._small: deque[Receiving] = deque()
        self._early: deque[tuple[int, Array]] = deque()
        self._large: dict[int, Receiving] = {}
        self._waiting: set[int] = set()
        """Numbers of large messages that the peer has reported and for which there is no receive yet."""
        self._ungranted: deque[Receiving] = deque()
        self._outstanding = [0] * len(connection.bulk)

    def recv(self, buffer: Array, data: Array, ufunc: Reducing | None) -> Receiving:
        """Start receiving into `buffer`, whose flat bytes are `data`."""
        receiving = Receiving(self._connection, self._count, buffer, data, ufunc)
        self._count += 1
        if data.size > SLOT_BYTES:
            self._waiting.discard(receiving.number % NUMBERS)
            self._large[receiving.number % NUMBERS] = receiving
            self._ungranted.append(receiving)
            self.push()
        else:
            self._small.append(receiving)
            if receiving.number % NUMBERS in self._waiting:
                self._mismatch(receiving.number, LARGER, receiving)
            elif self._early:
                self._match(*self._early.popleft())
        return receiving

    def arrived(self, number: int, payload: Array) -> None:
        """A small message has arrived. Without a receive for it a copy is kept, so that its slot is free for the
        next."""
        if self._small:
            self._match(number, payload)
        elif number in self._large:
            self._mismatch(number, str(payload.size), self._large[number])
        else:
            self._early.append((number, payload.copy()))
            self._connection.copies["kept"] += payload.size

    def waits(self, number: int) -> None:
        """The peer waits for a grant: the receive is late, or it expects a small message."""
        mismatched = next((receiving for receiving in self._small if receiving.number % NUMBERS == number), None)
        if mismatched is not None:
            self._mismatch(number, LARGER, mismatched)
        elif number not in self._large:
            self._waiting.add(number)

    def filled(self, queue_pair: int, number: int) -> None:
        """The oldest granted piece of a large message has been written."""
        receiving = self._large[number]
        nbytes, stage = receiving.pieces.popleft()
        self._outstanding[queue_pair] -= 1
        if stage is not None:
            receiving.accept(stage[:nbytes])
            self._connection.stages_in.release(stage)
        receiving.advance(nbytes)
        if receiving.done:
            del self._large[number]

    def push(self) -> None:
        """Grant what can be granted, in order: everything at once for a registered buffer, else as much as there are
        bounce buffers."""
        while self._ungranted:
            receiving = self._ungranted[0]
            queue_pair = receiving.number % len(self._outstanding)
            if self._outstanding[queue_pair] == BULK_RECEIVES or not self._connection.may_send():
                return
            stage = None if receiving.direct else self._connection.stages_in.acquire()
            if stage is None and not receiving.direct:
                return
            self._grant(receiving, stage)
            self._outstanding[queue_pair] += 1
            if receiving.granted == receiving.data.size:
                self._ungranted.popleft()

    def _grant(self, receiving: Receiving, stage: Array | None) -> None:
        remaining = receiving.data.size - receiving.granted
        nbytes = remaining if stage is None else min(STAGE_BYTES, remaining)
        address = address_of(receiving.data if stage is None else stage)
        self._connection.send_message(
            Kind.GRANT, payload=Grant(receiving.number, receiving.data.size, receiving.granted, nbytes, address).pack()
        )
        receiving.pieces.append((nbytes, stage))
        receiving.granted += nbytes

    def _match(self, number: int, payload: Array) -> None:
        receiving = self._small[0]
        if number != receiving.number % NUMBERS or payload.size != receiving.data.size:
            self._mismatch(number, str(payload.size), receiving)
            return
        self._small.popleft()
        receiving.accept(payload)
        receiving.advance(payload.size)

    def _mismatch(self, number: int, nbytes: str, receiving: Receiving) -> None:
        expected = f"message {receiving.number} of {receiving.data.size} bytes"
        self._connection.fail(
            TransportError(
                f"rank {self._connection.peer} sent message {number} of {nbytes} bytes where {expected} was expected"
            )
        )
