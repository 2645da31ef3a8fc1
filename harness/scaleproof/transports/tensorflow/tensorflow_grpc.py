"""TensorFlow's own distributed runtime over gRPC: its ring collectives, and messages through queues on the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.spec.plugins import MESSAGE_MAILBOX, TransportPlugin
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports.contract import Array, Handle, ReduceOperation
from scaleproof.transports.tensorflow.session_server import SessionServer
from scaleproof.transports.tensorflow.tensorflow_collectives import (
    DTYPES,
    Call,
    Collective,
    TensorflowCollectives,
    into,
    nothing,
)
from scaleproof.transports.tensorflow.tensorflow_server import check_size

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

MERGES: dict[ReduceOperation, str] = {"sum": "Add", "max": "Max"}
GROUP = 1
"""Key of the group of all ranks."""


class TensorflowGrpc(TensorflowCollectives):
    """The kernels and the settings of MultiWorkerMirroredStrategy with CommunicationImplementation.RING, called one by
    one."""

    NAME = "tensorflow-grpc"

    def __init__(self, context: RankContext) -> None:
        self.server = SessionServer(context)
        self._instances: dict[str, int] = {}
        self._peers = [peer for peer in range(context.world_size) if peer != context.rank]
        # One thread per peer and direction keeps the order of messages.
        super().__init__(
            context,
            self.server,
            [f"{direction}.{peer}" for peer in self._peers for direction in ("send", "recv")],
            sends=True,
        )

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""
        return cls(context)

    def _set_up(self, context: RankContext) -> None:
        self._calls = _Calls(self.server, self._peers)

    def _collective(self, kind: Collective, buffer: Array) -> Array | None:
        return self._calls.collective(kind, buffer, self._instance(kind, buffer))

    def _instance(self, kind: str, buffer: Array) -> int:
        """One key per operation, type and size, equal on all ranks since they call in the same order. TensorFlow keeps
        every instance for the process's life."""
        return self._instances.setdefault(f"{kind}.{buffer.dtype.name}.{buffer.size}", len(self._instances))

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See TensorflowCollectives.broadcast; a tree."""
        is_root = self.rank == root

        def call() -> Array | None:
            return self._calls.collective(
                "broadcast.send" if is_root else "broadcast.recv", buffer, self._instance(f"broadcast.{root}", buffer)
            )

        return self._start(
            "broadcast", buffer, buffer.nbytes if is_root else 0, call, nothing if is_root else into(buffer)
        )

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send; done when the bytes are in the queue on the own server, from which the peer reads
        them."""
        data = as_bytes(buffer)
        check_size(data.nbytes)
        self.traffic.count(data.nbytes)
        # A copy: TensorFlow would read the caller's memory until the peer has received it.
        return Call(
            self._post, self._submit(f"send.{peer}", lambda: self._calls.enqueue(peer, data.copy())), nothing, peer
        )

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        data = as_bytes(buffer)

        def copy(result: Array) -> None:
            if result.size != data.size:
                raise TransportError(f"a message does not have the {data.size} bytes that its receiver expects")
            np.copyto(data, result)

        return Call(self._post, self._submit(f"recv.{peer}", lambda: self._calls.dequeue(peer)), copy, peer)


class _Calls:
    """The graph of all operations of this transport, built once, and its calls. They block and are thread-safe."""

    def __init__(self, server: SessionServer, peers: list[int]) -> None:
        tf = server.tf
        self._server, self._world_size = server, server.world_size
        graph = tf.Graph()
        nodes: dict[str, tuple[Any, list[Any]]] = {}
        with graph.as_default():
            with tf.device(server.device(server.rank)):
                for dtype in sorted(DTYPES):
                    nodes |= {
                        f"{kind}.{dtype}": node
                        for kind, node in self._collectives(tf, tf.dtypes.as_dtype(dtype)).items()
                    }
            for peer in peers:
                nodes |= self._messages(tf, server, peer)
        session = server.session(graph)
        self._callables = {name: session.make_callable(fetch, feeds) for name, (fetch, feeds) in nodes.items()}

    def collective(self, kind: str, buffer: Array, instance: int) -> Array | None:
        """One call of all ranks; the result is a new array."""
        fed = np.array([buffer.size], np.int32) if kind == "broadcast.recv" else buffer
        return self._run(f"{kind}.{buffer.dtype.name}", fed, instance)

    def enqueue(self, peer: int, data: Array) -> None:
        """Write bytes into the own server's queue for a peer."""
        self._run(f"send.{peer}", data)

    def dequeue(self, peer: int) -> Array | None:
        """Remove the oldest bytes from the queue on the peer's server."""
        return self._run(f"recv.{peer}")

    def _run(self, name: str, *feeds: Any) -> Array | None:
        with self._server.calling():
            result: Array | None = self._callables[name](*feeds)
            return result

    def _collectives(self, tf: Any, dtype: Any) -> dict[str, tuple[Any, list[Any]]]:
        value, count, instance = (
            tf.compat.v1.placeholder(*kind) for kind in ((dtype, [None]), (tf.int32, [1]), (tf.int32, []))
        )
        common = {
            "group_size": self._world_size,
            "group_key": GROUP,
            "instance_key": instance,
            "communication_hint": "ring",
        }
        nodes: dict[str, tuple[Any, list[Any]]] = {}
        for operation, merge in MERGES.items():
            reduced = tf.raw_ops.CollectiveReduceV2(
                input=value, merge_op=merge, final_op="Id", ordering_token=[], **common
            )
            nodes[operation] = (reduced, [value, instance])
        nodes["gather"] = (tf.raw_ops.CollectiveGatherV2(input=value, ordering_token=[], **common), [value, instance])
        if self._world_size > 1:
            nodes["broadcast.send"] = (tf.raw_ops.CollectiveBcastSendV2(input=value, **common).op, [value, instance])
            nodes["broadcast.recv"] = (
                tf.raw_ops.CollectiveBcastRecvV2(T=dtype, shape=count, **common),
                [count, instance],
            )
        return nodes

    @staticmethod
    def _messages(tf: Any, server: SessionServer, peer: int) -> dict[str, tuple[Any, list[Any]]]:
        """A queue of bytes per direction, on the sender's device."""

        def queue(source: int, destination: int) -> Any:
            with tf.device(server.device(source)):
                return tf.queue.FIFOQueue(-1, [tf.uint8], shared_name=f"messages.{source}.{destination}")

        with tf.device(server.device(server.rank)):
            value = tf.compat.v1.placeholder(tf.uint8, [None])
            sent = queue(server.rank, peer).enqueue([value])
        with tf.device(server.device(peer)):
            received = queue(peer, server.rank).dequeue()
        with tf.device(server.device(server.rank)):
            return {f"send.{peer}": (sent, [value]), f"recv.{peer}": (tf.identity(received), [])}


PLUGIN = TransportPlugin(
    name="tensorflow-grpc",
    summary="TensorFlow's own distributed runtime, ring over gRPC",
    implementation=TensorflowGrpc,
    requires=("tensorflow",),
    needs_framework="tensorflow",
    axis="gRPC",
    mailbox=MESSAGE_MAILBOX,
    stated_costs="tensorflow_grpc.costs.yaml",
    message_threads=8,  # GrpcWorkerServiceOptions of TensorFlow (grpc_worker_service.h): 8 threads serve
)
