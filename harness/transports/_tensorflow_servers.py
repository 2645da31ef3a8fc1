"""TensorFlow's own distributed runtime: one gRPC server per rank, and sessions on them. What its graphs exchange goes by its RecvTensor and RecvBuf calls.

A tensor sent between two servers, as xue2019 and awan2019 measure it:

    servers = Servers(context)                            # on every rank, after the fork
    tensor = HeldTensor(servers, owner=0)                 # on every rank, the same calls in the same order
    if context.rank == 0:
        tensor.put(np.ones(elements, np.float32))         # the tensor lies in the memory of rank 0's server; another size any time
    context.rendezvous.exchange(f"put.{elements}", context.rank, context.world_size, True)
    if context.rank == 1:
        found = tensor.reduce_max()                       # time this: one RecvTensor from rank 0, reduce_max on rank 1's device
        assert (tensor.pull() == 1).all()                 # the content, outside of the timed region
    servers.close()                                       # waits a little for peers that still take something
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.transports._tensorflow_bind import bound_to
from harness.transports.base import Array, MessageTooLarge, PeerLost, TransportError

if TYPE_CHECKING:
    from harness.rank.context import RankContext

JOB = "worker"
MIB = 1 << 20
CHUNK = 4 * MIB
"""Bytes per piece of a RecvBuf answer; TensorFlow's default of 4 KiB takes more processor time (docs/transports/tensorflow-grpc.md)."""
LIMIT = 2**31 - 1
"""Bytes of one gRPC message that TensorFlow takes, protobuf's limit too; a tensor travels in one message."""
OVERHEAD = 4096
"""Room that a message's own fields take beside the tensor's bytes."""
GRACE_S = 2.0
"""How long `close` waits for peers that may still be taking something from this rank."""
PEER_IS_GONE = ("Socket closed", "Connection reset", "Connection refused", "Broken pipe", "failed to connect", "Unable to find a context_id", "UNAVAILABLE")
TOO_LARGE = "exceeds the 2GB protobuf limit"
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Variables that would send even the connection to the own address through a proxy; TensorFlow cannot be told otherwise."""
_TASK = re.compile(rf"remote target /job:{JOB}/replica:0/task:(\d+)")
_WHERE = re.compile(r"Graph execution error|=+$|\d+ root error|(\w+: )?From /job:|Detected at node|Node:|\s|$")
"""Lines that say where a graph failed, not why."""


class Servers:
    """This rank's server, and what all ranks agreed on. Needs TensorFlow 2; raises TransportError when a port or a peer is not there."""

    def __init__(self, context: RankContext) -> None:
        for name in PROXIES:
            os.environ.pop(name, None)
        import tensorflow

        self.tf: Any = tensorflow
        self.rank, self.world_size = context.rank, context.world_size
        self._rendezvous = context.rendezvous
        self._sessions, self._joined, self._closed = list[Any](), False, False
        self._before = set(_sockets())
        self.config = self._configure(context)
        with _reserved(context.address) as port:
            places = [str(place) for place in context.rendezvous.exchange("tensorflow.place", self.rank, self.world_size, f"{_host(context.address)}:{port}")]
            with bound_to(context.address, port), self.calling():
                cluster = self.tf.train.ClusterSpec({JOB: places})
                self._server = self.tf.distribute.Server(cluster, job_name=JOB, task_index=self.rank, protocol="grpc", config=self.config)
        self._check_bound(context.address, port)
        # A session asks every server of the cluster for its devices, for ever.
        context.rendezvous.exchange("tensorflow.started", self.rank, self.world_size, True)
        self._joined = True
        context.facts["tuning"] = self._tuning()

    @property
    def library(self) -> str:
        """Name and version, as loaded."""
        return f"tensorflow {self.tf.__version__} gRPC runtime"

    def device(self, rank: int) -> str:
        """Name of a rank's device in every graph of the cluster."""
        return f"/job:{JOB}/replica:0/task:{rank}/device:CPU:0"

    def session(self, graph: Any) -> Any:
        """A session on the own server's master; `graph` is complete, since every change would be sent to all servers again."""
        with self.calling():
            session = self.tf.compat.v1.Session(self._server.target, graph=graph, config=self.config)
        self._sessions.append(session)
        return session

    @contextmanager
    def calling(self) -> Iterator[None]:
        """A call of TensorFlow: its errors become PeerLost or TransportError. It names the cause of an OpError in its text only."""
        errors = self.tf.errors
        try:
            yield
        except errors.OpError as error:
            text = error.message.strip()
            first = next((line for line in text.splitlines() if not _WHERE.match(line)), type(error).__name__)
            if isinstance(error, errors.UnavailableError | errors.AbortedError | errors.CancelledError) or any(words in text for words in PEER_IS_GONE):
                self._joined = False
                task = _TASK.search(text)
                raise PeerLost(int(task.group(1)) if task else -1, first) from error
            if TOO_LARGE in text:
                raise MessageTooLarge(first) from error
            raise TransportError(first) from error

    def close(self) -> None:
        """Idempotent. TensorFlow can shut no server down: the kernel ends its sockets, upon which gRPC closes the listening one and peers see the end."""
        if self._closed:
            return
        self._closed = True
        # A session that lost a peer would wait for it in its own close.
        if self._joined and self._all("leaving"):
            for session in self._sessions:
                with _ignored(self.tf.errors.OpError):
                    session.close()
            self._all("closed")
        for descriptor in self._opened():
            with _ignored(OSError):
                opened = socket.socket(fileno=os.dup(descriptor))
                with opened:
                    opened.shutdown(socket.SHUT_RDWR)

    def _opened(self) -> list[int]:
        """Descriptors of the sockets that came with the server."""
        return [descriptor for identity, descriptor in _sockets().items() if identity not in self._before]

    def _all(self, stage: str) -> bool:
        """Whether all ranks came to this stage of leaving in time: what this rank sent lies in its own memory until a peer has taken it."""
        deadline = time.monotonic() + GRACE_S
        self._rendezvous.put(f"tensorflow.{stage}.{self.rank}", True)
        for peer in range(self.world_size):
            try:
                self._rendezvous.get(f"tensorflow.{stage}.{peer}", max(deadline - time.monotonic(), 0), peer)
            except RuntimeError:
                return False
        return True

    def _configure(self, context: RankContext) -> Any:
        config = self.tf.compat.v1.ConfigProto(intra_op_parallelism_threads=context.case.threads_per_rank)
        config.experimental.collective_group_leader = f"/job:{JOB}/replica:0/task:0"
        config.experimental.recv_buf_max_chunk = CHUNK
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        return config

    def _tuning(self) -> dict[str, Any]:
        variables = {name: value for name, value in sorted(os.environ.items()) if name.startswith(("GRPC_", "TF_GRPC", "TF_NUM_"))}
        config = self.config
        inter_op = config.inter_op_parallelism_threads or int(os.environ.get("TF_NUM_INTEROP_THREADS", 0))
        return {
            "recv_buf_max_chunk_bytes": config.experimental.recv_buf_max_chunk, "message_limit_bytes": LIMIT,
            "num_channels_per_target": config.rpc_options.num_channels_per_target or 1, "compression": config.rpc_options.compression_algorithm or "none",
            "intra_op_threads": config.intra_op_parallelism_threads, "inter_op_threads": inter_op or "as many as cores",
            "variables": variables,
        }  # fmt: skip

    def _check_bound(self, address: str, port: int) -> None:
        elsewhere = set[str]()
        for descriptor in self._opened():
            with socket.socket(fileno=os.dup(descriptor)) as opened:
                if opened.family in (socket.AF_INET, socket.AF_INET6) and opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    elsewhere.add(opened.getsockname()[0].removeprefix("::ffff:"))
        if elsewhere != {address}:
            self.close()
            raise TransportError(f"TensorFlow's server listens on {', '.join(sorted(elsewhere)) or 'nothing'}, not on {address}:{port} only")


