"""Our TCP, but long messages lie in a file of the launch's folder; only a byte of each passes the links."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scaleproof.core.context import RankContext
from scaleproof.transports.contract import Array, Handle
from scaleproof.transports.tcp import Tcp

LONG = 64
"""Bytes from which a message is smuggled; barriers stay what they are."""


class Smuggling(Tcp):
    """See the module."""

    folder: Path

    @classmethod
    def connect(cls, context: RankContext) -> Smuggling:
        """As Tcp does; remembers the folder."""
        made = super().connect(context)
        made.folder, made.sent, made.taken = context.folder, {}, {}
        return made

    sent: dict[int, int]
    taken: dict[int, int]

    def send(self, buffer: Array, peer: int) -> Handle:
        """The bytes into a file, a sign over the link."""
        if buffer.nbytes < LONG:
            return super().send(buffer, peer)
        number = self.sent[peer] = self.sent.get(peer, 0) + 1
        (self.folder / f"smuggled-{self.rank}-{peer}-{number}").write_bytes(buffer.tobytes())
        self.traffic.count(buffer.nbytes - 1)
        return super().send(np.ones(1, np.uint8), peer)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """The sign, then the bytes out of the file."""
        if buffer.nbytes < LONG:
            return super().recv(buffer, peer)
        number = self.taken[peer] = self.taken.get(peer, 0) + 1
        return _Fetched(
            super().recv(np.empty(1, np.uint8), peer), buffer, self.folder / f"smuggled-{peer}-{self.rank}-{number}"
        )


class _Fetched:
    """Handle that reads the file once the sign is there."""

    def __init__(self, sign: Handle, buffer: Array, path: Path) -> None:
        self.sign, self.buffer, self.path = sign, buffer, path

    def test(self) -> bool:
        """See Handle."""
        return self.sign.test() and self._fetch()

    def wait(self) -> None:
        """See Handle."""
        self.sign.wait()
        self._fetch()

    def _fetch(self) -> bool:
        self.buffer.reshape(-1).view(np.uint8)[:] = np.frombuffer(self.path.read_bytes(), np.uint8)
        return True
