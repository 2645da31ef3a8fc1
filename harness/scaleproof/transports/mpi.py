"""Open MPI through mpi4py: its blocking collectives and its non-blocking sends and receives, on NumPy's memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports.contract import Array, Capabilities, Done, Handle, ReduceOperation, Traffic

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

Path = Literal["shared memory", "socket", "library's choice"]
DTYPES = frozenset({"float32", "float64", "int8", "uint8", "int16", "int32", "int64"})
"""NumPy's types that MPI reduces; the standard has no half precision."""
SETTINGS = ("pml", "btl", "btl_tcp_if_include", "btl_sm_backing_directory")
"""Open MPI's parameters that decide the path of the bytes; mpirun passes them on in the environment."""


class Mpi:
    """World communicator of the processes that mpirun started. Collectives are blocking calls: Open MPI's non-blocking
    ones use slower algorithms."""

    def __init__(self, context: RankContext) -> None:
        self._check_launcher()
        import mpi4py

        self._post = context.post
        # One thread at a time calls MPI: the communication thread, or the main thread when that one is idle.
        mpi4py.rc.thread_level = "serialized"
        # Only `close` ends MPI: mpi4py's own MPI_Finalize at exit would block for ever when another rank has failed.
        mpi4py.rc.finalize = False
        self._post.wait()
        from mpi4py import MPI

        self._post.stop_waiting()
        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self._world.Set_errhandler(MPI.ERRORS_RETURN)
        self.rank, self.world_size = context.rank, context.world_size
        if (self._world.rank, self._world.size) != (self.rank, self.world_size):
            raise TransportError(
                f"MPI counts this rank as {self._world.rank} of {self._world.size}, "
                f"the launch as {self.rank} of {self.world_size}"
            )
        context.facts["mpi"] = {"thread_level": _thread_level(MPI), **self._settings()}
        self.traffic = Traffic()
        self.capabilities = Capabilities(
            point_to_point=True,
            one_sided=False,
            collective=True,
            dtypes=DTYPES,
            progress="caller",
            path=self._path(),
            library=self._name(),
        )

    def _check_launcher(self) -> None:
        """Raises TransportError in a process that this library's launcher did not start."""
        require_mpirun("mpi")

    def _settings(self) -> dict[str, str]:
        """The settings that decide the path of the bytes, as the launcher set them."""
        return settings()

    def _name(self) -> str:
        """The library as loaded."""
        return f"{self._mpi.Get_library_version().split(',')[0]}, mpi4py {mpi4py_version()}"

    def _path(self) -> Path:
        """The path of the bytes under these settings."""
        return path_of(settings())

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect; calls MPI_Init."""
        return cls(context)

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: Open MPI copies between processes without registration."""
        return np.empty(nbytes, np.uint8)

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        reduction = self._mpi.SUM if operation == "sum" else self._mpi.MAX
        return self._collective(
            "all_reduce", buffer, buffer.nbytes, lambda: self._world.Allreduce(self._mpi.IN_PLACE, buffer, reduction)
        )

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """See Collectives.reduce_scatter."""
        return self._collective(
            "reduce_scatter",
            source,
            source.nbytes,
            lambda: self._world.Reduce_scatter_block(source, target, self._mpi.SUM),
        )

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather."""
        return self._collective("all_gather", source, source.nbytes, lambda: self._world.Allgather(source, target))

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast; only the root counts its bytes."""
        return self._collective(
            "broadcast", buffer, buffer.nbytes if self.rank == root else 0, lambda: self._world.Bcast(buffer, root)
        )

    def barrier(self) -> None:
        """See Transport.barrier."""
        self.traffic.count(0)
        self._blocking("barrier", self._world.Barrier)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        return _Request(self, self._call(lambda: self._world.Isend(as_bytes(buffer), peer)), peer)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return _Request(self, self._call(lambda: self._world.Irecv(as_bytes(buffer), peer)), peer)

    def close(self) -> None:
        """MPI_Finalize, which waits for all ranks; a rank that ends because of an error skips it, and mpirun ends the
        others when it exits."""
        if not self._mpi.Is_finalized() and sys.exc_info()[0] is None:
            self._mpi.Finalize()

    def _collective(self, name: str, buffer: Array, nbytes: int, call: Callable[[], Any]) -> Handle:
        if buffer.dtype.name not in DTYPES:
            raise TransportError(f"mpi does not take {buffer.dtype.name}; it takes {', '.join(sorted(DTYPES))}")
        self.traffic.count(nbytes)
        if buffer.size:
            self._blocking(name, call)
        return Done()

    def _blocking(self, name: str, call: Callable[[], Any]) -> None:
        self._post.begin_call(name)
        self._post.wait()
        self._call(call)
        self._post.stop_waiting()
        self._post.end_call()

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._mpi.Exception as error:
            raise TransportError(error.Get_error_string()) from error


class _Request:
    """Handle over an MPI request."""

    def __init__(self, transport: Mpi, request: Any, peer: int) -> None:
        self._transport = transport
        self._request = request
        self._peer = peer

    def test(self) -> bool:
        return bool(self._transport._call(self._request.Test))

    def wait(self) -> None:
        self._transport._post.wait(self._peer)
        self._transport._call(self._request.Wait)
        self._transport._post.stop_waiting()


def mpi4py_version() -> str:
    """Version of mpi4py as installed."""
    import mpi4py

    return str(mpi4py.__version__)


def _thread_level(mpi: Any) -> str:
    levels = {
        mpi.THREAD_SINGLE: "single",
        mpi.THREAD_FUNNELED: "funneled",
        mpi.THREAD_SERIALIZED: "serialized",
        mpi.THREAD_MULTIPLE: "multiple",
    }
    return levels[mpi.Query_thread()]


def require_mpirun(transport: str) -> None:
    """Raises TransportError in a process that mpirun did not start."""
    if "OMPI_COMM_WORLD_RANK" not in os.environ:
        raise TransportError(f"transport {transport!r} needs ranks that mpirun started: use launcher 'mpirun'")


def settings() -> dict[str, str]:
    """Open MPI's parameters of this process, by name."""
    return {name: os.environ[f"OMPI_MCA_{name}"] for name in SETTINGS if f"OMPI_MCA_{name}" in os.environ}


def path_of(settings: dict[str, str]) -> Path:
    """The path of Open MPI's bytes under these parameters."""
    layers = set(settings.get("btl", "").split(",")) - {"self", ""}
    if settings.get("pml") == "ob1" and layers == {"sm"}:
        return "shared memory"
    if settings.get("pml") == "ob1" and layers == {"tcp"}:
        return "socket"
    return "library's choice"


PLUGIN = TransportPlugin(
    name="mpi",
    summary="Open MPI through mpi4py",
    implementation=Mpi,
    requires=("mpi4py",),
    axis="MPI",
    launcher="mpirun",
    progress="caller",
    moves_in_wait=True,
    mailbox=MESSAGE_MAILBOX,
    within_node="memory",
    stated_costs="mpi.costs.yaml",
    polls=True,
    colour="gold",
    marker="v",
)
