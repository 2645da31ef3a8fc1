"""libucp through ctypes: no Python package binds its one-sided puts and gets. Layouts follow ucp/api/ucp.h of UCX 1.22;
what we leave out is zero."""

from __future__ import annotations

import ctypes
import os
import weakref
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._allocator import RegionExhausted

API = (1, 13)
"""The oldest interface that has all we call."""
FEATURES = 0b11
"""UCP_FEATURE_TAG, UCP_FEATURE_RMA."""
SERIALIZED = 1
ALLOCATE = 2
IN_PROGRESS = 1
TRUNCATED, NO_MEMORY = -9, -4
PEER_STATUS = frozenset([-3, -6, -16, -24, -25, -80])
"""I/O error, unreachable, cancelled by the end of its endpoint, not connected, connection reset, endpoint timeout."""
FORCE = 1
ERRORS_REPORTED = 1
"""UCP_ERR_HANDLING_MODE_PEER."""
FLAGS, RECEIVED = 1 << 4, 1 << 7
"""Members of RequestParam that count."""
FAILED = 2**64 - 100
"""Returned pointers from here on are negative status codes."""
QUIET = {
    "UCX_HANDLE_ERRORS": "none",
    "UCX_ERROR_SIGNALS": "",
    "UCX_MEM_EVENTS": "no",
    "UCX_MEMTYPE_CACHE": "n",
    "UCX_LOG_LEVEL": "error",
}
"""No signal handlers and no patches of the C library's memory calls: the rank has its own stack traces, and no
transport used here needs registration."""
QUIET["UCX_KEEPALIVE_INTERVAL"] = "inf"
"""Lifelines look after peers; an event of the library then means that bytes move."""


class RequestParam(ctypes.Structure):
    """ucp_request_param_t."""

    _fields_ = [
        ("mask", c_uint32),
        ("flags", c_uint32),
        ("request", c_void_p),
        ("callback", c_void_p),
        ("datatype", c_uint64),
        ("user_data", c_void_p),
        ("reply", c_void_p),
        ("memory_type", c_int),
        ("received", c_void_p),
        ("memory", c_void_p),
        ("rest", c_uint64 * 3),
    ]


class Received(ctypes.Structure):
    """ucp_tag_recv_info_t."""

    _fields_ = [("tag", c_uint64), ("nbytes", c_size_t)]


PLAIN = RequestParam()
ERROR_HANDLER = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int)


def _failed(argument: int | None, endpoint: int | None, status: int) -> None:
    """An endpoint's peer is gone. Requests end with a status and lifelines tell it to who waits; without a handler UCX
    ends the process."""


_HANDLER = ERROR_HANDLER(_failed)
"""Kept as long as the library may call it."""


def words(*values: int) -> Any:
    """A zero-filled structure of 8-byte members."""
    return (c_uint64 * 64)(*values)


