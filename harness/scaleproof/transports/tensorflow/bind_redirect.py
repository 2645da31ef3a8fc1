"""Binds TensorFlow's server to one address. Its gRPC server always asks for every interface (grpc_server_lib.cc adds
"0.0.0.0:PORT"), and anyone who reaches it may run any graph. While the server starts, the entry for `bind` in the
procedure linkage table of TensorFlow's libraries points here."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from scaleproof.core.transport_errors import TransportError

LIBRARIES = ("libtensorflow_framework.so", "libtensorflow_cc.so")
_DYNAMIC = 2
_PLTRELSZ, _STRTAB, _SYMTAB, _JMPREL, _STRSZ = 2, 5, 6, 23, 10
_RELA = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_SYMBOL = np.dtype([("name", "<u4"), ("rest", "V20")])
_BIND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, use_errno=True)
_SPECIFIC = {socket.AF_INET: (4, 4), socket.AF_INET6: (8, 16)}
"""Offset and length of the address in a sockaddr of a family; its port is at offset 2."""


@contextmanager
def bound_to(address: str, port: int) -> Iterator[None]:
    """Within the block a `bind` of `port` on every interface becomes one on `address`; TransportError when the
    libraries do not look as expected."""
    plain = _BIND(("bind", ctypes.CDLL(None, use_errno=True)))

    def bind(descriptor: int, sockaddr: int, length: int) -> int:
        specific = _specific(ctypes.string_at(sockaddr, length), address, port)
        return int(
            plain(
                descriptor,
                ctypes.cast(ctypes.create_string_buffer(specific, len(specific)), ctypes.c_void_p),
                len(specific),
            )
        )

    replacement = _BIND(bind)
    pointer = ctypes.cast(replacement, ctypes.c_void_p).value or 0
    slots = [slot for path, base in _libraries() for slot in _slots(path, base, b"bind\0")]
    if not slots:
        raise TransportError(
            "cannot find where TensorFlow's libraries call `bind`; their server would listen on every interface"
        )
    before = [(slot, slot.value) for slot in slots]
    try:
        for slot in slots:
            slot.value = pointer
        yield
    finally:
        for slot, value in before:
            slot.value = value


def _specific(sockaddr: bytes, address: str, port: int) -> bytes:
    """The sockaddr with the one address instead of the wildcard; any other sockaddr is unchanged."""
    (family,) = struct.unpack_from("=H", sockaddr)
    if family not in _SPECIFIC or struct.unpack_from("!H", sockaddr, 2)[0] != port:
        return sockaddr
    start, length = _SPECIFIC[socket.AddressFamily(family)]
    if any(sockaddr[start : start + length]):
        return sockaddr
    own = ipaddress.ip_address(address)
    packed = own.packed if len(own.packed) == length else bytes(10) + b"\xff\xff" + own.packed
    return sockaddr[:start] + packed + sockaddr[start + length :]


def _libraries() -> list[tuple[str, int]]:
    """Path and load address of TensorFlow's libraries in this process."""
    addresses: dict[str, int] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and os.path.basename(fields[5]).startswith(LIBRARIES):
            start = int(fields[0].partition("-")[0], 16)
            addresses[fields[5]] = min(start, addresses.get(fields[5], start))
    return list(addresses.items())


def _slots(path: str, base: int, name: bytes) -> list[ctypes.c_uint64]:
    """The entries through which a loaded 64-bit ELF library calls a function of another one (ELF-64 Object File Format,
    version 1.5)."""
    with open(path, "rb") as file:
        head = file.read(64)
        (table,), (entry, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
        file.seek(table)
        segments = [struct.unpack_from("<IIQQQQ", file.read(entry)) for _ in range(count)]
    dynamic = next(segment for segment in segments if segment[0] == _DYNAMIC)
    tags = dict(struct.iter_unpack("<QQ", ctypes.string_at(base + dynamic[3], dynamic[5] // 16 * 16)))

    def at(tag: int) -> int:
        # The loader of glibc has already turned these into addresses; other loaders leave offsets.
        return int(tags[tag] if tags[tag] >= base else base + tags[tag])

    def view(tag: int, nbytes: int, dtype: Any) -> np.ndarray:
        return np.frombuffer(memoryview((ctypes.c_uint8 * nbytes).from_address(at(tag))), dtype)

    calls = view(_JMPREL, tags[_PLTRELSZ], _RELA)
    symbols = calls["info"] >> 32
    strings = view(_STRTAB, tags[_STRSZ], np.uint8)
    starts = view(_SYMTAB, (int(symbols.max()) + 1) * _SYMBOL.itemsize, _SYMBOL)["name"][symbols]
    matches = np.all(
        [strings[np.minimum(starts + index, len(strings) - 1)] == letter for index, letter in enumerate(name)], axis=0
    )
    return [ctypes.c_uint64.from_address(base + int(offset)) for offset in calls["offset"][matches]]
