"""Frames of a mailbox: a header, a name, and a flat array."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports.contract import REAL_DTYPES

HEADER = struct.Struct("<BBHIqQ")
"""Kind, number of the element type, bytes of the name, number of the call, tag (of a put or get the first element, of a
flag what is added), bytes of the payload."""
MESSAGE, CALL, ANSWER, END, PUT, GET, FLAG, SWAP, LAST, SLOT, PAUSE, RESUME = range(12)
DTYPES = sorted(REAL_DTYPES)


@dataclass(frozen=True, slots=True)
class Frame:
    """What one rank tells another. `number`: of the call that is made or answered."""

    kind: int
    value: np.ndarray
    tag: int = 0
    name: str = ""
    number: int = 0

    def header(self) -> bytes:
        """The header. Raises TransportError for an array of another than a real type."""
        if self.value.dtype.name not in REAL_DTYPES:
            raise TransportError(f"a mailbox does not take {self.value.dtype}; it takes {', '.join(DTYPES)}")
        dtype, length = DTYPES.index(self.value.dtype.name), len(self.name.encode())
        return HEADER.pack(self.kind, dtype, length, self.number, self.tag, self.value.nbytes)


def empty_value(peer: int, dtype: int, nbytes: int) -> np.ndarray:
    """The array that a header announces. Raises TransportError where there is no such array."""
    if dtype >= len(DTYPES) or nbytes % np.dtype(DTYPES[dtype]).itemsize:
        raise TransportError(f"rank {peer} sent a frame of {nbytes} bytes with element type {dtype}")
    return np.empty(nbytes // np.dtype(DTYPES[dtype]).itemsize, DTYPES[dtype])
