"""Traces our engines: records every message between two ranks, or every access to a peer's memory, with peer, bytes and
times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic_ns as now
from typing import Any

from scaleproof.collectives.mapped_engine import MappedEngine
from scaleproof.collectives.mapped_plan import Plan
from scaleproof.transports.contract import Array, Handle, Mapped, PointToPoint, ReduceOperation

Moved = tuple[str, int, int, int, int]
"""Event, start and end in ns, bytes, peer."""


class TracedTransport:
    """Records the times of a transport's messages, from the call until the caller sees that it is done. All other calls
    are forwarded to the transport."""

    def __init__(self, transport: PointToPoint, trace: list[Moved]) -> None:
        self._transport, self.trace = transport, trace
        if hasattr(transport, "recv_reduce"):
            self.recv_reduce = self._recv_reduce

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def send(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.send."""
        start = now()
        return _TracedHandle(self._transport.send(buffer, peer), self.trace, ("send", start, buffer.nbytes, peer))

    def recv(self, buffer: Array, peer: int) -> Handle:
        """See PointToPoint.recv."""
        start = now()
        return _TracedHandle(self._transport.recv(buffer, peer), self.trace, ("receive", start, buffer.nbytes, peer))

    def _recv_reduce(self, buffer: Array, peer: int, operation: ReduceOperation) -> Handle:
        start = now()
        transport: Any = self._transport
        return _TracedHandle(
            transport.recv_reduce(buffer, peer, operation), self.trace, ("receive_reduce", start, buffer.nbytes, peer)
        )

    def wait_for(self, ready: Callable[[], bool], peer: int) -> None:
        """See Mapped.wait_for."""
        start = now()
        transport: Any = self._transport
        transport.wait_for(ready, peer)
        self.trace.append(("wait_for", start, now(), 0, peer))


class _TracedHandle:
    """Handle of a message that is recorded when it is done."""

    def __init__(self, handle: Handle, trace: list[Moved], started: tuple[str, int, int, int]) -> None:
        self._handle, self._trace, self._started = handle, trace, started
        self._done = False

    def test(self) -> bool:
        return self._done or (self._handle.test() and self._finish())

    def wait(self) -> None:
        if not self._done:
            self._handle.wait()
            self._finish()

    def _finish(self) -> bool:
        event, start, nbytes, peer = self._started
        self._trace.append((event, start, now(), nbytes, peer))
        self._done = True
        return True


class TracedMappedEngine(MappedEngine):
    """Records the times of every access to a peer's memory."""

    def __init__(self, transport: Mapped, trace: list[Moved]) -> None:
        super().__init__(transport)
        self._trace = trace
        # Ranks of the underlying transport by ranks of a part; the last entry is for peer -1, which means no peer.
        self._transport_ranks = [*getattr(transport, "members", range(transport.world_size)), -1]

    def _program(self, plan: Plan, work: Array, reduction: ReduceOperation) -> list[tuple[Any, ...]]:
        program = super()._program(plan, work, reduction)
        return [
            (waits, partial(self._timed, function, step.kind, self._transport_ranks[step.peer]), arguments, word)
            for step, (waits, function, arguments, word) in zip(plan.steps, program, strict=True)
        ]

    def _timed(self, function: Callable[..., Any], kind: str, peer: int, *arguments: Array) -> None:
        start = now()
        function(*arguments)
        self._trace.append((kind, start, now(), arguments[0].nbytes, peer))
