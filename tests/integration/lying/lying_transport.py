"""Our TCP, but rank 1 finds one byte changed in every long message that it receives: fast and wrong."""

from __future__ import annotations

from scaleproof.transports.contract import Array, Handle
from scaleproof.transports.tcp import Tcp

LONG = 64
"""Bytes from which a message is changed; barriers stay whole."""


class Lying(Tcp):
    """See the module."""

    def recv(self, buffer: Array, peer: int) -> Handle:
        """A whole message, then one byte is another."""
        handle = super().recv(buffer, peer)
        return _Changed(handle, buffer) if self.rank == 1 and buffer.nbytes >= LONG else handle


class _Changed:
    """Handle that changes the buffer once the message is there."""

    def __init__(self, handle: Handle, buffer: Array) -> None:
        self.handle, self.buffer, self.done = handle, buffer, False

    def test(self) -> bool:
        if self.handle.test():
            self._change()
        return self.done

    def wait(self) -> None:
        self.handle.wait()
        self._change()

    def _change(self) -> None:
        if not self.done:
            self.done = True
            self.buffer.reshape(-1).view("uint8")[1] ^= 1
