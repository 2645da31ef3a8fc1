"""Connections from each node to the next one, the last one's to the first: for meeting, and for what the links give."""

from __future__ import annotations

import select
import socket
import struct
from contextlib import suppress
from typing import Final

from scaleproof.calibrate.loopback_bandwidth import send, take
from scaleproof.core.context import RankContext
from scaleproof.core.handshake import Refused, answer, prove

CONNECT_S = 30.0
CHUNK = 1 << 20
STREAM_S, TRIPS_S = 0.03, 0.01
"""About how long one stream lasts, and the round trips of one repetition."""
FIRST, FEWEST, MOST = 64 << 10, 5, 200
"""Bytes of the first stream, from which longer ones follow; round trips of a repetition."""
_ORDER = struct.Struct("<QQ")
"""To the node that receives: bytes of a stream, and how many of these follow; none: its turn is over."""


class Ring:
    """Of one launch's ranks. Alone a rank meets nobody."""

    def __init__(self, context: RankContext) -> None:
        self.context, self.nodes = context, context.world_size
        self.previous: Final = (context.rank - 1) % self.nodes
        self.nbytes, self.trips = 0, FEWEST

    def __enter__(self) -> Ring:
        if self.nodes > 1:
            context = self.context
            family = socket.AF_INET6 if ":" in context.address else socket.AF_INET
            with socket.create_server((context.address, 0), family=family) as listener:
                places = context.rendezvous.exchange(
                    "sniff.ring", context.rank, self.nodes, [context.address, listener.getsockname()[1]]
                )
                self.to = socket.create_connection(
                    tuple(places[(context.rank + 1) % self.nodes]), CONNECT_S, (context.address, 0)
                )
                self.of = self._acquaint(listener)
            for end in (self.to, self.of):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                end.setblocking(False)
        return self

    def __exit__(self, *_: object) -> None:
        if self.nodes > 1:
            self.to.close()
            self.of.close()

    def _acquaint(self, listener: socket.socket) -> socket.socket:
        """Prove to the next node who we are and have the previous one do so to us; the first does the latter first, or
        all would wait for each other."""
        context = self.context
        of = self._welcome(listener) if context.rank == 0 else None
        prove(self.to, context.token, context.launch_id, context.rank, CONNECT_S)
        return of or self._welcome(listener)

    def _welcome(self, listener: socket.socket) -> socket.socket:
        listener.settimeout(CONNECT_S)
        while True:
            connection = listener.accept()[0]
            with suppress(OSError, Refused):  # strangers are dropped
                if answer(connection, self.context.token, self.context.launch_id) == self.previous:
                    return connection
            connection.close()

    def meet(self) -> None:
        """A barrier, in which nobody's processor is used by waiting: a byte goes round twice."""
        for _ in range(2 if self.nodes > 1 else 0):
            if self.context.rank == 0:
                self.to.send(b"+")
                self._wait()
            else:
                self._wait()
                self.to.send(b"+")

    def _wait(self, most: int = 1) -> bytes:
        select.select([self.of], [], [])
        if not (said := self.of.recv(most)):
            raise ConnectionError(f"rank {self.previous} is gone")
        return said

    def stream(self) -> float:
        """Bytes per second of one stream to the next node. The first calls find how much takes STREAM_S."""
        if not self.nbytes:
            self.nbytes, seconds = FIRST, 0.0
            while (seconds := self._send(self.nbytes, 1)) < STREAM_S / 4:
                self.nbytes *= 2
            self.nbytes = max(int(self.nbytes * STREAM_S / seconds), FIRST)
        return self.nbytes / self._send(self.nbytes, 1)

    def trip(self) -> float:
        """Seconds of a byte there and one back, the mean of several."""
        seconds = self._send(1, self.trips) / self.trips
        self.trips = min(max(int(TRIPS_S / seconds), FEWEST), MOST)
        return seconds

    def _send(self, nbytes: int, times: int) -> float:
        self.to.sendall(_ORDER.pack(nbytes, times))
        payload = memoryview(bytes(CHUNK))
        return sum(send(self.to, payload, nbytes) for _ in range(times))

    def end_turn(self) -> None:
        """The next node need not answer any longer."""
        self.to.sendall(_ORDER.pack(0, 0))

    def answer(self) -> None:
        """The receiver's part of the previous node's turn."""
        buffer = memoryview(bytearray(CHUNK))
        while (order := self._order())[1]:
            for _ in range(order[1]):
                take(self.of, buffer, order[0])

    def _order(self) -> tuple[int, int]:
        said = b""
        while len(said) < _ORDER.size:
            said += self._wait(_ORDER.size - len(said))
        nbytes, times = _ORDER.unpack(said)
        return nbytes, times
