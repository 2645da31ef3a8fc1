"""A mailbox over TCP: one socket per pair of ranks, a thread that receives and a thread that answers calls.

The receiving thread takes everything that arrives and never sends, so that no two ranks can wait for each other's
buffers: a send ends when the socket has accepted all of it. It also writes what peers put and flag; the answering
thread reads what they get.
"""

from __future__ import annotations

import queue
import select
import selectors
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from scaleproof.core.handshake import connect_all
from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports._mailbox_frames import (
    ANSWER,
    CALL,
    CHUNK,
    DTYPES,
    END,
    FLAG,
    GET,
    HEADER,
    MESSAGE,
    PUT,
    Incoming,
)
from scaleproof.transports.contract import REAL_DTYPES, Capabilities, Traffic
from scaleproof.transports.mailbox import ANY, Arrivals, Message, Regions, Serve

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

Result = TypeVar("Result")
SILENT_S = 0.001
"""How long a thread waits before it reports on the board that it waits."""


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

    def __init__(self, context: RankContext, serve: Serve, regions: Mapping[str, np.ndarray]) -> None:
        self.rank, self.world_size, self.traffic = context.rank, context.world_size, Traffic()
        self._serve, self._post = serve, context.post
        self._sockets = connect_all(context, "mailbox")
        self._sending = {peer: threading.Lock() for peer in self._sockets}
        self._changed = threading.Condition()
        self._messages, self._regions = Arrivals(), Regions(context.rank, regions)
        self._answers: dict[int, np.ndarray] = {}
        self._calls = 0
        self._ended: set[int] = set()
        self._error: TransportError | None = None
        self._to_answer: queue.SimpleQueue[tuple[int, int, Callable[[], np.ndarray]] | None] = queue.SimpleQueue()
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
        return self._until(lambda: self._messages.take(source, tag), source, f"a message with tag {tag}")

    def call(self, value: np.ndarray, peer: int, name: str) -> np.ndarray:
        """See Mailbox.call."""
        return self._answer_of(peer, CALL, value, name)

    def put(self, value: np.ndarray, peer: int, region: str, start: int) -> None:
        """See Mailbox.put."""
        if peer == self.rank:
            self._regions.put(peer, region, start, value)
        else:
            self._push(peer, PUT, value, name=region, tag=start)

    def get(self, peer: int, region: str, start: int, count: int) -> np.ndarray:
        """See Mailbox.get."""
        if peer == self.rank:
            return self._regions.get(peer, region, start, count)
        return self._answer_of(peer, GET, np.array([count]), region, start)

    def flag(self, peer: int, name: str, add: int) -> None:
        """See Mailbox.flag."""
        if peer == self.rank:
            self._add(name, add)
        else:
            self._push(peer, FLAG, np.empty(0, np.uint8), name=name, tag=add)

    def await_flag(self, name: str, least: int) -> int:
        """See Mailbox.await_flag."""
        flags = self._regions.flags
        return self._until(
            lambda: value if (value := flags.get(name, 0)) >= least else None,
            ANY,
            f"flag {name!r} of {least}",
        )

    def _answer_of(self, peer: int, kind: int, value: np.ndarray, name: str, tag: int = 0) -> np.ndarray:
        with self._changed:
            number = self._calls
            self._calls += 1
        self._push(peer, kind, value, name=name, number=number, tag=tag)
        return self._until(lambda: self._answers.pop(number, None), peer)

    def close(self) -> None:
        """See Mailbox.close."""
        if not self._sockets:
            return
        for peer in self._sockets:
            self._push(peer, END, np.empty(0, np.uint8))
        for peer in self._sockets:
            self._until(lambda peer=peer: peer in self._ended or None, peer)  # type: ignore[misc]
        self.abandon()

    def abandon(self) -> None:
        """See Mailbox.abandon."""
        self._to_answer.put(None)
        with self._changed:  # threads of this rank that still wait
            self._error = self._error or TransportError("the rank has left")
            self._changed.notify_all()
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
                selector.register(connected, selectors.EVENT_READ, Incoming(peer, connected))
            try:
                while selector.get_map():
                    for key, _ in selector.select():
                        self._pull(selector, key.data)
            except Exception as error:  # else whoever waits here would wait for ever
                with self._changed:
                    self._error = error if isinstance(error, TransportError) else TransportError(str(error))
                    self._changed.notify_all()

    def _pull(self, selector: selectors.BaseSelector, incoming: Incoming) -> None:
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
            self._to_answer.put((peer, number, partial(self._serve, peer, name, value)))
        elif kind == GET:
            self._to_answer.put((peer, number, partial(self._regions.get, peer, name, tag, int(value[0]))))
        elif kind == PUT:
            self._regions.put(peer, name, tag, value)
        elif kind == FLAG:
            self._add(name, tag)
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
            peer, number, answer = asked
            try:
                self._push(peer, ANSWER, answer(), number=number)
            except Exception as error:
                with self._changed:
                    self._error = error if isinstance(error, TransportError) else TransportError(str(error))
                    self._changed.notify_all()
                return

    def _arrive(self, message: Message) -> None:
        with self._changed:
            self._messages.add(message)
            self._changed.notify_all()

    def _add(self, flag: str, add: int) -> None:
        with self._changed:
            self._regions.flag(flag, add)
            self._changed.notify_all()

    def _until(self, ready: Callable[[], Result | None], peer: int, expected: str = "") -> Result:
        """Waits until there is a result. `expected`: of a peer, or of ANY, that has not ended."""
        silent = False
        with self._changed:
            while (result := ready()) is None:
                self._raise_if_failed()
                if expected:
                    self._raise_if_gone(peer, expected)
                if not self._changed.wait(None if silent else SILENT_S):
                    silent = True  # and looks again: it may have come between the wait and the lock
                    self._post.wait(peer)
        if silent:
            self._post.stop_waiting()
        return result

    def _raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error

    def _raise_if_gone(self, source: int, what: str) -> None:
        """Raises where no rank is left that could send."""
        peers = set(self._sockets) if source == ANY else {source} & set(self._sockets)
        if peers and peers <= self._ended:
            who = "all other ranks have" if source == ANY else f"rank {source} has"
            raise PeerLost(source, f"{who} ended, and {what} was expected")
