"""Collectives of TensorFlow's runtime: blocking calls that a thread makes one after the other. What a call is made of
belongs to the transport."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports.contract import Array, Capabilities, Done, Handle, ReduceOperation, Traffic
from scaleproof.transports.tensorflow.tensorflow_server import Cluster, check_size

if TYPE_CHECKING:
    from scaleproof.core.board import Post
    from scaleproof.core.context import RankContext

DTYPES = frozenset({"float16", "float32", "float64", "int32", "int64"})
"""What TensorFlow's collective operations take of NumPy's types, on a CPU."""
Collective = Literal["sum", "max", "gather"]


class TensorflowCollectives(ABC):
    """`queues` names threads for more than collectives, each of which keeps the order of its calls."""

    NAME: str
    """In the registry."""

    def __init__(self, context: RankContext, cluster: Cluster, queues: Sequence[str] = (), sends: bool = False) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._post = context.post
        self._cluster = cluster
        library = f"tensorflow {cluster.tf.__version__} gRPC runtime"
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
        """What can be made before the first call."""

    @abstractmethod
    def _collective(self, kind: Collective, buffer: Array) -> Any:
        """The result of a call of all ranks, in new memory; blocks."""

    @abstractmethod
    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast. Only the root counts its bytes."""

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: TensorFlow registers none. Aligned as TensorFlow wants it, so that a buffer is fed without a
        copy."""
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

        def keep(result: Array) -> None:
            np.copyto(target, result[self.rank * target.size : (self.rank + 1) * target.size])

        return self._start("reduce_scatter", source, source.nbytes, lambda: self._collective("sum", source), keep)

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather."""
        return self._start(
            "all_gather", source, source.nbytes, lambda: self._collective("gather", source), into(target)
        )

    def barrier(self) -> None:
        """See Transport.barrier; an all-reduce of one number."""
        mark = np.zeros(1, np.float32)
        self._start("barrier", mark, 0, lambda: self._collective("sum", mark), nothing).wait()

    def close(self) -> None:
        """See Transport.close. Calls that have no peer any more end with the server's sockets."""
        if self._closed:
            return
        self._closed = True
        self._cluster.close()
        for threads in self._threads.values():
            threads.shutdown(cancel_futures=True)

    def _start(
        self, name: str, buffer: Array, nbytes: int, call: Callable[[], Any], then: Callable[[Array], None]
    ) -> Handle:
        """`call` in the thread of collectives, `then` with its result in that of the caller."""
        self._check(buffer)
        self.traffic.count(nbytes)
        if buffer.size == 0:
            return Done()
        if self.world_size == 1:
            then(buffer)
            return Done()
        self._post.entered(name)
        return Call(self._post, self._submit("collectives", call), then)

    def _check(self, buffer: Array) -> None:
        if buffer.dtype.name not in DTYPES:
            raise TransportError(f"{self.NAME} does not take {buffer.dtype.name}; it takes {', '.join(sorted(DTYPES))}")
        check_size(buffer.nbytes)

    def _submit(self, queue: str, call: Callable[[], Any]) -> Future[Any]:
        if self._closed:
            raise TransportError(f"rank {self.rank} closed its transport")
        return self._threads[queue].submit(call)


class Call:
    """Handle of a call that one of the transport's threads makes; its result goes to its place in the thread of the
    caller. `peer` -1: a collective."""

    def __init__(self, post: Post, future: Future[Any], then: Callable[[Any], None], peer: int = -1) -> None:
        self._post, self._then, self._peer = post, then, peer
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
            self._post.go_on()
        self._finish(self._future)

    def _finish(self, future: Future[Any]) -> None:
        self._future = None
        try:
            result = future.result()
        except PeerLost as error:
            raise PeerLost(self._peer if error.peer < 0 else error.peer, str(error)) from error
        if result is not None:
            self._then(result)
        if self._peer < 0:
            self._post.left()


def into(target: Array) -> Callable[[Array], None]:
    """Copies a result to where it belongs."""
    return lambda result: np.copyto(target, result)


def nothing(_: Any) -> None:
    """The result is of no interest."""
