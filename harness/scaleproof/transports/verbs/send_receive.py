"""Sends and receives between two ranks. Small messages travel as two-sided sends and are copied out of a receive slot;
for large ones the receiver tells where the bytes may be written (a grant), and the sender writes them there with
immediate data: no copy at either side where both buffers are registered."""

from __future__ import annotations

import struct
import time
from collections import deque

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._buffers import address_of
from scaleproof.transports.contract import Array
from scaleproof.transports.verbs.credits import NUMBERS, Kind, pack
from scaleproof.transports.verbs.one_sided_transfers import Transfer
from scaleproof.transports.verbs.peer_connection import BULK_RECEIVES, SLOT, STAGE, Call, Link

GRANT = struct.Struct("<QQQQQ")
"""Number and bytes of the message, offset and bytes of the piece, the address where it goes."""
TELL_NS = 500_000_000
"""A large message that got no place for so long is told of, once. Receivers that come in time cost no message."""
LARGER = f"more than {SLOT}"


class Sending(Call):
    """A message on its way out."""

    def __init__(self, link: Link, number: int, data: Array) -> None:
        super().__init__(link)
        self.number, self.data = number, data
        self.since: int | None = time.monotonic_ns()
        """When it began to wait for a place; None once there is nothing more to tell the receiver."""


