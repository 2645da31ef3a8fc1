"""The offset of each rank's clock from rank 0's, measured by ping-pong over a socket on the fabric's address before and
after the program; 0 where all ranks share one clock."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from scaleproof.core.context import RankContext
from scaleproof.core.handshake import Refused, answer, prove
from scaleproof.core.recorder import now
from scaleproof.core.rendezvous import RendezvousTimeout

ROUNDS = 12
"""Round trips per comparison; the shortest counts, since chance only makes them longer."""
MEET_S = 60.0
"""How long ranks wait for each other before the program; a rank that is missing then also fails the program."""
LEAVE_S = 2.0
"""How long ranks wait for each other after the program; a rank that ends much later keeps the first comparison only."""
_TIMES = struct.Struct("<qq")


@dataclass(frozen=True, slots=True)
class Reading:
    """`offset_ns`: what to add to this rank's clock to get rank 0's; the true offset is within `uncertainty_ns`."""

    offset_ns: int
    uncertainty_ns: int


def reading(sent: int, received: int, replied: int, returned: int) -> Reading:
    """The reading of one round trip: `sent` and `returned` on this rank's clock, `received` and `replied` on rank 0's.
    The bound holds however the time divides between the two directions."""
    travel = (returned - sent) - (replied - received)
    return Reading(((received - sent) + (replied - returned)) // 2, travel // 2 + 1)


def combined(before: Reading, after: Reading | None) -> Reading:
    """A reading that holds at any moment between two readings, also when the clocks drift apart evenly."""
    if after is None:
        return before
    drift = abs(after.offset_ns - before.offset_ns)
    return Reading(
        (before.offset_ns + after.offset_ns) // 2, max(before.uncertainty_ns, after.uncertainty_ns) + (drift + 1) // 2
    )


@contextmanager
def compared(context: RankContext) -> Iterator[None]:
    """A context around the program: writes the comparison into the rank's facts as `clock`, or the reason why there is
    none as `clock_error`. It never fails a launch."""
    sockets: dict[int, socket.socket] = {}
    before = None
    try:
        if context.world_size > 1:
            context.at(-1, "clock")
            with _errors_into_facts(context):
                _meet(context, sockets)
                before = _compare(context, sockets, MEET_S)
        yield
        if before is not None:
            after = None
            with _errors_into_facts(context):
                after = _compare(context, sockets, LEAVE_S)
            _write_fact(context, before, after)
    finally:
        for opened in sockets.values():
            opened.close()


@contextmanager
def _errors_into_facts(context: RankContext) -> Iterator[None]:
    try:
        yield
    except (OSError, Refused, RendezvousTimeout) as error:
        context.facts["clock_error"] = f"{type(error).__name__}: {error}"


def _write_fact(context: RankContext, before: Reading, after: Reading | None) -> None:
    offset = combined(before, after)
    context.facts["clock"] = {
        "offset_ns": offset.offset_ns,
        "uncertainty_ns": offset.uncertainty_ns,
        "before_ns": before.offset_ns,
    }
    context.facts["clock"] |= {"after_ns": after.offset_ns} if after is not None else {}


def _meet(context: RankContext, sockets: dict[int, socket.socket]) -> None:
    """Connect rank 0 with every other rank; each proves that it knows the launch's token."""
    family = socket.AF_INET6 if ":" in context.address else socket.AF_INET
    if context.rank:
        address, port = context.rendezvous.get("clock.address", MEET_S)
        sockets[0] = opened = socket.create_connection((address, port), timeout=MEET_S)
        prove(opened, context.token, context.launch_id, context.rank)
    else:
        with socket.create_server((context.address, 0), family=family, backlog=context.world_size + 8) as listener:
            context.rendezvous.publish("clock.address", [context.address, listener.getsockname()[1]])
            _accept_all(context, listener, sockets)
    for opened in sockets.values():
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _accept_all(context: RankContext, listener: socket.socket, sockets: dict[int, socket.socket]) -> None:
    deadline = time.monotonic() + MEET_S
    while len(sockets) < context.world_size - 1:
        listener.settimeout(max(deadline - time.monotonic(), 0.001))
        connection = listener.accept()[0]
        with suppress(Refused, ConnectionError, TimeoutError):  # not a rank of this launch
            peer = answer(connection, context.token, context.launch_id)
            if 0 < peer < context.world_size and peer not in sockets:
                sockets[peer] = connection
                continue
        connection.close()


def _compare(context: RankContext, sockets: dict[int, socket.socket], limit_s: float) -> Reading:
    """Rank 0 answers the other ranks one after the other; its own offset is 0."""
    for opened in sockets.values():
        opened.settimeout(limit_s)
    if context.rank:
        return min((_measure(sockets[0]) for _ in range(ROUNDS)), key=lambda each: each.uncertainty_ns)
    for peer in sorted(sockets):
        with suppress(OSError, Refused):  # that rank has failed, and its own report says so
            for _ in range(ROUNDS):
                _answer(sockets[peer])
    return Reading(0, 0)


def _measure(connection: socket.socket) -> Reading:
    sent = now()
    connection.sendall(b"?")
    reply = connection.recv(_TIMES.size, socket.MSG_WAITALL)
    returned = now()
    if len(reply) < _TIMES.size:
        raise Refused("rank 0 closed the connection")
    received, replied = _TIMES.unpack(reply)
    return reading(sent, received, replied, returned)


def _answer(connection: socket.socket) -> None:
    if not connection.recv(1):
        raise Refused("the rank closed the connection")
    received = now()
    connection.sendall(_TIMES.pack(received, now()))
