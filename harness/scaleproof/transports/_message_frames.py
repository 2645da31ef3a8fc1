"""Frames of a mailbox as messages of a transport, whose receivers must know a message's bytes beforehand: a head of
fixed size, which also holds what fits into it, then the name and the array that do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scaleproof.transports._buffers import as_bytes
from scaleproof.transports._mailbox_frames import HEADER, Frame, empty_value
from scaleproof.transports.contract import Array, Handle, PointToPoint

HEAD = 128
"""Bytes of a head: names and small arrays go with it."""
ROOM = HEAD - HEADER.size


def messages(frame: Frame) -> list[Array]:
    """The messages that carry a frame. What is large is sent from where it lies."""
    name, value = frame.name.encode(), as_bytes(frame.value)
    head = np.zeros(HEAD, np.uint8)
    head[: HEADER.size] = np.frombuffer(frame.header(), np.uint8)
    inside, beside = _placed(len(name), value.size)
    rest = np.frombuffer(name, np.uint8)
    parts = [head]
    if inside[0]:
        head[HEADER.size : HEADER.size + rest.size] = rest
    elif rest.size:
        parts.append(rest.copy())
    if inside[1]:
        head[beside : beside + value.size] = value
    elif value.size:
        parts.append(value)
    return parts


def _placed(name: int, value: int) -> tuple[tuple[bool, bool], int]:
    """Whether name and array lie in the head, and where the array does, by their bytes."""
    within = name <= ROOM
    start = HEADER.size + (name if within else 0)
    return (within, start + value <= HEAD), start


class IncomingFrames:
    """What one peer sends, frame by frame; a receive for the next message is always posted."""

    def __init__(self, transport: PointToPoint, peer: int) -> None:
        self._receive: Callable[[Array], Handle] = lambda target: transport.recv(target, peer)
        self._peer = peer
        self._head = np.empty(HEAD, np.uint8)
        self._name, self._value = np.empty(0, np.uint8), np.empty(0, np.uint8)
        self._handles: list[Handle] = []
        self._begun = False
        self._expect_head()

    def pull(self) -> Frame | None:
        """A frame that is whole. Raises PeerLost or TransportError."""
        while self._handles[0].test():
            self._handles.pop(0)
            if not self._begun:
                self._read_head()
            if not self._handles:
                return self._whole()
        return None

    def next(self) -> None:
        """Goes on to the next frame."""
        self._expect_head()

    def _expect_head(self) -> None:
        self._begun = False
        self._handles.append(self._receive(self._head))

    def _read_head(self) -> None:
        self._begun = True
        _, dtype, length, _, _, nbytes = HEADER.unpack(self._head[: HEADER.size].tobytes())
        self._value = empty_value(self._peer, dtype, nbytes)
        inside, start = _placed(length, nbytes)
        if inside[0]:
            self._name = self._head[HEADER.size : HEADER.size + length]
        else:
            self._name = np.empty(length, np.uint8)
            self._handles.append(self._receive(self._name))
        if inside[1]:
            as_bytes(self._value)[:] = self._head[start : start + nbytes]
        else:
            self._handles.append(self._receive(self._value))

    def _whole(self) -> Frame:
        kind, _, _, number, tag, _ = HEADER.unpack(self._head[: HEADER.size].tobytes())
        return Frame(kind, self._value, tag, self._name.tobytes().decode(errors="replace"), number)
