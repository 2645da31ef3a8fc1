"""TensorFlow's own distributed runtime: one gRPC server per rank, and sessions on them. What its graphs exchange goes
by its RecvTensor and RecvBuf calls.

A tensor sent between two servers, as xue2019 and awan2019 measure it:

    servers = SessionServer(context)                            # on every rank, after the fork
    tensor = HeldTensor(servers, owner=0)                 # on every rank, the same calls in the same order
if context.rank == 0:
        tensor.put(np.ones(elements, np.float32))         # the tensor lies in the memory of rank 0's server; another
        size any time
context.rendezvous.exchange(f"put.{elements}", context.rank, context.world_size, True) if context.rank == 1:
        found = tensor.reduce_max()                       # time this: one RecvTensor from rank 0, reduce_max on rank
        1's device
        assert (tensor.pull() == 1).all()                 # the content, outside of the timed region
    servers.close()                                       # waits a little for peers that still take something
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np

from scaleproof.core.transport_errors import TransportError
from scaleproof.transports.contract import Array
from scaleproof.transports.tensorflow.tensorflow_server import JOB, TensorflowServer, check_size, ignored

CHUNK = 4 << 20
"""Bytes per piece of a RecvBuf answer; TensorFlow's default of 4 KiB costs more processor time
(docs/transports/tensorflow-grpc.md)."""
_KEPT: list[Any] = []
"""Sessions of this process. TensorFlow closes one that nobody holds, which waits for ever for peers that are gone."""


class SessionServer(TensorflowServer):
    """A server with sessions, as in TensorFlow 1."""

    def _serve(self, cluster_spec: Any) -> None:
        self._sessions = list[Any]()
        self.config = self._configure()
        self._server = self.tf.distribute.Server(
            cluster_spec, job_name=JOB, task_index=self.rank, protocol="grpc", config=self.config
        )

    def device(self, rank: int) -> str:
        """Name of a rank's device in every graph of the cluster."""
        return f"/job:{JOB}/replica:0/task:{rank}/device:CPU:0"

    def session(self, graph: Any) -> Any:
        """A session on the own server's master; `graph` must be complete, since every change would be sent to all
        servers again."""
        with self.calling():
            session = self.tf.compat.v1.Session(self._server.target, graph=graph, config=self.config)
        self._sessions.append(session)
        _KEPT.append(session)
        return session

    def _leave(self) -> None:
        for session in self._sessions:
            with ignored(self.tf.errors.OpError):
                session.close()

    def _configure(self) -> Any:
        config = self.tf.compat.v1.ConfigProto(intra_op_parallelism_threads=self.threads)
        config.experimental.collective_group_leader = f"/job:{JOB}/replica:0/task:0"
        config.experimental.recv_buf_max_chunk = CHUNK
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        return config

    def _tuning(self) -> dict[str, Any]:
        config = self.config
        inter_op = config.inter_op_parallelism_threads or int(os.environ.get("TF_NUM_INTEROP_THREADS", 0))
        return {
            "recv_buf_max_chunk_bytes": config.experimental.recv_buf_max_chunk,
            "num_channels_per_target": config.rpc_options.num_channels_per_target or 1,
            "compression": config.rpc_options.compression_algorithm or "none",
            "inter_op_threads": inter_op or "as many as cores",
        }


class HeldTensor:
    """A float32 tensor in the memory of one rank's server; any rank can pull it into its own device. The module's
    docstring shows its use. `pieces`: parts in which it travels, each by a request of its own; tensors of one owner and
    name are the same tensor, whatever their pieces."""

    def __init__(self, servers: SessionServer, owner: int, name: str = "held", pieces: int = 1) -> None:
        tf = servers.tf
        self._servers, self._owner = servers, owner
        graph = tf.Graph()
        with graph.as_default():
            with tf.device(servers.device(owner)):
                variable = tf.raw_ops.VarHandleOp(
                    dtype=tf.float32, shape=tf.TensorShape(None), shared_name=name, container=""
                )
                read = tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.float32)
                values = tf.compat.v1.placeholder(tf.float32, [None])
                assign = tf.raw_ops.AssignVariableOp(resource=variable, value=tf.identity(values), validate_shape=False)
                parts = _parts(tf, read, pieces)
            with tf.device(servers.device(servers.rank)):
                arrived = [tf.identity(part) for part in parts]
                pulled = tf.concat(arrived, 0) if pieces > 1 else arrived[0]
                largest = tf.reduce_max(tf.stack([tf.reduce_max(part) for part in arrived]))
        session = servers.session(graph)
        self._assign = session.make_callable(assign, [values])
        self._pull, self._largest = session.make_callable(pulled), session.make_callable(largest)

    def put(self, values: Array) -> None:
        """On the owner: hold these values (flat float32). Raises MessageTooLarge when they do not fit into one
        message."""
        if self._servers.rank != self._owner:
            raise TransportError(f"rank {self._servers.rank} cannot set a tensor that rank {self._owner} holds")
        check_size(values.nbytes)
        with self._servers.calling():
            self._assign(values)

    def pull(self) -> Array:
        """The whole tensor, in the memory of this rank."""
        with self._servers.calling():
            return np.asarray(self._pull())

    def reduce_max(self) -> float:
        """Its largest element, computed on this rank's device."""
        with self._servers.calling():
            return float(self._largest())


def _parts(tf: Any, tensor: Any, pieces: int) -> list[Any]:
    """A flat tensor of any size in parts of about equal size, along its elements."""
    if pieces == 1:
        return [tensor]
    elements = tf.size(tensor)
    bounds = [elements * piece // pieces for piece in range(pieces + 1)]
    return [tensor[low:high] for low, high in itertools.pairwise(bounds)]
