"""A mailbox over TCP: one socket per pair of ranks, a thread that receives and a thread that answers calls.

The receiving thread sleeps in the kernel until bytes come, takes everything that arrives and never sends, so that no
two ranks can wait for each other's buffers: a send ends when the socket has accepted all of it. It also writes what
peers put and flag; the answering thread reads what they get, and swaps.
"""

from __future__ import annotations

import contextlib
import queue
import select
import selectors
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.core.handshake import connect, connect_all, connect_successor, place_of_successor
from scaleproof.core.killed_rank import is_gone
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports._mailbox_core import EMPTY, MailboxCore
from scaleproof.transports._mailbox_frames import ANSWER, HEADER, Frame, empty_value
from scaleproof.transports.contract import REAL_DTYPES, Capabilities

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

CHUNK = 1 << 20
"""Bytes per system call, so that one peer does not keep others waiting."""
LOOK_S = 0.02
"""How often the receiving thread looks for a successor while a rank is away that will have one."""
NAME = "mailbox"
"""Of its keys in the rendezvous."""
LEAVE_S = 5.0
"""How long `abandon` waits for its threads, of which one may be in an answer."""


class TcpMailbox(MailboxCore):
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

    def __init__(self, context: RankContext) -> None:
        super().__init__(context)
        self._context = context
        if context.predecessor is None:
            self._sockets = connect_all(context, NAME)
        else:
            self._sockets = connect_successor(context, NAME, partial(is_gone, context.folder))
            for peer in set(self._peers) - set(self._sockets):
                self._lose(peer)
        self._sending = {peer: threading.Lock() for peer in self._peers}
        self._leaving = False
        self._threads: list[threading.Thread] = []
        self._to_answer: queue.SimpleQueue[tuple[int, int, Callable[[], np.ndarray]] | None] = queue.SimpleQueue()

    def _start(self) -> None:
        for each in (self._receive_all, self._answer_all):
            thread = threading.Thread(target=each, daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """See Mailbox.close."""
        if self._sockets:
            self._end()
            self.abandon()

    def abandon(self) -> None:
        """See Mailbox.abandon."""
        self._leaving = True
        self._to_answer.put(None)
        self._fail(TransportError("the rank has left"))  # for threads of this rank that still wait
        for connected in self._sockets.values():
            with contextlib.suppress(OSError):  # the peer has closed
                connected.shutdown(socket.SHUT_RDWR)  # which wakes the receiving thread
        for thread in self._threads:
            thread.join(LEAVE_S)
        for connected in self._sockets.values():
            connected.close()
        self._sockets, self._threads = {}, []

    def _push(self, peer: int, frame: Frame) -> None:
        """See MailboxCore; returns when the socket has accepted all of it."""
        self._raise_if_lost(peer)
        connected = self._sockets[peer]
        parts = [memoryview(frame.header() + frame.name.encode()), as_bytes(frame.value).data]
        self.traffic.count(frame.value.nbytes)
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
        """The receiving thread: until all ranks have ended and closed, or one is gone that is not mortal."""
        with selectors.DefaultSelector() as selector:
            for peer, connected in self._sockets.items():
                selector.register(connected, selectors.EVENT_READ, Incoming(peer, connected))
            try:
                while not self._leaving and (selector.get_map() or self._awaited):
                    for key, _ in selector.select(LOOK_S if self._awaited else None):
                        self._pull(selector, key.data)
                    for peer in self._awaited:
                        self._join_successor(selector, peer)
            except Exception as error:
                self._fail(error)

    def _pull(self, selector: selectors.BaseSelector, incoming: Incoming) -> None:
        try:
            frame = incoming.pull()
        except BlockingIOError:
            return
        except (PeerLost, OSError) as error:
            if incoming.peer in self._ended:  # it has had the end of every rank, and has closed
                selector.unregister(incoming.connected)
                return
            if incoming.peer in self.mortal:
                selector.unregister(incoming.connected)
                self._lose(incoming.peer)
                return
            why = str(error) if isinstance(error, PeerLost) else f"rank {incoming.peer} is gone: {error.strerror}"
            raise PeerLost(incoming.peer, why) from error
        if frame is not None:
            self._deliver(incoming.peer, frame)

    @property
    def _awaited(self) -> frozenset[int]:
        """Ranks that are away and will have a successor."""
        return self.lost & self.returning

    def _join_successor(self, selector: selectors.BaseSelector, peer: int) -> None:
        """Connects to the successor of a rank as soon as it waits for that."""
        place = self._rendezvous.find(place_of_successor(NAME, peer))
        if place is None:
            return
        self._sockets[peer].close()
        connected = self._sockets[peer] = connect(self._context, peer, *place)
        connected.setblocking(False)
        self._regain(peer)
        selector.register(connected, selectors.EVENT_READ, Incoming(peer, connected))

    def _ask(self, peer: int, number: int, answer: Callable[[], np.ndarray]) -> None:
        self._to_answer.put((peer, number, answer))

    def _answer_all(self) -> None:
        """The answering thread: until the mailbox is closed."""
        while (asked := self._to_answer.get()) is not None:
            peer, number, answer = asked
            try:
                self._push(peer, Frame(ANSWER, answer(), number=number))
            except Exception as error:
                if isinstance(error, PeerLost) and peer in self.mortal:
                    continue
                self._fail(error)
                return


@dataclass(slots=True)
class Incoming:
    """What arrives on one connection: a header, then a name, then a payload."""

    peer: int
    connected: socket.socket
    header: bytearray = field(default_factory=lambda: bytearray(HEADER.size))
    name: bytearray = field(default_factory=bytearray)
    value: np.ndarray = field(default_factory=lambda: EMPTY)
    received: int = 0

    def pull(self) -> Frame | None:
        """Receives what has arrived, at most a chunk; a frame when it is whole. Raises PeerLost, BlockingIOError."""
        part, offset = self._part()
        count = self.connected.recv_into(part[offset : offset + CHUNK])
        if not count:
            raise PeerLost(self.peer, f"rank {self.peer} closed the connection")
        self.received += count
        if self.received == HEADER.size:
            _, dtype, length, _, _, nbytes = HEADER.unpack(self.header)
            self.name, self.value = bytearray(length), empty_value(self.peer, dtype, nbytes)
        if self.received < HEADER.size or self.received < HEADER.size + len(self.name) + self.value.nbytes:
            return None
        kind, _, _, number, tag, _ = HEADER.unpack(self.header)
        frame = Frame(kind, self.value, tag, self.name.decode(errors="replace"), number)
        self.received, self.name, self.value = 0, bytearray(), EMPTY
        return frame

    def _part(self) -> tuple[memoryview, int]:
        """What the next bytes belong to, and how many of it have arrived."""
        offset = self.received
        for part in (self.header, self.name):
            if offset < len(part):
                return memoryview(part), offset
            offset -= len(part)
        return as_bytes(self.value).data, offset