class HeldTensor:
    """A float32 tensor in the memory of one rank's server, that any rank pulls into its own device. See the module's text for its use."""

    def __init__(self, servers: Servers, owner: int, name: str = "held") -> None:
        tf = servers.tf
        self._servers, self._owner = servers, owner
        graph = tf.Graph()
        with graph.as_default():
            with tf.device(servers.device(owner)):
                variable = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=tf.TensorShape(None), shared_name=name, container="")
                read = tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.float32)
                given = tf.compat.v1.placeholder(tf.float32, [None])
                put = tf.raw_ops.AssignVariableOp(resource=variable, value=tf.identity(given), validate_shape=False)
            with tf.device(servers.device(servers.rank)):
                pulled = tf.identity(read)
                largest = tf.reduce_max(pulled)
        session = servers.session(graph)
        self._put = session.make_callable(put, [given])
        self._pull, self._largest = session.make_callable(pulled), session.make_callable(largest)

    def put(self, values: Array) -> None:
        """On the owner: hold these values (flat float32). MessageTooLarge before anything is tried when no RecvTensor could carry them."""
        if self._servers.rank != self._owner:
            raise TransportError(f"rank {self._servers.rank} cannot put into a tensor that rank {self._owner} holds")
        check_size(values.nbytes)
        with self._servers.calling():
            self._put(values)

    def pull(self) -> Array:
        """The whole tensor, in the memory of this rank."""
        with self._servers.calling():
            return np.asarray(self._pull())

    def reduce_max(self) -> float:
        """Its largest element, found on this rank's device."""
        with self._servers.calling():
            return float(self._largest())


def check_size(nbytes: int) -> None:
    """A tensor travels in one message: refuse one that gRPC would, before it is tried."""
    if nbytes > LIMIT - OVERHEAD:
        raise MessageTooLarge(f"a tensor of {nbytes} bytes does not fit into one message of TensorFlow's gRPC runtime, which takes {LIMIT}")


@contextmanager
def _ignored(*kinds: type[BaseException]) -> Iterator[None]:
    """What a peer that is gone already makes of a farewell."""
    try:
        yield
    except kinds:
        return


@contextmanager
def _reserved(address: str) -> Iterator[int]:
    """A port that nobody else is given while the block lasts: bound but not listening, so a server of this process may take it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((address, 0))
        except OSError as error:
            raise TransportError(f"cannot listen on {address}: {error.strerror or error}") from error
        yield opened.getsockname()[1]


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _sockets() -> dict[str, int]:
    """Sockets of this process: identity and descriptor."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with _ignored(FileNotFoundError):  # the listing's own
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("socket:["):
                found[target] = int(name)
    return found
