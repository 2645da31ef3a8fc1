"""Ping-pong between rank 0 and rank 1 over message sizes. A sample is one round trip on rank 0; one way takes half of
it. Further ranks only wait."""

from __future__ import annotations

from contextlib import nullcontext

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import first_use, repetitions, timed_iterations, timed_region
from scaleproof.programs.handicap import finished
from scaleproof.programs.payload import differing, pattern
from scaleproof.spec.case import TransferCase
from scaleproof.spec.emulated import shrunk
from scaleproof.spec.plugins import ProgramPlugin
from scaleproof.transports._buffers import memory_of
from scaleproof.transports.contract import Array, PointToPoint

PEERS = 2


def run(context: RankContext) -> None:
    """Runs the sweep. Each size is verified by an echo before and after its samples."""
    case = context.case
    assert isinstance(case, TransferCase)
    transport: PointToPoint = case.plugin("transport").load().connect(context)
    with timed_region(context, transport):
        sweep(context, case, transport)


def sweep(context: RankContext, case: TransferCase, transport: PointToPoint) -> None:
    """All sizes of a case over an open transport."""
    sizes = [shrunk(nbytes, case.shrink) for nbytes in case.sizes]
    memory = memory_of(case.buffers, transport)
    out, back = memory(max(sizes)), memory(max(sizes))
    if context.rank < PEERS:
        for nbytes in sizes:
            _size(context, case, transport, out[:nbytes], back[:nbytes])


def _size(context: RankContext, case: TransferCase, transport: PointToPoint, out: Array, back: Array) -> None:
    _verify(context, transport, out, back, "first")
    for iteration in timed_iterations(context, case.warmup, repetitions(case, out.nbytes)):
        context.at(iteration, f"transfer {out.nbytes} B", 1 - context.rank)
        start = now()
        _round_trip(context.rank, transport, out, back)
        if context.rank == 0:
            context.recorder.add("transfer", iteration, start, finished(start, case.handicap), out.nbytes)
    _verify(context, transport, out, back, "last")


def _round_trip(rank: int, transport: PointToPoint, out: Array, back: Array) -> None:
    if rank == 0:
        sent = transport.send(out, 1)
        transport.recv(back, 1).wait()
        sent.wait()
    else:
        transport.recv(back, 0).wait()
        transport.send(back, 0).wait()


def _verify(context: RankContext, transport: PointToPoint, out: Array, back: Array, when: str) -> None:
    """Rank 1 echoes the message; rank 0 compares it with the one it sent. The first and the last round have different
    patterns."""
    expected = pattern(out.nbytes, "uint8", len(when))
    back.fill(0)
    if context.rank == 0:
        out[:] = expected
    with first_use(context, out.nbytes) if when == "first" and context.rank == 0 else nullcontext():
        _round_trip(context.rank, transport, out, back)
    wrong = differing(back, expected)
    context.check(
        f"transfer.{out.nbytes}.{when}",
        not wrong,
        f"{wrong} of {out.nbytes} bytes differ" if wrong else "payload as sent",
    )


PLUGIN = ProgramPlugin(
    name="transfer",
    summary="point-to-point sweep over message sizes",
    implementation=run,
    case=TransferCase,
)
