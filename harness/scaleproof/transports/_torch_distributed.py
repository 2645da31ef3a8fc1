"""Base of the transports over torch.distributed: collectives, sends and receives. Each back end has its own file."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from scaleproof.core.transport_errors import PeerLost, TransportError
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports.contract import Array, Capabilities, Done, Handle, ReduceOperation, Traffic

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

TIMEOUT = timedelta(seconds=120)
"""How long one call may take in the back end. The supervisor's deadline is shorter."""
PEER_IS_GONE = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Connection refused")


class TorchDistributed(ABC):
    """One process group of all ranks. On one machine it joins over a file store in the launch's folder, without a
    rendezvous port."""

    BACKEND: str
    DTYPES: frozenset[str]
    """NumPy's types that the back end reduces."""
    PATH: Literal["shared memory", "socket", "library's choice"]
    PROGRESS: Literal["caller", "background"] = "background"
    SILENT_CALLS: frozenset[str] = frozenset()
    """Collective calls whose works call themselves completed only after their `wait`, as those of messages may."""

    def __init__(self, context: RankContext) -> None:
        import torch
        import torch.distributed

        self._torch, self._distributed = torch, torch.distributed
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._post = context.post
        self.capabilities = Capabilities(
            point_to_point=True,
            one_sided=False,
            collective=True,
            dtypes=self.DTYPES,
            progress=self.PROGRESS,
            path=self.PATH,
            library=f"torch {torch.__version__} {self.version()}",
        )
        self._closed = False
        self.prepare(context)
        self._blocking(lambda: self.join(context))

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""
        return cls(context)

    @abstractmethod
    def prepare(self, context: RankContext) -> None:
        """Settings that must be made before the process group."""

    def version(self) -> str:
        """Name and version of the back end."""
        return self.BACKEND

    def join(self, context: RankContext) -> None:
        """Make the process group."""
        store = self._store(context)
        self._distributed.init_process_group(
            self.BACKEND, store=store, rank=self.rank, world_size=self.world_size, timeout=TIMEOUT
        )

    def _store(self, context: RankContext) -> Any:
        """The store in which ranks publish their addresses: a file in the launch's folder, or between real nodes, which
        need not share a folder, a port of rank 0."""
        if context.case.plugin("fabric").evidence != "measured" or context.case.nodes == 1:
            return self._distributed.FileStore(str(context.folder / f"{self.BACKEND}.store"), context.world_size)
        key, workers = f"{self.BACKEND}.store", context.world_size
        if context.rank:
            address, port = context.rendezvous.get(key)
            return self._distributed.TCPStore(address, port, workers, is_master=False, timeout=TIMEOUT)
        # torch's own listener would bind every interface.
        family = socket.AF_INET6 if ":" in context.address else socket.AF_INET
        listener = socket.create_server((context.address, 0), family=family, backlog=workers + 8)
        port = listener.getsockname()[1]
        context.rendezvous.publish(key, [context.address, port])
        return self._distributed.TCPStore(
            context.address,
            port,
            workers,
            is_master=True,
            timeout=TIMEOUT,
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )

    def lend(self, tensor: Any) -> Any:
        """The tensor that the back end works on: the tensor itself, in the array's memory, unless the back end needs
        other memory."""
        return tensor

    def copy_back(self, lent: Any, tensor: Any) -> None:
        """Copy a result into the array's memory, unless the back end worked on that memory."""
        if lent is not tensor:
            tensor.copy_(lent)

    def pollable(self, work: Any) -> Any:
        """The work of a message or a silent call, whose `is_completed` turns true once it is: torch's own, unless it
        never does."""
        return work

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: torch.distributed needs no registered memory."""
        return np.empty(nbytes, np.uint8)

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        reduction = self._distributed.ReduceOp.SUM if operation == "sum" else self._distributed.ReduceOp.MAX
        return self._start(
            "all_reduce",
            buffer.nbytes,
            lambda lent: self._distributed.all_reduce(lent, op=reduction, async_op=True),
            buffer,
        )

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """See Collectives.reduce_scatter."""
        call = self._distributed.reduce_scatter_single
        return self._start(
            "reduce_scatter", source.nbytes, lambda output, own: call(output, own, async_op=True), target, source
        )

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather."""
        call = self._distributed.all_gather_single
        return self._start(
            "all_gather", source.nbytes, lambda output, own: call(output, own, async_op=True), target, source
        )

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast; only the root counts its bytes."""
        nbytes = buffer.nbytes if self.rank == root else 0
        return self._start(
            "broadcast", nbytes, lambda lent: self._distributed.broadcast(lent, src=root, async_op=True), buffer
        )

    def barrier(self) -> None:
        """See Transport.barrier."""
        self.traffic.count(0)
        if self.world_size > 1:
            self._post.begin_call("barrier")
            self._blocking(self._distributed.barrier)
            self._post.end_call()

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        lent = self.lend(self._bytes(buffer))
        return _Work(self, self.pollable(self._call(lambda: self._distributed.isend(lent, dst=peer))), peer)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        tensor = self._bytes(buffer)
        lent = self.lend(tensor)
        work = self.pollable(self._call(lambda: self._distributed.irecv(lent, src=peer)))
        return _Work(self, work, peer, (lent, tensor))

    def close(self) -> None:
        """See Transport.close. Without it the back end's threads would abort the process at exit."""
        if not self._closed:
            self._closed = True
            self._distributed.destroy_process_group()

    def _bytes(self, buffer: Array) -> Any:
        return self._torch.from_numpy(as_bytes(buffer))

    def _tensor(self, buffer: Array) -> Any:
        if buffer.dtype.name not in self.DTYPES:
            raise TransportError(
                f"{self.BACKEND} does not take {buffer.dtype.name}; it takes {', '.join(sorted(self.DTYPES))}"
            )
        return self._torch.from_numpy(buffer)

    def _start(self, name: str, nbytes: int, call: Callable[..., Any], target: Array, *inputs: Array) -> Handle:
        """`call` gets the tensor of the target, which receives the result, and the tensors of the inputs."""
        self.traffic.count(nbytes)
        if target.size == 0:
            return Done()
        self._post.begin_call(name)
        tensor = self._tensor(target)
        lent = self.lend(tensor)
        lent_inputs = [self.lend(self._tensor(array)) for array in inputs]
        work = self._call(lambda: call(lent, *lent_inputs))
        return _Work(self, self.pollable(work) if name in self.SILENT_CALLS else work, result=(lent, tensor))

    def _blocking(self, call: Callable[[], Any], peer: int = -1) -> None:
        self._post.wait(peer)
        self._call(call)
        self._post.stop_waiting()

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except RuntimeError as error:
            raise _translated(error) from error


class _Work:
    """Handle over torch's Work, of a message if it has a peer, otherwise of a collective call."""

    def __init__(
        self, transport: TorchDistributed, work: Any, peer: int = -1, result: tuple[Any, Any] | None = None
    ) -> None:
        self._transport = transport
        self._work = work
        self._peer = peer
        self._result = result

    def test(self) -> bool:
        if self._work is not None and self._work.is_completed():
            self.wait()
        return self._work is None

    def wait(self) -> None:
        if self._work is not None:
            work, self._work = self._work, None
            self._transport._blocking(work.wait, self._peer)
            if self._result is not None:
                self._transport.copy_back(*self._result)
                self._result = None
            if self._peer < 0:
                self._transport._post.end_call()


def _translated(error: RuntimeError) -> TransportError:
    text = str(error).splitlines()[0]
    return PeerLost(-1, text) if any(phrase in text for phrase in PEER_IS_GONE) else TransportError(text)


def lacking(backend: str, library: str) -> str:
    """The reason if this torch was built without the back end, which needs `library`, or without torch.distributed;
    empty if it has the back end."""
    import torch.distributed

    if torch.distributed.is_available() and torch.distributed.is_backend_available(backend):
        return ""
    return f"torch {torch.__version__} was built without {library}"
