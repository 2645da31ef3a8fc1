"""TensorFlow's own distributed runtime over gRPC: its ring collectives, and messages through queues on the servers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from harness.transports._arena import as_bytes
from harness.transports._tensorflow_servers import Servers, check_size
from harness.transports.base import Array, Capabilities, Done, Handle, PeerLost, ReduceOperation, Traffic, TransportError

if TYPE_CHECKING:
    from harness.rank.board import Post
    from harness.rank.context import RankContext

DTYPES = frozenset({"float16", "float32", "float64", "int32", "int64"})
"""What TensorFlow's collective operations take of NumPy's types, on a CPU."""
MERGES: dict[ReduceOperation, str] = {"sum": "Add", "max": "Max"}
GROUP = 1
"""Key of the group of all ranks."""


class TensorflowGrpc:
    """The kernels and the settings of MultiWorkerMirroredStrategy with CommunicationImplementation.RING, called one by one."""

    def __init__(self, context: RankContext) -> None:
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._post = context.post
        self.servers = Servers(context)
        self.capabilities = Capabilities(
            point_to_point=True, one_sided=False, collective=True, dtypes=DTYPES, progress="background", path="socket", library=self.servers.library
        )
        self._instances: dict[str, int] = {}
        peers = [peer for peer in range(self.world_size) if peer != self.rank]
        # One thread keeps the order of the collectives, one per peer and direction that of messages.
        queues = ["collectives", *(f"{direction}.{peer}" for peer in peers for direction in ("send", "recv"))]
        self._threads = {name: ThreadPoolExecutor(1, thread_name_prefix=f"tensorflow {name}") for name in queues}
        self._closed = False
        try:
            self._calls = _Calls(self.servers, peers)
            context.rendezvous.exchange("tensorflow.joined", self.rank, self.world_size, True)
        except Exception:
            self.close()
            raise

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""
        return cls(context)

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: TensorFlow registers none. Aligned as TensorFlow wants it, so that a buffer is fed without a copy."""
        memory = np.empty(nbytes + 64, np.uint8)
        start = -memory.ctypes.data % 64
        return memory[start : start + nbytes]

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        return self._start("all_reduce", f"reduce.{operation}", buffer, buffer.nbytes, _into(buffer))

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """See Collectives.reduce_scatter; an all-reduce of which this rank keeps its part: TensorFlow has no other ring over gRPC."""

        def keep(result: Array) -> None:
            np.copyto(target, result[self.rank * target.size : (self.rank + 1) * target.size])

        return self._start("reduce_scatter", "reduce.sum", source, source.nbytes, keep)

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather."""
        return self._start("all_gather", "gather", source, source.nbytes, _into(target))

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast; a tree. Only the root counts its bytes."""
        mine = self.rank == root
        then = _nothing if mine else _into(buffer)
        return self._start("broadcast", "broadcast.send" if mine else "broadcast.recv", buffer, buffer.nbytes if mine else 0, then, root)

    def barrier(self) -> None:
        """See Transport.barrier; an all-reduce of one number."""
        mark = np.zeros(1, np.float32)
        self._start("barrier", "reduce.sum", mark, 0, _nothing).wait()

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send; done when the bytes lie in the queue on the own server, from where the peer takes them."""
        data = as_bytes(buffer)
        check_size(data.nbytes)
        self.traffic.count(data.nbytes)
        # A copy: TensorFlow would go on reading the caller's memory until the peer took it.
        return _Call(self, self._submit(f"send.{peer}", lambda: self._calls.enqueue(peer, data.copy())), _nothing, peer)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        data = as_bytes(buffer)

        def fits(result: Array) -> None:
            if result.size != data.size:
                raise TransportError(f"a message does not have the {data.size} bytes that its receiver expects")
            np.copyto(data, result)

        return _Call(self, self._submit(f"recv.{peer}", lambda: self._calls.dequeue(peer)), fits, peer)

    def close(self) -> None:
        """See Transport.close. Calls that have no peer any more end with the server's sockets."""
        if self._closed:
            return
        self._closed = True
        self.servers.close()
        for threads in self._threads.values():
            threads.shutdown(cancel_futures=True)

    def _start(self, name: str, kind: str, buffer: Array, nbytes: int, then: Callable[[Array], None], root: int = 0) -> Handle:
        if buffer.dtype.name not in DTYPES:
            raise TransportError(f"tensorflow-grpc does not take {buffer.dtype.name}; it takes {', '.join(sorted(DTYPES))}")
        check_size(buffer.nbytes)
        self.traffic.count(nbytes)
        if buffer.size == 0:
            return Done()
        if self.world_size == 1:
            then(buffer)
            return Done()
        # One instance per operation, type and size, the same on every rank since all call in the same order; TensorFlow keeps each for ever.
        key = f"{kind.partition('.')[0] if name == 'broadcast' else kind}.{buffer.dtype.name}.{buffer.size}.{root}"
        instance = self._instances.setdefault(key, len(self._instances))
        self._post.entered(name)
        return _Call(self, self._submit("collectives", lambda: self._calls.collective(kind, buffer, instance)), then, -1)

    def _submit(self, queue: str, call: Callable[[], Array | None]) -> Future[Array | None]:
        if self._closed:
            raise TransportError(f"rank {self.rank} closed its transport")
        return self._threads[queue].submit(call)


