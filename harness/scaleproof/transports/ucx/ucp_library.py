"""libucp through ctypes: no Python package binds its one-sided puts and gets. Layouts follow ucp/api/ucp.h of UCX 1.22;
members that we leave out are zero."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports._allocator import RegionExhausted

API_VERSION = (1, 13)
"""The oldest interface that has everything we call."""
FEATURE_TAG, FEATURE_RMA = 1, 2
THREAD_MODE_SERIALIZED = 1
MEM_MAP_ALLOCATE = 2
IN_PROGRESS = 1
TRUNCATED, NO_MEMORY = -9, -4
PEER_STATUS = frozenset([-3, -6, -16, -24, -25, -80])
"""I/O error, unreachable, cancelled by the end of its endpoint, not connected, connection reset, endpoint timeout."""
CLOSE_FORCE = 1
ERR_HANDLING_MODE_PEER = 1
FIRST_ERROR_POINTER = 2**64 - 100
"""Returned pointers from here on are negative status codes."""
SETTINGS = {
    "UCX_HANDLE_ERRORS": "none",
    "UCX_ERROR_SIGNALS": "",
    "UCX_MEM_EVENTS": "no",
    "UCX_MEMTYPE_CACHE": "n",
    "UCX_LOG_LEVEL": "error",
    "UCX_KEEPALIVE_INTERVAL": "inf",
}
"""No signal handlers and no patches of the C library's memory calls: the rank has its own stack traces, and no
transport used here needs registration. No keepalive: lifelines watch the peers, so an event of the library means that
bytes move."""


_MASK = ("field_mask", c_uint64)
"""First member of each structure that we fill: which of its members count. All others are zero."""
_REST = ("rest", c_uint64 * 32)
"""Members after those that we set, so that the library never reads past the structure."""


class ContextParameters(ctypes.Structure):
    """ucp_params_t."""

    FEATURES, MT_WORKERS_SHARED = 1 << 0, 1 << 5
    _fields_ = (
        _MASK,
        ("features", c_uint64),
        ("request_size", c_size_t),
        ("request_init", c_void_p),
        ("request_cleanup", c_void_p),
        ("tag_sender_mask", c_uint64),
        ("mt_workers_shared", c_int),
        _REST,
    )


class WorkerParameters(ctypes.Structure):
    """ucp_worker_params_t."""

    THREAD_MODE = 1 << 0
    _fields_ = (_MASK, ("thread_mode", c_int), _REST)


class EndpointParameters(ctypes.Structure):
    """ucp_ep_params_t."""

    REMOTE_ADDRESS, ERR_HANDLING_MODE, ERR_HANDLER = 1 << 0, 1 << 1, 1 << 2
    _fields_ = (
        _MASK,
        ("address", c_void_p),
        ("err_mode", c_int),
        ("err_handler", c_void_p),
        ("err_handler_argument", c_void_p),
        _REST,
    )


class MemoryMapParameters(ctypes.Structure):
    """ucp_mem_map_params_t."""

    ADDRESS, LENGTH, FLAGS = 1 << 0, 1 << 1, 1 << 2
    _fields_ = (_MASK, ("address", c_void_p), ("length", c_size_t), ("flags", c_uint), _REST)


class MemoryAttributes(ctypes.Structure):
    """ucp_mem_attr_t."""

    ADDRESS = 1 << 0
    _fields_ = (_MASK, ("address", c_void_p), _REST)


class RequestParameters(ctypes.Structure):
    """ucp_request_param_t."""

    FLAGS, RECEIVE_INFO = 1 << 4, 1 << 7
    _fields_ = (
        ("op_attr_mask", c_uint32),
        ("flags", c_uint32),
        ("request", c_void_p),
        ("callback", c_void_p),
        ("datatype", c_uint64),
        ("user_data", c_void_p),
        ("reply", c_void_p),
        ("memory_type", c_int),
        ("receive_info", c_void_p),
        ("memory", c_void_p),
        ("rest", c_uint64 * 3),
    )


class ReceiveInfo(ctypes.Structure):
    """ucp_tag_recv_info_t."""

    _fields_ = (("tag", c_uint64), ("nbytes", c_size_t))


NO_OPTIONS = RequestParameters()
ERROR_HANDLER = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int)


def _ignore_error(argument: int | None, endpoint: int | None, status: int) -> None:
    """Called when an endpoint's peer is gone. Requests then end with a status, and lifelines show it to a rank that
    waits; without a handler UCX ends the process."""


HANDLER = ERROR_HANDLER(_ignore_error)
"""Kept as long as the library may call it."""


def _signatures() -> dict[str, tuple[Any, list[Any]]]:
    """Result type and argument types of every function that we call."""
    pointer, size, number = c_void_p, c_size_t, c_uint64
    return {
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


@cache
def library() -> Any:
    """libucp of the Python package `libucx`, with its signatures; raises TransportError where it cannot be loaded."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import libucx

        ucp = next(loaded for loaded in libucx.load_library() if loaded is not None and "libucp" in loaded._name)
    except (ImportError, OSError, StopIteration) as error:
        raise TransportError(f"libucp cannot be loaded: {error}") from error
    for name, (result, arguments) in _signatures().items():
        function = getattr(ucp, name)
        function.restype, function.argtypes = result, arguments
    return ucp


def version() -> str:
    """Version of UCX as loaded."""
    text: bytes = library().ucp_get_version_string()
    return text.decode()


def check(status: int, action: str) -> None:
    """Raises RegionExhausted when memory is missing, TransportError for any other negative status."""
    if status == NO_MEMORY:
        raise RegionExhausted(f"UCX: not enough memory for {action}")
    if status < 0:
        raise TransportError(f"UCX: {action} failed with status {status}")