class Outbox:
    """What goes to one peer."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._count = 0
        self._small: deque[Sending] = deque()
        self._large: deque[Sending] = deque()
        self._grants: deque[tuple[int, int, int, int, int]] = deque()
        self._transfer: Transfer | None = None

    def send(self, data: Array) -> Sending:
        """Start sending flat bytes."""
        sending = Sending(self._link, self._count, data)
        self._count += 1
        (self._small if data.size <= SLOT else self._large).append(sending)
        self.push()
        return sending

    def granted(self, payload: Array) -> None:
        """The peer told where a piece may be written."""
        self._grants.append(GRANT.unpack(payload.tobytes()))

    def push(self) -> None:
        """Post what can be posted, in order."""
        while self._small and self._link.may_say():
            self._post(self._small.popleft())
        while self._large and self._grants and self._fill(self._large[0], self._grants[0]):
            self._grants.popleft()
        if self._large and not self._grants:
            self._tell(self._large[0])

    def _tell(self, sending: Sending) -> None:
        if sending.since is not None and time.monotonic_ns() - sending.since > TELL_NS and self._link.may_say():
            sending.since = None
            self._link.say(Kind.WAITING, sending.number)

    def _post(self, sending: Sending) -> None:
        link, data = self._link, sending.data
        inline = link.control.goes_inline(link.e.IBV_WR_SEND_WITH_IMM, data.size)
        if inline or not data.size:
            link.say(Kind.DATA, sending.number, pieces=[(address_of(data), data.size)])
            sending.finish()
        elif link.device.region.offset(data) is not None:
            link.say(Kind.DATA, sending.number, pieces=[(address_of(data), data.size)], done=sending.finish)
        else:
            link.say(Kind.DATA, sending.number, payload=data)
            link.copies["staged to send"] += data.size
            sending.finish()

    def _fill(self, sending: Sending, grant: tuple[int, int, int, int, int]) -> bool:
        """Write the granted piece; True when all of it is posted."""
        number, total, offset, nbytes, address = grant
        link, ends = self._link, offset + nbytes == sending.data.size
        if (number, total) != (sending.number, sending.data.size):
            wanted = f"message {sending.number} of {sending.data.size} bytes"
            link.fail(TransportError(f"rank {link.peer} expects message {number} of {total} bytes where {wanted} goes"))
            return False
        sending.since = None
        if self._transfer is None:
            lane, piece = link.bulk[number % len(link.bulk)], sending.data[offset : offset + nbytes]
            finish = sending.finish if ends else None
            self._transfer = Transfer(link, lane, piece, address, finish, imm=pack(Kind.FILLED, 0, number), early=True)
        if not self._transfer.step():
            return False
        self._transfer = None
        if ends:
            self._large.popleft()
        return True


class Receiving(Call):
    """A message on its way in. `pieces`: what was granted and is not filled yet, with the staging memory where it goes
    (None: into place)."""

    def __init__(self, link: Link, number: int, buffer: Array, data: Array, ufunc: np.ufunc | None) -> None:
        super().__init__(link)
        self.number, self.data = number, data
        self._dtype, self._ufunc = buffer.dtype, ufunc
        self.direct = ufunc is None and link.device.region.offset(data) is not None
        self.granted = self.filled = 0
        self.pieces: deque[tuple[int, Array | None]] = deque()

    def take(self, source: Array) -> None:
        """Copy or reduce what follows into place."""
        target = self.data[self.filled : self.filled + source.size]
        if self._ufunc is None:
            np.copyto(target, source)
            self.link.copies["received"] += source.size
        else:
            own = target.view(self._dtype)
            self._ufunc(own, source.view(self._dtype), out=own)

    def advance(self, nbytes: int) -> None:
        """So many bytes are in place."""
        self.filled += nbytes
        if self.filled == self.data.size:
            self.finish()


class Inbox:
    """What comes from one peer."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._count = 0
        self._small: deque[Receiving] = deque()
        self._early: deque[tuple[int, Array]] = deque()
        self._large: dict[int, Receiving] = {}
        self._waiting: set[int] = set()
        """Large messages that the peer told of and for which there is no receive yet."""
        self._ungranted: deque[Receiving] = deque()
        self._outstanding = [0] * len(link.bulk)

    def recv(self, buffer: Array, data: Array, ufunc: np.ufunc | None) -> Receiving:
        """Start receiving into `buffer`, whose flat bytes are `data`."""
        receiving = Receiving(self._link, self._count, buffer, data, ufunc)
        self._count += 1
        if data.size > SLOT:
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
        """A small message is here; without a receive for it, it is kept, so that its slot is free for the next."""
        if self._small:
            self._match(number, payload)
        elif number in self._large:
            self._mismatch(number, str(payload.size), self._large[number])
        else:
            self._early.append((number, payload.copy()))
            self._link.copies["kept"] += payload.size

    def waits(self, number: int) -> None:
        """The peer has a large message that got no place: late is the receive, or one for a small message."""
        wrong = next((receiving for receiving in self._small if receiving.number % NUMBERS == number), None)
        if wrong is not None:
            self._mismatch(number, LARGER, wrong)
        elif number not in self._large:
            self._waiting.add(number)

    def filled(self, lane: int, number: int) -> None:
        """The oldest granted piece of a large message has been written."""
        receiving = self._large[number]
        nbytes, stage = receiving.pieces.popleft()
        self._outstanding[lane] -= 1
        if stage is not None:
            receiving.take(stage[:nbytes])
            self._link.stages_in.give(stage)
        receiving.advance(nbytes)
        if receiving.done:
            del self._large[number]

    def push(self) -> None:
        """Grant what can be granted, in order: everything at once to a registered buffer, else as much as there is
        staging memory."""
        while self._ungranted:
            receiving = self._ungranted[0]
            lane = receiving.number % len(self._outstanding)
            if self._outstanding[lane] == BULK_RECEIVES or not self._link.may_say():
                return
            stage = None if receiving.direct else self._link.stages_in.take()
            if stage is None and not receiving.direct:
                return
            self._grant(receiving, stage)
            self._outstanding[lane] += 1
            if receiving.granted == receiving.data.size:
                self._ungranted.popleft()

    def _grant(self, receiving: Receiving, stage: Array | None) -> None:
        left = receiving.data.size - receiving.granted
        nbytes = left if stage is None else min(STAGE, left)
        place = address_of(receiving.data if stage is None else stage)
        self._link.say(
            Kind.GRANT, payload=GRANT.pack(receiving.number, receiving.data.size, receiving.granted, nbytes, place)
        )
        receiving.pieces.append((nbytes, stage))
        receiving.granted += nbytes

    def _match(self, number: int, payload: Array) -> None:
        receiving = self._small[0]
        if number != receiving.number % NUMBERS or payload.size != receiving.data.size:
            self._mismatch(number, str(payload.size), receiving)
            return
        self._small.popleft()
        receiving.take(payload)
        receiving.advance(payload.size)

    def _mismatch(self, number: int, nbytes: str, receiving: Receiving) -> None:
        wanted = f"message {receiving.number} of {receiving.data.size} bytes"
        self._link.fail(
            TransportError(
                f"rank {self._link.peer} sent message {number} of {nbytes} bytes where {wanted} was expected"
            )
        )
