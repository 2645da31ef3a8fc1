"""A mailbox over the sends and receives of any point-to-point transport.

Its progress side is a thread that tests what is under way, hands over what has arrived, and answers calls. Transports
take calls from one thread at a time, so each call is made under a lock. The thread tests often while a thread of this
rank waits, and ever more seldom, down to every `IDLE_S`, while its main thread computes, whose core it takes. A receive
from every peer is always posted: no two ranks can wait for each other's buffers.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.spec import registry
from scaleproof.transports._mailbox_core import EMPTY, MailboxCore, Result
from scaleproof.transports._mailbox_frames import ANSWER, LAST, Frame
from scaleproof.transports._message_frames import IncomingFrames, messages
from scaleproof.transports._waiting import SLEEP_MAX_S, SLEEP_MIN_S, YIELD_NS, yield_core
from scaleproof.transports.contract import REAL_DTYPES, Array, Handle, PointToPoint
from scaleproof.transports.mailbox_contract import WatchesPeers

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

IDLE_S = 2e-3
"""The longest pause between two tests while no thread of this rank waits or its main thread computes."""
CHECK_S = 0.1
"""Time between two looks at whether the peers are still there."""
NOBODY = -1
LEAVE_S = 5.0
"""How long `abandon` waits for the progress side, which may be in a call of the library."""


class Outgoing:
    """A frame under way to a peer. `buffers` stay as they are until it is done."""

    def __init__(self, peer: int, handles: list[Handle], buffers: list[Array]) -> None:
        self.peer, self._handles, self._buffers = peer, handles, buffers
        self.done = False

    def test(self) -> bool:
        """Whether the buffers may be changed again."""
        while self._handles and self._handles[0].test():
            self._handles.pop(0)
        self.done = not self._handles
        return self.done


class MessageMailbox(MailboxCore):
    """See transports/mailbox.py. `transport`: the case's, which belongs to the mailbox."""

    def __init__(self, context: RankContext) -> None:
        super().__init__(context)
        self.transport: PointToPoint = registry.load("transport", context.case.transport or "").connect(context)
        self.capabilities = replace(
            self.transport.capabilities, collective=False, dtypes=REAL_DTYPES, progress="background"
        )
        self._turn = threading.Lock()
        self._incoming: dict[int, IncomingFrames] = {}
        self._outgoing: list[Outgoing] = []
        self._waiting = 0
        self._leaving = self._closed = False
        self._thread = threading.Thread(target=self._progress, name="mailbox progress", daemon=True)

    def _start(self) -> None:
        with self._turn:
            self._incoming = {peer: IncomingFrames(self.transport, peer) for peer in self._peers}
        self._thread.start()

    def close(self) -> None:
        """See Mailbox.close. All have sent their last frame and have all others' when the transport is closed."""
        if self._closed:
            return
        self._end()
        self._push_to_all(Frame(LAST, EMPTY))
        self._until_all(self._left)
        self._rendezvous.gather("mailbox.left", self.rank, self._peers, True, lambda peer: peer in self.lost)
        self.abandon()

    def abandon(self) -> None:
        """See Mailbox.abandon."""
        if self._closed:
            return
        self._closed = self._leaving = True
        self._fail(TransportError("the rank has left"))
        if self._thread.is_alive():
            self._thread.join(LEAVE_S)
        self.transport.close()

    def _push(self, peer: int, frame: Frame) -> None:
        outgoing = self._begin(peer, frame)
        if not outgoing.done:
            self._until(lambda: self._has_gone(outgoing), peer)

    def _has_gone(self, outgoing: Outgoing) -> bool | None:
        """Raises PeerLost where it never will."""
        if not outgoing.done:
            self._raise_if_lost(outgoing.peer)
        return outgoing.done or None

    def _begin(self, peer: int, frame: Frame) -> Outgoing:
        """Starts to send; the progress side goes on with it. Raises PeerLost."""
        self._raise_if_lost(peer)
        self.traffic.count(frame.value.nbytes)
        buffers = messages(frame)
        with self._turn:
            outgoing = Outgoing(peer, [self.transport.send(buffer, peer) for buffer in buffers], buffers)
            if not outgoing.test():
                self._outgoing.append(outgoing)
        return outgoing

    def _ask(self, peer: int, number: int, answer: Callable[[], np.ndarray]) -> None:
        """Called by the progress side, which does not wait for what it sends."""
        value = answer()
        try:
            self._begin(peer, Frame(ANSWER, value, number=number))
        except PeerLost as error:
            self._outlive(error, peer)

    def _outlive(self, error: PeerLost, peer: int) -> None:
        """The loss of a mortal peer takes nothing else with it; raises that of another one. `peer`: where the error
        names none."""
        gone = error.peer if error.peer >= 0 else peer
        if gone not in self.mortal:
            raise error
        with self._turn:
            self._incoming.pop(gone, None)
            self._outgoing = [outgoing for outgoing in self._outgoing if outgoing.peer != gone]
        self._lose(gone)

    def _until(self, ready: Callable[[], Result | None], peer: int, expected: str = "") -> Result:
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
        try:
            return super()._until(ready, peer, expected)
        finally:
            with self._changed:
                self._waiting -= 1

    def _progress(self) -> None:
        """The progress side: until the mailbox is closed or a peer is gone."""
        idle_since, checked, pause = time.monotonic_ns(), time.monotonic(), SLEEP_MIN_S
        try:
            while not self._leaving:
                if self._advance():
                    idle_since, pause = time.monotonic_ns(), SLEEP_MIN_S
                elif self._hurries and time.monotonic_ns() - idle_since < YIELD_NS:
                    yield_core()
                else:
                    with self._changed:
                        self._changed.wait(pause)
                    pause = min(2 * pause, SLEEP_MAX_S if self._hurries else IDLE_S)
                if time.monotonic() - checked > CHECK_S:
                    self._look_for_peers()
                    checked = time.monotonic()
        except Exception as error:
            self._fail(error)

    @property
    def _hurries(self) -> bool:
        """Whether a thread waits whose rank does not compute meanwhile."""
        return self._waiting > 0 and not self.computing

    def _advance(self) -> bool:
        """Moves what can be moved; True when anything was done."""
        try:
            with self._turn:
                under_way = [outgoing for outgoing in self._outgoing if not outgoing.test()]
                moved = len(under_way) < len(self._outgoing)
                self._outgoing = under_way
        except PeerLost as error:
            self._outlive(error, NOBODY)
            return True
        if moved:
            with self._changed:
                self._changed.notify_all()
        for peer, incoming in list(self._incoming.items()):
            try:
                moved |= self._take(peer, incoming)
            except PeerLost as error:
                self._outlive(error, peer)
                return True
        return moved

    def _take(self, peer: int, incoming: IncomingFrames) -> bool:
        """Hands over the frames of a peer that are whole."""
        taken = False
        while True:
            with self._turn:
                frame = incoming.pull()
                if frame is None:
                    return taken
                if frame.kind == LAST:
                    del self._incoming[peer]
                else:
                    incoming.next()
            taken = True
            self._deliver(peer, frame)
            if frame.kind == LAST:
                return True

    def _look_for_peers(self) -> None:
        """Raises PeerLost for a peer that is gone before its last frame."""
        if not isinstance(self.transport, WatchesPeers):
            return
        for peer in list(self._incoming):
            try:
                with self._turn:
                    self.transport.check_peer(peer)
            except PeerLost as error:
                with contextlib.suppress(PeerLost):
                    self._advance()  # what it sent before
                if peer in self._incoming:
                    self._outlive(error, peer)
