"""A mailbox over TCP: one socket per pair of ranks, a thread that receives and a thread that answers calls.

The receiving thread takes everything that arrives and never sends, so that no two ranks can wait for each other's
buffers: a send ends when the socket has accepted all of it.
"""

from __future__ import annotations

import queue
import select
import selectors
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.core.handshake import connect_all
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports.contract import REAL_DTYPES, Capabilities, Traffic
from scaleproof.transports.mailbox import ANY, Arrivals, Message, Serve

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

HEADER = struct.Struct("<BBHIqQ")
"""Kind, number of the element type, bytes of the name, number of the call, tag, bytes of the payload."""
MESSAGE, CALL, ANSWER, END = range(4)
DTYPES = sorted(REAL_DTYPES)
CHUNK = 1 << 20
"""Bytes per system call, so that one peer does not keep others waiting."""
SILENT_S = 0.001
"""How long a thread waits before it reports on the board that it waits."""


@dataclass(slots=True)
class _Incoming:
    """What arrives on one connection: a header, then a name, then a payload."""

    peer: int
    connected: socket.socket
    header: bytearray = field(default_factory=lambda: bytearray(HEADER.size))
    name: bytearray = field(default_factory=bytearray)
    value: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8))
    received: int = 0

    def pull(self) -> bool:
        """Receives what has arrived, at most a chunk; True when a frame is whole. Raises PeerLost, BlockingIOError."""
        part, offset = self._part()
        count = self.connected.recv_into(part[offset : offset + CHUNK])
        if not count:
            raise PeerLost(self.peer, f"rank {self.peer} closed the connection")
        self.received += count
        if self.received == HEADER.size:
            self._read_header()
        return self.received >= HEADER.size and self.received == self._whole

    def _part(self) -> tuple[memoryview, int]:
        """What the next bytes belong to, and how many of it have arrived."""
        offset = self.received
        for part in (self.header, self.name):
            if offset < len(part):
                return memoryview(part), offset
            offset -= len(part)
        return as_bytes(self.value).data, offset

    def _read_header(self) -> None:
        _, dtype, length, _, _, nbytes = HEADER.unpack(self.header)
        if dtype >= len(DTYPES) or nbytes % np.dtype(DTYPES[dtype]).itemsize:
            raise TransportError(f"rank {self.peer} sent a frame of {nbytes} bytes with element type {dtype}")
        self.name = bytearray(length)
        self.value = np.empty(nbytes // np.dtype(DTYPES[dtype]).itemsize, DTYPES[dtype])

    @property
    def _whole(self) -> int:
        return HEADER.size + len(self.name) + self.value.nbytes


class TcpMailbox:
    """See transports/mailbox.py."""

    capabilities = Capabilities(
        point_to_point=True,
        one_sided=False,
        collective=False,
        dtypes=REAL_DTYPES,
        progress="background",
        path="socket",
        library="scaleproof tcp mailbox",
    )

    def __init__(self, context: RankContext, serve: Serve) -> None:
        self.rank, self.world_size, self.traffic = context.rank, context.world_size, Traffic()
        self._serve, self._post = serve, context.post
        self._sockets = connect_all(context, "mailbox")
        self._sending = {peer: threading.Lock() for peer in self._sockets}
        self._changed = threading.Condition()
        self._messages = Arrivals()
        self._answers: dict[int, np.ndarray] = {}
        self._calls = 0
        self._ended: set[int] = set()
        self._error: TransportError | None = None
        self._to_answer: queue.SimpleQueue[tuple[int, int, str, np.ndarray] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._receive_all, self._answer_all)]
        for thread in self._threads:
            thread.start()

    def send(self, value: np.ndarray, peer: int, tag: int) -> None:
        """See Mailbox.send."""
        if peer == self.rank:
            self._arrive(Message(peer, tag, value.copy()))
        else:
            self._push(peer, MESSAGE, value, tag=tag)

    def receive(self, source: int, tag: int) -> Message:
        """See Mailbox.receive."""
        with self._changed:
            while (message := self._messages.take(source, tag)) is None:
                self._raise_if_gone(source, f"a message with tag {tag}")
                self._wait(source)
            return message

    def call(self, value: np.ndarray, peer: int, name: str) -> np.ndarray:
        """See Mailbox.call."""
        with self._changed:
            number = self._calls
            self._calls += 1
        self._push(peer, CALL, value, name=name, number=number)
        with self._changed:
            while number not in self._answers:
                self._raise_if_failed()
                self._wait(peer)
            return self._answers.pop(number)

    def close(self) -> None:
        """See Mailbox.close."""
        if not self._sockets:
            return
        for peer in self._sockets:
            self._push(peer, END, np.empty(0, np.uint8))
        with self._changed:
            while len(self._ended) < len(self._sockets):
                self._raise_if_failed()
                self._wait(min(set(self._sockets) - self._ended))
        self.abandon()

    def abandon(self) -> None:
        """See Mailbox.abandon."""
        self._to_answer.put(None)
        for connected in self._sockets.values():
            connected.close()
        self._sockets = {}

    def _push(self, peer: int, kind: int, value: np.ndarray, *, tag: int = 0, name: str = "", number: int = 0) -> None:
        """Sends a frame; returns when the socket has accepted all of it."""
        connected, encoded = self._sockets[peer], name.encode()
        header = HEADER.pack(kind, DTYPES.index(value.dtype.name), len(encoded), number, tag, value.nbytes)
        parts = [memoryview(header + encoded), as_bytes(value).data]
        self.traffic.count(value.nbytes)
        with self._sending[peer]:
            while parts[0] or parts[1]:
                try:
                    sent = connected.sendmsg((parts[0], parts[1][:CHUNK]))
                except BlockingIOError:
                    select.select([], [connected], [])
                    continue
                except OSError as error:
                    raise PeerLost(peer, f"rank {peer} is gone: {error.strerror}") from error
                head = min(sent, len(parts[0]))
                parts = [parts[0][head:], parts[1][sent - head :]]

    def _receive_all(self) -> None:
        """The receiving thread: until all ranks have ended and closed, or one is gone."""
        with selectors.DefaultSelector() as selector:
            for peer, connected in self._sockets.items():
                selector.register(connected, selectors.EVENT_READ, _Incoming(peer, connected))
            try:
                while selector.get_map():
                    for key, _ in selector.select():
                        self._pull(selector, key.data)
            except (TransportError, OSError) as error:
                with self._changed:
                    self._error = error if isinstance(error, TransportError) else TransportError(str(error))
                    self._changed.notify_all()

    def _pull(self, selector: selectors.BaseSelector, incoming: _Incoming) -> None:
        try:
            whole = incoming.pull()
        except BlockingIOError:
            return
        except (PeerLost, OSError) as error:
            if incoming.peer in self._ended:  # it has had the end of every rank, and has closed
                selector.unregister(incoming.connected)
                return
            why = str(error) if isinstance(error, PeerLost) else f"rank {incoming.peer} is gone: {error.strerror}"
            raise PeerLost(incoming.peer, why) from error
        if not whole:
            return
        kind, _, _, number, tag, _ = HEADER.unpack(incoming.header)
        peer, name, value = incoming.peer, incoming.name.decode(errors="replace"), incoming.value
        incoming.received, incoming.name, incoming.value = 0, bytearray(), np.empty(0, np.uint8)
        if kind == CALL:
            self._to_answer.put((peer, number, name, value))
        elif kind == END:  # it still answers calls
            with self._changed:
                self._ended.add(peer)
                self._changed.notify_all()
        elif kind == ANSWER:
            with self._changed:
                self._answers[number] = value
                self._changed.notify_all()
        elif kind == MESSAGE:
            self._arrive(Message(peer, tag, value))
        else:
            raise TransportError(f"rank {peer} sent a frame of unknown kind {kind}")

    def _answer_all(self) -> None:
        """The answering thread: until the mailbox is closed."""
        while (asked := self._to_answer.get()) is not None:
            peer, number, name, value = asked
            try:
                self._push(peer, ANSWER, self._serve(peer, name, value), number=number)
            except Exception as error:
                with self._changed:
                    self._error = error if isinstance(error, TransportError) else TransportError(str(error))
                    self._changed.notify_all()
                return

    def _arrive(self, message: Message) -> None:
        with self._changed:
            self._messages.add(message)
            self._changed.notify_all()

    def _wait(self, peer: int) -> None:
        """Waits until something has changed."""
        if not self._changed.wait(SILENT_S):
            self._post.wait(peer)
            self._changed.wait()
            self._post.stop_waiting()

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error

    def _raise_if_gone(self, source: int, what: str) -> None:
        """Raises where no rank is left that could send."""
        self._raise_if_failed()
        peers = set(self._sockets) if source == ANY else {source} & set(self._sockets)
        if peers and peers <= self._ended:
            who = "all other ranks have" if source == ANY else f"rank {source} has"
            raise PeerLost(source, f"{who} ended, and {what} was expected")
