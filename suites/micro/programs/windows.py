"""Windows of pending messages, as in osu_bw, osu_bibw and osu_mbw_mr.

Options: `flows`: `one_way` (rank 0 to rank 1), `both_ways` (ranks 0 and 1 to each other at the same time) or `incast`
(every other rank to rank 0); `window`: most pending messages, fewer if messages are large. Events: `window`, once per
window and flow: `nbytes` of a message, `value`: number of messages. The sender records it, from the first send to the
byte by which the receiver acknowledges the window. With `both_ways` there is no acknowledgement, and each rank records
the windows that it received. `processor`, on every rank, over the timed windows of one size: `value`: CPU s of all its
threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import repetitions, timed_region
from scaleproof.programs.payload import differing, pattern
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase
from scaleproof.transports._buffers import memory_of
from scaleproof.transports.contract import Array, Handle, PointToPoint

WINDOW_BYTES = 8 << 20
"""Most bytes of pending messages; one message is always allowed."""
SECOND = 1e9
WAIT_ONLY = ("gloo",)
"""Transports whose handles report completion only in a wait: torch's work.is_completed() of an isend or irecv over
Gloo."""


def obstacle(case: OwnCase) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py. A receiver of several senders must see whose message arrived first;
    otherwise the receiver would set the senders' pace."""
    if case.options.get("flows") == "incast" and case.transport in WAIT_ONLY:
        return (
            f"over {case.transport} the arrival of a message shows only in a wait for it, "
            "so a rank cannot serve several senders in the order of arrival",
            "take another transport",
        )
    return None


@dataclass(frozen=True, slots=True)
class Lane:
    """One rank's side of a flow: memory for every message of a window, and one byte for the acknowledgement."""

    source: int
    peer: int
    sends: bool
    memory: Array
    answer: Array

    def slots(self, nbytes: int, window: int) -> list[Array]:
        """Memory of each message of a window."""
        return [self.memory[slot * nbytes : (slot + 1) * nbytes] for slot in range(window)]


def flows(kind: str, ranks: int) -> list[tuple[int, int]]:
    """Sender and receiver of every flow."""
    patterns = {"one_way": [(0, 1)], "both_ways": [(0, 1), (1, 0)], "incast": [(rank, 0) for rank in range(1, ranks)]}
    if kind not in patterns or ranks < 2:
        raise ValueError(f"flows {kind!r} of {ranks} ranks; for two or more ranks there are: {', '.join(patterns)}")
    return patterns[kind]


