"""Bytes and addresses of NumPy arrays, as transports need them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports.contract import Array, Transport

CACHE_LINE = 64
"""Bytes. Words that different ranks write lie on different cache lines."""


def as_bytes(array: Array) -> Array:
    """The bytes of a C-contiguous array as a flat uint8 view; raises TransportError for any other array."""
    if array.ndim == 1 and array.dtype.char == "B" and array.flags.c_contiguous:
        return array
    if not array.flags.c_contiguous:
        raise TransportError("a buffer must be C-contiguous")
    return array.reshape(-1).view(np.uint8)


def address_of(array: Array) -> int:
    """Address of an array's first byte."""
    return int(array.__array_interface__["data"][0])


def bytes_at(address: int, nbytes: int) -> Array:
    """A flat uint8 view of memory of this process, which it does not keep alive."""
    return np.asarray(_Memory(address, nbytes))


def plain_memory(nbytes: int) -> Array:
    """A flat uint8 array in memory that no transport owns, as NumPy and torch allocate it."""
    return np.empty(nbytes, np.uint8)


def memory_of(buffers: str, transport: Transport) -> Callable[[int], Array]:
    """What allocates the buffers of a case (its field `buffers`): the transport or NumPy."""
    return plain_memory if buffers == "plain" else transport.allocate


class _Memory:
    def __init__(self, address: int, nbytes: int) -> None:
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False)}
