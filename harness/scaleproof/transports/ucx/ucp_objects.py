"""Objects of libucp that a rank holds: context, memory, worker with its endpoints."""

from __future__ import annotations

import ctypes
import os
import weakref
from ctypes import byref, c_char, c_size_t, c_void_p

import numpy as np

from scaleproof.transports._allocator import RegionExhausted
from scaleproof.transports.ucx import ucp_library as ucp
from scaleproof.transports.ucx.ucp_library import check, library


class UcpContext:
    """ucp_context_h restricted to the named transports and network device. It is cleaned up when its creator and all
    other holders have released it."""

    def __init__(self, transports: str, device: str) -> None:
        lib = library()
        configuration, self.handle = c_void_p(), c_void_p()
        check(lib.ucp_config_read(None, None, byref(configuration)), "reading the configuration")
        for name, value in (("TLS", transports), ("NET_DEVICES", device)):
            check(lib.ucp_config_modify(configuration, name.encode(), value.encode()), f"setting {name} to {value}")
        # Memory is unmapped by whichever thread drops the last array in it, so the context has locks of its own
        # (mt_workers_shared).
        parameters = ucp.ContextParameters(
            field_mask=ucp.ContextParameters.FEATURES | ucp.ContextParameters.MT_WORKERS_SHARED,
            features=ucp.FEATURE_TAG | ucp.FEATURE_RMA,
            mt_workers_shared=1,
        )
        status = lib.ucp_init_version(*ucp.API_VERSION, byref(parameters), configuration, byref(self.handle))
        lib.ucp_config_release(configuration)
        check(status, f"a context with transports {transports} on {device}")
        self._holders = 1

    def hold(self) -> None:
        """Add a holder."""
        self._holders += 1

    def release(self) -> None:
        """Remove a holder."""
        self._holders -= 1
        if not self._holders:
            library().ucp_cleanup(self.handle)


class UcpMemory:
    """Zeroed memory that the library allocates and that peers can put into and get from. It is unmapped when the last
    array in it is gone."""

    def __init__(self, context: UcpContext, nbytes: int) -> None:
        lib = library()
        handle, physical = c_void_p(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if nbytes > physical:
            raise RegionExhausted(f"a region of {nbytes} bytes on a machine with {physical} bytes of memory")
        parameters = ucp.MemoryMapParameters(
            field_mask=ucp.MemoryMapParameters.ADDRESS | ucp.MemoryMapParameters.LENGTH | ucp.MemoryMapParameters.FLAGS,
            length=nbytes,
            flags=ucp.MEM_MAP_ALLOCATE,
        )
        check(lib.ucp_mem_map(context.handle, byref(parameters), byref(handle)), f"registering {nbytes} bytes")
        attributes = ucp.MemoryAttributes(field_mask=ucp.MemoryAttributes.ADDRESS)
        check(lib.ucp_mem_query(handle, byref(attributes)), "querying an address")
        self.address: int = attributes.address
        packed, size = c_void_p(), c_size_t()
        check(lib.ucp_rkey_pack(context.handle, handle, byref(packed), byref(size)), "packing a key")
        self.key = ctypes.string_at(packed.value or 0, size.value)
        lib.ucp_rkey_buffer_release(packed)
        area = (c_char * nbytes).from_address(self.address)
        context.hold()
        weakref.finalize(area, _unmap, context, handle)
        self.array = np.frombuffer(memoryview(area).cast("B"), np.uint8)
        self.array[:] = 0


class UcpWorker:
    """ucp_worker_h, used by one thread at a time, and its endpoints."""

    def __init__(self, context: UcpContext) -> None:
        self._context, self.handle = context, c_void_p()
        parameters = ucp.WorkerParameters(
            field_mask=ucp.WorkerParameters.THREAD_MODE, thread_mode=ucp.THREAD_MODE_SERIALIZED
        )
        check(library().ucp_worker_create(context.handle, byref(parameters), byref(self.handle)), "creating a worker")
        context.hold()
        self._progress = library().ucp_worker_progress
        self.endpoints: dict[int, c_void_p] = {}
        self._reporting: set[int] = set()
        self._active = True
        self.moved = 0
        """Events of the library so far."""

    def address(self) -> bytes:
        """What peers need to reach this worker."""
        packed, size = c_void_p(), c_size_t()
        check(
            library().ucp_worker_get_address(self.handle, byref(packed), byref(size)), "querying the worker's address"
        )
        address = ctypes.string_at(packed.value or 0, size.value)
        library().ucp_worker_release_address(self.handle, packed)
        return address

    def connect(self, peer: int, address: bytes, reports_end: bool) -> None:
        """Create an endpoint to a peer. `reports_end`: it reports the peer's end, which UCX's transports in shared
        memory cannot."""
        endpoint, buffer = c_void_p(), ctypes.create_string_buffer(address, len(address))
        parameters = ucp.EndpointParameters(
            field_mask=ucp.EndpointParameters.REMOTE_ADDRESS | ucp.EndpointParameters.ERR_HANDLING_MODE,
            address=ctypes.addressof(buffer),
        )
        if reports_end:
            parameters.field_mask |= ucp.EndpointParameters.ERR_HANDLER
            parameters.err_mode = ucp.ERR_HANDLING_MODE_PEER
            parameters.err_handler = ctypes.cast(ucp.HANDLER, c_void_p)
        created = library().ucp_ep_create(self.handle, byref(parameters), byref(endpoint))
        check(created, f"creating an endpoint to rank {peer}")
        self.endpoints[peer] = endpoint
        if reports_end:
            self._reporting.add(peer)

    def key(self, peer: int, packed: bytes) -> c_void_p:
        """A peer's memory key, usable here."""
        key, buffer = c_void_p(), ctypes.create_string_buffer(packed, len(packed))
        unpacked = library().ucp_ep_rkey_unpack(self.endpoints[peer], buffer, byref(key))
        check(unpacked, f"unpacking the memory key of rank {peer}")
        return key

    def progress(self) -> None:
        """Make progress; does nothing once the worker is closed or abandoned."""
        if self._active:
            self.moved += self._progress(self.handle)

    def abandon(self) -> None:
        """Stop progress; endpoints are left as they are."""
        self._active, self._reporting = False, set()

    def disconnect(self) -> None:
        """Close endpoints without a handshake with the peers. UCX refuses that for endpoints that do not report their
        peer's end; they are destroyed with the worker."""
        lib = library()
        force = ucp.RequestParameters(op_attr_mask=ucp.RequestParameters.FLAGS, flags=ucp.CLOSE_FORCE)
        for peer in self._reporting:
            closing = lib.ucp_ep_close_nbx(self.endpoints[peer], byref(force))
            if closing and closing < ucp.FIRST_ERROR_POINTER:
                while lib.ucp_request_check_status(closing) == ucp.IN_PROGRESS:
                    self.progress()
                lib.ucp_request_free(closing)
        self._reporting = set()

    def close(self) -> None:
        """Destroy the worker; its endpoints must be disconnected and its keys unused."""
        self.endpoints = {}
        library().ucp_worker_destroy(self.handle)
        self._active = False
        self._context.release()


def _unmap(context: UcpContext, handle: c_void_p) -> None:
    library().ucp_mem_unmap(context.handle, handle)
    context.release()
