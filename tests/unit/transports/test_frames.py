"""Frames of our tcp on a socket that sends only part of a buffer."""

from __future__ import annotations

import socket
from typing import Any

import numpy as np
import pytest

from scaleproof.transports._tcp_frames import HEADER, Connection, Incoming, Outgoing


class Choosy:
    """A socket that sends the given numbers of bytes, and everything afterwards."""

    def __init__(self, inner: socket.socket, takes: list[int]) -> None:
        self.inner, self.takes = inner, takes

    def sendmsg(self, parts: Any) -> int:
        data = b"".join(bytes(part) for part in parts)
        return self.inner.send(data[: self.takes.pop(0)] if self.takes else data)

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize(
    "takes", [[HEADER.size], [HEADER.size, 1], [1, HEADER.size - 1], [HEADER.size - 1, 1], [HEADER.size + 1], [3, 3]]
)
def test_a_header_is_sent_once_however_little_the_socket_takes(takes: list[int]) -> None:
    left, right = socket.socketpair()
    sender, receiver = Connection(1, Choosy(left, takes)), Connection(0, right)  # type: ignore[arg-type]
    for number in range(2):
        message, arrived = np.arange(40, dtype=np.uint8) + number, np.zeros(40, np.uint8)
        sender.outgoing.append(Outgoing(message))
        while sender.outgoing:
            sender.push()
        receiver.incoming.append(Incoming(arrived, None))
        while receiver.incoming:
            receiver.pull()
        assert (arrived == message).all()
    sender.close()
    receiver.close()