class _Calls:
    """The graph of everything that this transport does, built once, and its calls. Blocking, safe in several threads."""

    def __init__(self, servers: Servers, peers: list[int]) -> None:
        tf = servers.tf
        self._servers, self._world_size = servers, servers.world_size
        graph = tf.Graph()
        nodes: dict[str, tuple[Any, list[Any]]] = {}
        with graph.as_default():
            with tf.device(servers.device(servers.rank)):
                for dtype in sorted(DTYPES):
                    nodes |= {f"{kind}.{dtype}": made for kind, made in self._collectives(tf, tf.dtypes.as_dtype(dtype)).items()}
            for peer in peers:
                nodes |= self._messages(tf, servers, peer)
        session = servers.session(graph)
        self._made = {name: session.make_callable(fetch, feeds) for name, (fetch, feeds) in nodes.items()}

    def collective(self, kind: str, buffer: Array, instance: int) -> Array | None:
        """One call of all ranks; the result is a new array."""
        given = np.array([buffer.size], np.int32) if kind == "broadcast.recv" else buffer
        return self._run(f"{kind}.{buffer.dtype.name}", given, instance)

    def enqueue(self, peer: int, data: Array) -> None:
        """Put bytes into the own server's queue for a peer."""
        self._run(f"send.{peer}", data)

    def dequeue(self, peer: int) -> Array | None:
        """Take the oldest bytes out of the queue on the peer's server."""
        return self._run(f"recv.{peer}")

    def _run(self, name: str, *feeds: Any) -> Array | None:
        with self._servers.calling():
            result: Array | None = self._made[name](*feeds)
            return result

    def _collectives(self, tf: Any, dtype: Any) -> dict[str, tuple[Any, list[Any]]]:
        given, count, instance = (tf.compat.v1.placeholder(*kind) for kind in ((dtype, [None]), (tf.int32, [1]), (tf.int32, [])))
        common = {"group_size": self._world_size, "group_key": GROUP, "instance_key": instance, "communication_hint": "ring"}
        found = {}
        for operation, merge in MERGES.items():
            reduced = tf.raw_ops.CollectiveReduceV2(input=given, merge_op=merge, final_op="Id", ordering_token=[], **common)
            found[f"reduce.{operation}"] = (reduced, [given, instance])
        found["gather"] = (tf.raw_ops.CollectiveGatherV2(input=given, ordering_token=[], **common), [given, instance])
        if self._world_size > 1:
            found["broadcast.send"] = (tf.raw_ops.CollectiveBcastSendV2(input=given, **common).op, [given, instance])
            found["broadcast.recv"] = (tf.raw_ops.CollectiveBcastRecvV2(T=dtype, shape=count, **common), [count, instance])
        return found

    @staticmethod
    def _messages(tf: Any, servers: Servers, peer: int) -> dict[str, tuple[Any, list[Any]]]:
        """A queue of bytes per direction, on the sender's device."""

        def queue(source: int, destination: int) -> Any:
            with tf.device(servers.device(source)):
                return tf.queue.FIFOQueue(-1, [tf.uint8], shared_name=f"messages.{source}.{destination}")

        with tf.device(servers.device(servers.rank)):
            given = tf.compat.v1.placeholder(tf.uint8, [None])
            sent = queue(servers.rank, peer).enqueue([given])
        with tf.device(servers.device(peer)):
            taken = queue(peer, servers.rank).dequeue()
        with tf.device(servers.device(servers.rank)):
            return {f"send.{peer}": (sent, [given]), f"recv.{peer}": (tf.identity(taken), [])}


class _Call:
    """Handle of a call that one of the transport's threads makes; its result goes to its place in the thread of the caller."""

    def __init__(self, transport: TensorflowGrpc, future: Future[Array | None], then: Callable[[Array], None], peer: int) -> None:
        self._post: Post = transport._post
        self._future: Future[Array | None] | None = future
        self._then, self._peer = then, peer

    def test(self) -> bool:
        if self._future is not None and self._future.done():
            self._finish(self._future)
        return self._future is None

    def wait(self) -> None:
        if self._future is None:
            return
        if not self._future.done():
            self._post.wait(self._peer)
            self._future.exception()
            self._post.go_on()
        self._finish(self._future)

    def _finish(self, future: Future[Array | None]) -> None:
        self._future = None
        try:
            result = future.result()
        except PeerLost as error:
            raise PeerLost(self._peer if error.peer < 0 else error.peer, str(error)) from error
        if result is not None:
            self._then(np.asarray(result))
        if self._peer < 0:
            self._post.left()


def _into(target: Array) -> Callable[[Array], None]:
    return lambda result: np.copyto(target, result)


def _nothing(_: Array) -> None:
    """The result is of no interest."""
