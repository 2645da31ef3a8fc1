"""One gRPC server of TensorFlow per rank: the base of all kinds. Addresses, proxies, the translation of errors, and how
its sockets are closed."""

from __future__ import annotations

import os
import re
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scaleproof.core.transport_errors import MessageTooLarge, PeerLost, TransportError
from scaleproof.transports.tensorflow.bind_redirect import bound_to

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

JOB = "worker"
LIMIT = 2**31 - 1
"""Most bytes of one gRPC message of TensorFlow, which is protobuf's limit; a tensor travels in one message."""
OVERHEAD = 4096
"""Bytes that a message's own fields take beside the tensor's."""
GRACE_S = 2.0
"""How long `close` waits for peers that may still be receiving from this rank."""
PEER_IS_GONE = (
    "Socket closed",
    "Connection reset",
    "Connection refused",
    "Broken pipe",
    "failed to connect",
    "Unable to find a context_id",
    "UNAVAILABLE",
    "CoordinationService/Heartbeat",
)
TOO_LARGE = "exceeds the 2GB protobuf limit"
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Environment variables that would send even the connection to the own address through a proxy; TensorFlow has no
option against it."""
_TASK = re.compile(rf"remote target /job:{JOB}/replica:0/task:(\d+)")
_LOCATION_LINE = re.compile(r"Graph execution error|=+$|\d+ root error|(\w+: )?From /job:|Detected at node|Node:|\s|$")
"""Lines that say where a graph failed, not why."""


class TensorflowServer(ABC):
    """This rank's server in the cluster of all ranks. Needs TensorFlow 2; raises TransportError when a port or a peer
    is missing."""

    def __init__(self, context: RankContext) -> None:
        for name in PROXIES:
            os.environ.pop(name, None)
        import tensorflow

        self.tf: Any = tensorflow
        self.rank, self.world_size = context.rank, context.world_size
        self.threads = context.case.threads_per_rank
        self._rendezvous = context.rendezvous
        self._joined, self._closed = False, False
        self._before = set(_sockets())
        with _reserved(context.address) as port:
            addresses = [
                str(address)
                for address in context.rendezvous.exchange(
                    "tensorflow.place", self.rank, self.world_size, f"{_host(context.address)}:{port}"
                )
            ]
            with bound_to(context.address, port), self.calling():
                self._serve(self.tf.train.ClusterSpec({JOB: addresses}))
        self._check_bound(context.address, port)
        # A server queries every other one of the cluster for its devices, without a time limit.
        context.rendezvous.exchange("tensorflow.started", self.rank, self.world_size, True)
        self._joined = True
        variables = {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(("GRPC_", "TF_GRPC", "TF_NUM_"))
        }
        context.facts["tuning"] = {
            "message_limit_bytes": LIMIT,
            "intra_op_threads": self.threads,
            "variables": variables,
        } | self._tuning()

    @abstractmethod
    def _serve(self, cluster_spec: Any) -> None:
        """Start the own server of this ClusterSpec."""

    @abstractmethod
    def _tuning(self) -> dict[str, Any]:
        """Settings in use, for the record."""

    def _leave(self) -> None:  # noqa: B027  a server without sessions has nothing to end before its sockets
        """Called when all ranks are done, while their servers still run."""

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Around a call of TensorFlow: its errors become PeerLost or TransportError. Only the text of an OpError says
        its cause."""
        errors = self.tf.errors
        try:
            yield
        except errors.OpError as error:
            text = error.message.strip()
            first = next((line for line in text.splitlines() if not _LOCATION_LINE.match(line)), type(error).__name__)
            if isinstance(error, errors.UnavailableError | errors.AbortedError | errors.CancelledError) or any(
                phrase in text for phrase in PEER_IS_GONE
            ):
                self._joined = False
                task = _TASK.search(text)
                raise PeerLost(int(task.group(1)) if task else -1, first) from error
            if TOO_LARGE in text:
                raise MessageTooLarge(first) from error
            raise TransportError(first) from error

    def close(self) -> None:
        """Closing twice does nothing. TensorFlow cannot shut a server down, so we shut its sockets down: gRPC then
        closes the listening one, and peers see the end."""
        if self._closed:
            return
        self._closed = True
        # Without all peers, waiting for them would take the whole grace period.
        if self._joined and self._all("leaving"):
            self._leave()
            self._all("closed")
        for descriptor in self._opened():
            with ignored(OSError):
                opened = socket.socket(fileno=os.dup(descriptor))
                with opened:
                    opened.shutdown(socket.SHUT_RDWR)

    def _opened(self) -> list[int]:
        """Descriptors of the sockets that the server has opened."""
        return [descriptor for identity, descriptor in _sockets().items() if identity not in self._before]

    def _all(self, stage: str) -> bool:
        """Whether all ranks reach this stage of closing in time. What this rank sent stays in its own memory until the
        peer has received it."""
        deadline = time.monotonic() + GRACE_S
        self._rendezvous.publish(f"tensorflow.{stage}.{self.rank}", True)
        for peer in range(self.world_size):
            try:
                self._rendezvous.get(f"tensorflow.{stage}.{peer}", max(deadline - time.monotonic(), 0), peer)
            except RuntimeError:
                return False
        return True

    def _check_bound(self, address: str, port: int) -> None:
        listening = set[str]()
        for descriptor in self._opened():
            with socket.socket(fileno=os.dup(descriptor)) as opened:
                if opened.family in (socket.AF_INET, socket.AF_INET6) and opened.getsockopt(
                    socket.SOL_SOCKET, socket.SO_ACCEPTCONN
                ):
                    listening.add(opened.getsockname()[0].removeprefix("::ffff:"))
        if listening != {address}:
            self.close()
            raise TransportError(
                f"TensorFlow's server listens on {', '.join(sorted(listening)) or 'nothing'}, "
                f"not on {address}:{port} only"
            )


def check_size(nbytes: int) -> None:
    """Raises MessageTooLarge for a tensor that does not fit into one message, before gRPC tries to send it."""
    if nbytes > LIMIT - OVERHEAD:
        raise MessageTooLarge(
            f"a tensor of {nbytes} bytes does not fit into one message of TensorFlow's gRPC runtime, "
            f"which takes {LIMIT}"
        )


@contextmanager
def ignored(*kinds: type[BaseException]) -> Iterator[None]:
    """Ignore errors that a peer which is already gone causes."""
    try:
        yield
    except kinds:
        return


@contextmanager
def _reserved(address: str) -> Iterator[int]:
    """A port that no other process gets while the block runs: bound but not listening, so a server of this process may
    use it."""
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
    """Sockets of this process: descriptor by identity."""
    sockets = {}
    for name in os.listdir("/proc/self/fd"):
        with ignored(FileNotFoundError):  # the listing's own
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("socket:["):
                sockets[target] = int(name)
    return sockets
