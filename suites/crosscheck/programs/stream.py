"""One-way stream from rank 0 to rank 1 over a transport: messages of one size, with a window of pending messages, as
iperf3 and osu_bw send.

Options: `messages` (number), `window` (most pending messages). Both ends reuse one buffer, as those tools do.
"""

from __future__ import annotations

from collections import deque

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import leave, mark
from scaleproof.programs.payload import differing, pattern
from scaleproof.spec import registry
from scaleproof.transports.contract import Array, Handle, PointToPoint

SENDER, RECEIVER = 0, 1


def run(context: RankContext) -> None:
    """Verifies a message, streams, verifies another message. Each rank records its side as one event `stream` of all
    bytes."""
    case = context.case
    transport: PointToPoint = registry.load("transport", case.transport).connect(context)
    try:
        buffer = transport.allocate(case.sizes[0])
        _verify(context, transport, buffer, "first")
        context.at(0, f"stream {buffer.nbytes} B", 1 - context.rank)
        transport.barrier()
        mark(context, "start", 0)
        started = now()
        _stream(context.rank, transport, buffer, int(case.options["messages"]), int(case.options["window"]))
        context.recorder.add("stream", 0, started, now(), buffer.nbytes * int(case.options["messages"]))
        mark(context, "end", 0)
        _verify(context, transport, buffer, "last")
        transport.barrier()
    finally:
        leave(context, transport)


def _stream(rank: int, transport: PointToPoint, buffer: Array, messages: int, window: int) -> None:
    under_way: deque[Handle] = deque()
    for _ in range(messages):
        if len(under_way) == window:
            under_way.popleft().wait()
        under_way.append(transport.send(buffer, RECEIVER) if rank == SENDER else transport.recv(buffer, SENDER))
    for handle in under_way:
        handle.wait()


def _verify(context: RankContext, transport: PointToPoint, buffer: Array, when: str) -> None:
    expected = pattern(buffer.nbytes, "uint8", len(when))
    if context.rank == SENDER:
        buffer[:] = expected
        transport.send(buffer, RECEIVER).wait()
    else:
        buffer.fill(0)
        transport.recv(buffer, SENDER).wait()
        wrong = differing(buffer, expected)
        context.check(
            f"stream.{when}", not wrong, f"{wrong} of {buffer.nbytes} bytes differ" if wrong else "payload as sent"
        )