def window_of(case: OwnCase, nbytes: int) -> int:
    """Messages of a window."""
    return max(1, min(int(case.options["window"]), WINDOW_BYTES // max(nbytes, 1)))


def run(context: RankContext) -> None:
    """For every size: a verified window of every flow, warm-up, timed windows of all flows at the same time, and
    another verified window."""
    case = context.case
    assert isinstance(case, OwnCase)
    pairs = flows(str(case.options["flows"]), case.ranks)
    transport: PointToPoint = registry.load("transport", case.transport).connect(context)
    with timed_region(context, transport):
        lanes = _lanes(context, case, transport, pairs)
        for nbytes in case.sizes:
            _size(context, case, transport, lanes, nbytes)


def _lanes(context: RankContext, case: OwnCase, transport: PointToPoint, pairs: list[tuple[int, int]]) -> list[Lane]:
    most, rank = max(nbytes * window_of(case, nbytes) for nbytes in case.sizes), context.rank
    mine = [(source, target) for source, target in pairs if rank in (source, target)]
    memory = memory_of(case.buffers, transport)
    return [
        Lane(
            source,
            target if rank == source else source,
            rank == source,
            memory(most),
            memory(1),
        )
        for source, target in mine
    ]


def _size(context: RankContext, case: OwnCase, transport: PointToPoint, lanes: list[Lane], nbytes: int) -> None:
    window = window_of(case, nbytes)
    _verified(context, transport, lanes, nbytes, window, "first")
    context.at(0, f"windows of {window} x {nbytes} B")
    _drive(context, transport, lanes, nbytes, window, case.warmup, warmup=True)
    transport.barrier()
    spent, started = time.process_time_ns(), now()
    _drive(context, transport, lanes, nbytes, window, repetitions(case, nbytes * window), warmup=False)
    spent, ended = time.process_time_ns() - spent, now()
    if lanes:
        context.recorder.add("processor", 0, started, ended, nbytes, spent / SECOND)
    transport.barrier()
    _verified(context, transport, lanes, nbytes, window, "last")


def _drive(
    context: RankContext,
    transport: PointToPoint,
    lanes: list[Lane],
    nbytes: int,
    window: int,
    windows: int,
    *,
    warmup: bool,
) -> None:
    """Runs all lanes of this rank to their ends. A rank with one lane waits; with several lanes it advances each one
    that can make progress."""
    context.recorder.warmup = warmup
    if {lane.sends for lane in lanes} == {True, False}:
        running = [_exchanges(context, transport, lanes, nbytes, window, windows)]
    else:
        running = [_windows(context, transport, lane, nbytes, window, windows) for lane in lanes]
    if len(running) == 1:
        for handle in running[0]:
            handle.wait()
    elif running:
        _in_turns(running)
    context.recorder.warmup = False


def _in_turns(running: list[Iterator[Handle]]) -> None:
    waiting = [(lane, handle) for lane in running if (handle := next(lane, None)) is not None]
    while waiting:
        still, moved = [], False
        for lane, handle in waiting:
            following: Handle | None = handle
            while following is not None and following.test():
                following, moved = next(lane, None), True
            if following is not None:
                still.append((lane, following))
        waiting = still
        if not moved:
            time.sleep(0)  # lets threads of libraries run


def _windows(
    context: RankContext, transport: PointToPoint, lane: Lane, nbytes: int, window: int, windows: int
) -> Iterator[Handle]:
    """The handles to wait for, in order."""
    slots, peer = lane.slots(nbytes, window), lane.peer
    for number in range(windows):
        if lane.sends:
            started = now()
            yield from [transport.send(slot, peer) for slot in slots]
            yield transport.recv(lane.answer, peer)
            context.recorder.add("window", number, started, now(), nbytes, window)
        else:
            yield from [transport.recv(slot, peer) for slot in slots]
            yield transport.send(lane.answer, peer)


def _exchanges(
    context: RankContext, transport: PointToPoint, lanes: list[Lane], nbytes: int, window: int, windows: int
) -> Iterator[Handle]:
    """Both directions at the same time: a window begins when the previous windows of both directions have ended."""
    ordered = sorted(lanes, key=lambda lane: lane.sends)  # receives are posted first
    for number in range(windows):
        started = now()
        calls = [
            (transport.send if lane.sends else transport.recv)(slot, lane.peer)
            for lane in ordered
            for slot in lane.slots(nbytes, window)
        ]
        yield from calls
        context.recorder.add("window", number, started, now(), nbytes, window)


def _verified(
    context: RankContext, transport: PointToPoint, lanes: list[Lane], nbytes: int, window: int, when: str
) -> None:
    """Verifies one window of every flow, outside the timed region. The pattern differs between senders and between the
    first and the last window."""
    context.at(0, f"verifying windows of {window} x {nbytes} B")
    for lane in lanes:
        used = lane.memory[: nbytes * window]
        used[:] = pattern(used.size, "uint8", len(when) + lane.source) if lane.sends else 0
    transport.barrier()
    _drive(context, transport, lanes, nbytes, window, 1, warmup=True)
    for lane in (lane for lane in lanes if not lane.sends):
        used = lane.memory[: nbytes * window]
        wrong = differing(used, pattern(used.size, "uint8", len(when) + lane.source))
        context.check(
            f"windows.{nbytes}.{when}.from_{lane.source}",
            not wrong,
            f"{wrong} of {used.size} bytes differ" if wrong else "payload as sent",
        )
    transport.barrier()