@cache
def library() -> Any:
    """libucp of the Python package `libucx`, with its signatures; raises TransportError where it cannot be loaded."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import libucx

        ucp = next(found for found in libucx.load_library() if found is not None and "libucp" in found._name)
    except (ImportError, OSError, StopIteration) as error:
        raise TransportError(f"libucp cannot be loaded: {error}") from error
    pointer, size, number = c_void_p, c_size_t, c_uint64
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "ucp_get_version_string": (c_char_p, []),
        "ucp_config_read": (c_int, [c_char_p, c_char_p, POINTER(pointer)]),
        "ucp_config_modify": (c_int, [pointer, c_char_p, c_char_p]),
        "ucp_config_release": (None, [pointer]),
        "ucp_init_version": (c_int, [c_uint, c_uint, pointer, pointer, POINTER(pointer)]),
        "ucp_cleanup": (None, [pointer]),
        "ucp_worker_create": (c_int, [pointer, pointer, POINTER(pointer)]),
        "ucp_worker_destroy": (None, [pointer]),
        "ucp_worker_get_address": (c_int, [pointer, POINTER(pointer), POINTER(size)]),
        "ucp_worker_release_address": (None, [pointer, pointer]),
        "ucp_worker_progress": (c_uint, [pointer]),
        "ucp_worker_fence": (c_int, [pointer]),
        "ucp_worker_flush_nbx": (pointer, [pointer, pointer]),
        "ucp_ep_create": (c_int, [pointer, pointer, POINTER(pointer)]),
        "ucp_ep_close_nbx": (pointer, [pointer, pointer]),
        "ucp_mem_map": (c_int, [pointer, pointer, POINTER(pointer)]),
        "ucp_mem_query": (c_int, [pointer, pointer]),
        "ucp_mem_unmap": (c_int, [pointer, pointer]),
        "ucp_rkey_pack": (c_int, [pointer, pointer, POINTER(pointer), POINTER(size)]),
        "ucp_rkey_buffer_release": (None, [pointer]),
        "ucp_ep_rkey_unpack": (c_int, [pointer, pointer, POINTER(pointer)]),
        "ucp_rkey_destroy": (None, [pointer]),
        "ucp_put_nbx": (pointer, [pointer, pointer, size, number, pointer, pointer]),
        "ucp_get_nbx": (pointer, [pointer, pointer, size, number, pointer, pointer]),
        "ucp_tag_send_nbx": (pointer, [pointer, pointer, size, number, pointer]),
        "ucp_tag_recv_nbx": (pointer, [pointer, pointer, size, number, number, pointer]),
        "ucp_request_check_status": (c_int, [pointer]),
        "ucp_tag_recv_request_test": (c_int, [pointer, pointer]),
        "ucp_request_cancel": (None, [pointer, pointer]),
        "ucp_request_free": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(ucp, name)
        function.restype, function.argtypes = result, arguments
    return ucp


def version() -> str:
    """Version of UCX as loaded."""
    text: bytes = library().ucp_get_version_string()
    return text.decode()


def check(status: int, what: str) -> None:
    """Raises RegionExhausted when memory is missing, TransportError for any other negative status."""
    if status == NO_MEMORY:
        raise RegionExhausted(f"UCX: {what} failed for want of memory")
    if status < 0:
        raise TransportError(f"UCX: {what} failed with status {status}")


class Context:
    """ucp_context_h with the transports and the network device named. Cleaned up when its maker and all that `hold` it
    have left."""

    def __init__(self, transports: str, device: str) -> None:
        ucp = library()
        configuration, self.handle = c_void_p(), c_void_p()
        check(ucp.ucp_config_read(None, None, byref(configuration)), "reading the configuration")
        for name, value in (("TLS", transports), ("NET_DEVICES", device)):
            check(ucp.ucp_config_modify(configuration, name.encode(), value.encode()), f"setting {name} to {value}")
        # Memory is unmapped by whichever thread drops the last array in it, so the context has locks of its own
        # (mt_workers_shared).
        status = ucp.ucp_init_version(*API, words(0b100001, FEATURES, 0, 0, 0, 0, 1), configuration, byref(self.handle))
        ucp.ucp_config_release(configuration)
        check(status, f"a context with transports {transports} on {device}")
        self._holders = 1

    def hold(self) -> None:
        """Somebody needs the context."""
        self._holders += 1

    def leave(self) -> None:
        """And does not any more."""
        self._holders -= 1
        if not self._holders:
            library().ucp_cleanup(self.handle)


class Memory:
    """Memory of the library's own that peers can put into and get from, zeroed. It is unmapped when the last array in
    it is gone."""

    def __init__(self, context: Context, nbytes: int) -> None:
        ucp = library()
        handle, most = c_void_p(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if nbytes > most:
            raise RegionExhausted(f"a region of {nbytes} bytes on a machine with {most} bytes of memory")
        check(
            ucp.ucp_mem_map(context.handle, words(0b111, 0, nbytes, ALLOCATE), byref(handle)),
            f"registering {nbytes} bytes",
        )
        asked = words(1)
        check(ucp.ucp_mem_query(handle, asked), "asking for an address")
        self.address: int = asked[1]
        packed, size = c_void_p(), c_size_t()
        check(ucp.ucp_rkey_pack(context.handle, handle, byref(packed), byref(size)), "packing a key")
        self.key = ctypes.string_at(packed.value or 0, size.value)
        ucp.ucp_rkey_buffer_release(packed)
        area = (c_char * nbytes).from_address(self.address)
        context.hold()
        weakref.finalize(area, _unmap, context, handle)
        self.array = np.frombuffer(memoryview(area).cast("B"), np.uint8)
        self.array[:] = 0


class Worker:
    """ucp_worker_h, used by one thread at a time, and its endpoints."""

    def __init__(self, context: Context) -> None:
        self._context, self.handle = context, c_void_p()
        check(library().ucp_worker_create(context.handle, words(1, SERIALIZED), byref(self.handle)), "a worker")
        context.hold()
        self._progress = library().ucp_worker_progress
        self.endpoints: dict[int, c_void_p] = {}
        self._told: set[int] = set()
        self._moves = True
        self.moved = 0
        """Events of the library so far."""

    def address(self) -> bytes:
        """What peers need to reach this worker."""
        lent, size = c_void_p(), c_size_t()
        check(
            library().ucp_worker_get_address(self.handle, byref(lent), byref(size)), "asking for the worker's address"
        )
        address = ctypes.string_at(lent.value or 0, size.value)
        library().ucp_worker_release_address(self.handle, lent)
        return address

    def connect(self, peer: int, address: bytes, told: bool) -> None:
        """An endpoint to a peer; `told`: it reports the peer's end, which the transports in shared memory cannot."""
        endpoint, kept = c_void_p(), ctypes.create_string_buffer(address, len(address))
        reports = (ERRORS_REPORTED, ctypes.cast(_HANDLER, c_void_p).value or 0) if told else (0, 0)
        wanted = words(0b111 if told else 0b11, ctypes.addressof(kept), *reports)
        check(library().ucp_ep_create(self.handle, wanted, byref(endpoint)), f"an endpoint to rank {peer}")
        self.endpoints[peer] = endpoint
        if told:
            self._told.add(peer)

    def key(self, peer: int, packed: bytes) -> c_void_p:
        """A peer's memory key, usable here."""
        key, kept = c_void_p(), ctypes.create_string_buffer(packed, len(packed))
        check(library().ucp_ep_rkey_unpack(self.endpoints[peer], kept, byref(key)), f"the memory key of rank {peer}")
        return key

    def progress(self) -> None:
        """Move what can move; nothing once the worker is closed or abandoned."""
        if self._moves:
            self.moved += self._progress(self.handle)

    def abandon(self) -> None:
        """Nothing moves from now on: endpoints are left as they are."""
        self._moves, self._told = False, set()

    def disconnect(self) -> None:
        """Close endpoints without asking the peers. UCX refuses that for those that do not report their peer's end;
        they go with the worker."""
        ucp = library()
        for peer in self._told:
            closing = ucp.ucp_ep_close_nbx(self.endpoints[peer], byref(RequestParam(mask=FLAGS, flags=FORCE)))
            if closing and closing < FAILED:
                while ucp.ucp_request_check_status(closing) == IN_PROGRESS:
                    self.progress()
                ucp.ucp_request_free(closing)
        self._told = set()

    def close(self) -> None:
        """Destroy the worker; its endpoints are disconnected and no key is used any more."""
        self.endpoints = {}
        library().ucp_worker_destroy(self.handle)
        self._moves = False
        self._context.leave()


def _unmap(context: Context, handle: c_void_p) -> None:
    library().ucp_mem_unmap(context.handle, handle)
    context.leave()
