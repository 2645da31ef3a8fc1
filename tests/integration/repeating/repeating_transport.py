"""Our TCP, but long messages pass the link twice and are counted once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scaleproof.transports._tcp_frames import Incoming
from scaleproof.transports.contract import Array, Handle
from scaleproof.transports.tcp import Tcp

LONG = 64
"""Bytes from which a message is repeated; barriers stay what they are."""


@dataclass(frozen=True)
class _Both:
    """Handle of a message and its copy."""

    first: Handle
    second: Handle

    def test(self) -> bool:
        return self.first.test() and self.second.test()

    def wait(self) -> None:
        self.first.wait()
        self.second.wait()


class Repeating(Tcp):
    """See the module."""

    def send(self, buffer: Array, peer: int) -> Handle:
        """The message, and once more."""
        first = super().send(buffer, peer)
        if buffer.nbytes < LONG:
            return first
        second = super().send(buffer.copy(), peer)
        self.traffic.nbytes -= buffer.nbytes
        return _Both(first, second)

    def _receive(self, message: Incoming, peer: int) -> Handle:
        first = super()._receive(message, peer)
        if message.buffer.nbytes < LONG:
            return first
        return _Both(first, super()._receive(Incoming(np.empty(message.buffer.nbytes, np.uint8), None), peer))
