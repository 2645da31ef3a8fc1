"""Collectives of TensorFlow's runtime: blocking calls that a thread makes one after the other. Each transport defines
what a call does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports.contract import Array, Capabilities, Done, Handle, ReduceOperation, Traffic
from scaleproof.transports.tensorflow.tensorflow_server import TensorflowServer, check_size

if TYPE_CHECKING:
    from scaleproof.core.board import Post
    from scaleproof.core.context import RankContext

DTYPES = frozenset({"float16", "float32", "float64", "int32", "int64"})
"""What TensorFlow's collective operations take of NumPy's types, on a CPU."""
Collective = Literal["sum", "max", "gather"]


class TensorflowCollectives(ABC):
    """`queues`: names of threads beside the one for collectives; each keeps the order of its calls."""

    NAME: str
    """Its name in the registry."""

    def __init__(
        self, context: RankContext, server: TensorflowServer, queues: Sequence[str] = (), sends: bool = False
    ) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._post = context.post
        self._server = server
        library = f"tensorflow {server.tf.__version__} gRPC runtime"
        self.capabilities = Capabilities(
            point_to_point=sends,
            one_sided=False,
            collective=True,
            dtypes=DTYPES,
            progress="background",
            path="socket",
            library=library,
        )
        self._threads = {
            name: ThreadPoolExecutor(1, thread_name_prefix=f"tensorflow {name}") for name in ("collectives", *queues)
        }
        self._closed = False
        try:
            self._set_up(context)
            context.rendezvous.exchange("tensorflow.joined", self.rank, self.world_size, True)
        except Exception:
            self.close()
            raise

    @classmethod
    @abstractmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""

    @abstractmethod
    def _set_up(self, context: RankContext) -> None:
        """Build what can be built before the first call."""

    @abstractmethod
    def _collective(self, kind: Collective, buffer: Array) -> Any:
        """The result of a call of all ranks, in new memory. Blocks."""

    @abstractmethod
    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast. Only the root counts its bytes."""

    def allocate(self, nbytes: int) -> Array:
        """Plain memory, since TensorFlow registers none, aligned to 64 bytes so that TensorFlow feeds a buffer without
        a copy."""
        memory = np.empty(nbytes + 64, np.uint8)
        start = -memory.ctypes.data % 64
        return memory[start : start + nbytes]

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        return self._start(
            "all_reduce", buffer, buffer.nbytes, lambda: self._collective(operation, buffer), into(buffer)
        )

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """See Collectives.reduce_scatter; an all-reduce of which this rank keeps its part: TensorFlow has no other ring
        over gRPC."""

        def keep_part(result: Array) -> None:
            np.copyto(target, result[self.rank * target.size : (self.rank + 1) * target.size])

        return self._start("reduce_scatter", source, source.nbytes, lambda: self._collective("sum", source), keep_part)

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather."""
        return self._start(
            "all_gather", source, source.nbytes, lambda: self._collective("gather", source), into(target)
        )

    def barrier(self) -> None:
        """See Transport.barrier; an all-reduce of one number."""
        number = np.zeros(1, np.float32)
        self._start("barrier", number, 0, lambda: self._collective("sum", number), nothing).wait()

    def close(self) -> None:
        """See Transport.close. Calls whose peer is gone end with the server's sockets."""
        if self._closed:
            return
        self._closed = True
        self._server.close()
        for threads in self._threads.values():
            threads.shutdown(cancel_futures=True)

    def _start(
        self, name: str, buffer: Array, nbytes: int, call: Callable[[], Any], on_result: Callable[[Array], None]
    ) -> Handle:
        """Run `call` in the thread of collectives, and `on_result` with its result in the caller's thread."""
        self._check(buffer)
        self.traffic.count(nbytes)
        if buffer.size == 0:
            return Done()
        if self.world_size == 1:
            on_result(buffer)
            return Done()
        self._post.begin_call(name)
        return Call(self._post, self._submit("collectives", call), on_result)

    def _check(self, buffer: Array) -> None:
        if buffer.dtype.name not in DTYPES:
            raise TransportError(f"{self.NAME} does not take {buffer.dtype.name}; it takes {', '.join(sorted(DTYPES))}")
        check_size(buffer.nbytes)

    def _submit(self, queue: str, call: Callable[[], Any]) -> Future[Any]:
        if self._closed:
            raise TransportError(f"rank {self.rank} closed its transport")
        return self._threads[queue].submit(call)


class Call:
    """Handle of a call in one of the transport's threads. `on_result` gets its result in the caller's thread. `peer`:
    -1 for a collective."""

    def __init__(self, post: Post, future: Future[Any], on_result: Callable[[Any], None], peer: int = -1) -> None:
        self._post, self._on_result, self._peer = post, on_result, peer
        self._future: Future[Any] | None = future

    def test(self) -> bool:
        """See Handle."""
        if self._future is not None and self._future.done():
            self._finish(self._future)
        return self._future is None

    def wait(self) -> None:
        """See Handle."""
        if self._future is None:
            return
        if not self._future.done():
            self._post.wait(self._peer)
            self._future.exception()
            self._post.stop_waiting()
        self._finish(self._future)

    def _finish(self, future: Future[Any]) -> None:
        self._future = None
        try:
            result = future.result()
        except PeerLost as error:
            raise PeerLost(self._peer if error.peer < 0 else error.peer, str(error)) from error
        if result is not None:
            self._on_result(result)
        if self._peer < 0:
            self._post.end_call()


def into(target: Array) -> Callable[[Array], None]:
    """A callback that copies a result into `target`."""
    return lambda result: np.copyto(target, result)


def nothing(_: Any) -> None:
    """A callback that ignores the result."""
