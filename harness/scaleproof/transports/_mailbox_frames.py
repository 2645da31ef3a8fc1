"""Frames of the mailbox over TCP: a header, a name, and a flat array."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports.contract import REAL_DTYPES

HEADER = struct.Struct("<BBHIqQ")
"""Kind, number of the element type, bytes of the name, number of the call, tag (of a put or get the first element, of a
flag what is added), bytes of the payload."""
MESSAGE, CALL, ANSWER, END, PUT, GET, FLAG = range(7)
DTYPES = sorted(REAL_DTYPES)
CHUNK = 1 << 20
"""Bytes per system call, so that one peer does not keep others waiting."""


@dataclass(slots=True)
class Incoming:
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
