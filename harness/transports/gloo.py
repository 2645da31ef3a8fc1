"""torch.distributed with the Gloo backend: its collectives, and its sends and receives."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from harness.transports._arena import as_bytes
from harness.transports.base import Array, Capabilities, Done, Handle, PeerLost, ReduceOperation, Traffic, TransportError

if TYPE_CHECKING:
    from harness.rank.context import RankContext

DTYPES = frozenset({"float16", "float32", "float64", "int8", "uint8", "int32", "int64"})
"""What Gloo reduces of NumPy's types; 16-bit integers it refuses."""
TIMEOUT = timedelta(seconds=120)
"""How long one call may take inside Gloo; the supervisor's deadline is the one that matters."""
PEER_IS_GONE = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Connection refused")


class Gloo:
    """Joins over a file store in the launch's folder: no rendezvous port is opened. Gloo's own sockets listen on the fabric's interface only."""

    def __init__(self, context: RankContext) -> None:
        import torch
        import torch.distributed

        self._torch, self._distributed = torch, torch.distributed
        self.rank, self.world_size = context.rank, context.world_size
        self.traffic = Traffic()
        self._post = context.post
        self.capabilities = Capabilities(
            point_to_point=True, one_sided=False, collective=True, dtypes=DTYPES, progress="background", path="socket",
            library=f"torch {torch.__version__} Gloo",
        )  # fmt: skip
        os.environ["GLOO_SOCKET_IFNAME"] = context.case.interface
        store = torch.distributed.FileStore(str(context.folder / "gloo.store"), context.world_size)
        self._closed = False
        self._blocking(lambda: torch.distributed.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size, timeout=TIMEOUT))

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect."""
        return cls(context)

    def allocate(self, nbytes: int) -> Array:
        """Plain memory: Gloo registers none."""
        return np.empty(nbytes, np.uint8)

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        reduction = self._distributed.ReduceOp.SUM if operation == "sum" else self._distributed.ReduceOp.MAX
        return self._start(
            "all_reduce", buffer.nbytes, lambda: self._distributed.all_reduce(self._tensor(buffer), op=reduction, async_op=True), empty=buffer.size == 0
        )

    def reduce_scatter(self, source: Array, target: Array) -> Handle:
        """See Collectives.reduce_scatter; torch's Gloo has a native one."""
        return self._start(
            "reduce_scatter",
            source.nbytes,
            lambda: self._distributed.reduce_scatter_single(self._tensor(target), self._tensor(source), async_op=True),
            empty=source.size == 0,
        )

    def all_gather(self, source: Array, target: Array) -> Handle:
        """See Collectives.all_gather."""
        return self._start(
            "all_gather",
            source.nbytes,
            lambda: self._distributed.all_gather_single(self._tensor(target), self._tensor(source), async_op=True),
            empty=source.size == 0,
        )

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See Collectives.broadcast; only the root counts its bytes."""
        nbytes = buffer.nbytes if self.rank == root else 0
        return self._start("broadcast", nbytes, lambda: self._distributed.broadcast(self._tensor(buffer), src=root, async_op=True), empty=buffer.size == 0)

    def barrier(self) -> None:
        """See Transport.barrier."""
        self.traffic.count(0)
        if self.world_size > 1:
            self._post.entered("barrier")
            self._blocking(self._distributed.barrier)
            self._post.left()

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        self.traffic.count(buffer.nbytes)
        return _Work(self, self._call(lambda: self._distributed.isend(self._bytes(buffer), dst=peer)), peer)

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        return _Work(self, self._call(lambda: self._distributed.irecv(self._bytes(buffer), src=peer)), peer)

    def close(self) -> None:
        """See Transport.close; without it Gloo's threads end in an abort."""
        if not self._closed:
            self._closed = True
            self._distributed.destroy_process_group()

    def _bytes(self, buffer: Array) -> Any:
        return self._torch.from_numpy(as_bytes(buffer))

    def _tensor(self, buffer: Array) -> Any:
        if buffer.dtype.name not in DTYPES:
            raise TransportError(f"gloo does not take {buffer.dtype.name}; it takes {', '.join(sorted(DTYPES))}")
        return self._torch.from_numpy(buffer)

    def _start(self, name: str, nbytes: int, call: Callable[[], Any], *, empty: bool) -> Handle:
        self.traffic.count(nbytes)
        if empty:
            return Done()
        self._post.entered(name)
        return _Work(self, self._call(call))

    def _blocking(self, call: Callable[[], Any], peer: int = -1) -> None:
        self._post.wait(peer)
        self._call(call)
        self._post.go_on()

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except RuntimeError as error:
            raise _translated(error) from error


class _Work:
    """Handle over torch's Work; with a peer it is a message, else a collective call."""

    def __init__(self, transport: Gloo, work: Any, peer: int = -1) -> None:
        self._transport = transport
        self._work = work
        self._peer = peer

    def test(self) -> bool:
        if self._work is not None and self._work.is_completed():
            self.wait()
        return self._work is None

    def wait(self) -> None:
        if self._work is not None:
            work, self._work = self._work, None
            self._transport._blocking(work.wait, self._peer)
            if self._peer < 0:
                self._transport._post.left()


def _translated(error: RuntimeError) -> TransportError:
    text = str(error).splitlines()[0]
    return PeerLost(-1, text) if any(words in text for words in PEER_IS_GONE) else TransportError(text)
