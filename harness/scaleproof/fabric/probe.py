"""What a node's link gives before anything is measured on it: round-trip time of small packets, and the rate where one
was set."""

from __future__ import annotations

import socket
import statistics
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.fabric.guests.guest_plan import address

ECHO_PORT, STREAM_PORT = 7, 9
ROUNDS = 20
STREAM_S, LEAD_S = 0.3, 0.1
"""How long a rate is looked at, and for how long TCP may find it before: with a delay it starts slowly."""
LEAD_FRAMES, FRAMES = 3, 12
"""Of either at least so many full frames: two go at once, from the bucket, however slow a link is."""
LONGEST_S = 1.5
"""How long a stream may last where the machine does not carry the rate."""
MEET_S = 90.0
ANSWER_S, ANSWERS_S = 1.0, 20.0
"""How long an answer is waited for, three times the set round trip at the least; and all of them together."""
PAYLOAD = 1448
"""Bytes of a full segment of TCP in an Ethernet frame."""
_CHUNK = 1 << 16


def probe(
    folder: Path, nodes: int, number: int, mbit: float | None, rtt_ms: float, looks: bool = True
) -> dict[str, Any]:
    """Towards the next node: round trips in ms, rate in Mbit/s where one (`mbit`) was set and this node `looks`; empty
    for a single node. `rtt_ms`: as set. All nodes do so at the same time."""
    if nodes == 1:
        return {}
    with _Answers(address(number)):
        peer, before = (number + 1) % nodes, (number - 1) % nodes
        _meet(folder, "probe", number, peer)
        found: dict[str, Any] = {"peer": peer} | _round_trips(address(peer), max(ANSWER_S, 3 * rtt_ms / 1e3))
        if mbit:
            _meet(folder, "stream", number, peer, before)
            if looks:
                found["mbit"] = _rate(address(peer), mbit)
        _meet(folder, "probed", number, before)
    return found


def _meet(folder: Path, name: str, number: int, *others: int) -> None:
    write_json(folder / f"{name}-{number}", True)
    until = time.monotonic() + MEET_S
    while missing := [node for node in others if read_json(folder / f"{name}-{node}") is None]:
        if time.monotonic() > until:
            raise TimeoutError(f"node {missing[0]} did not come to {name!r} within {MEET_S:g} s")
        time.sleep(0.01)


class _Answers:
    """Echoes datagrams, and takes one stream, telling its sender the seconds of what came behind its lead, and the
    bytes."""

    def __init__(self, own: str) -> None:
        self.echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.echo.bind((own, ECHO_PORT))
        self.stream = socket.create_server((own, STREAM_PORT))

    def __enter__(self) -> None:
        for serve in (self._echo, self._take):
            threading.Thread(target=serve, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.echo.close()
        self.stream.close()

    def _echo(self) -> None:
        with suppress(OSError):
            while True:
                said, whom = self.echo.recvfrom(64)
                self.echo.sendto(said, whom)

    def _take(self) -> None:
        with suppress(OSError):
            connection = self.stream.accept()[0]
            with connection:
                memory, lead, count = (
                    bytearray(_CHUNK),
                    int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "little"),
                    0,
                )
                while lead > 0:  # also what waited in the bucket
                    lead -= connection.recv_into(memory) or lead
                started = last = time.monotonic()
                while got := connection.recv_into(memory):
                    count += got
                    last = time.monotonic()
                connection.sendall(struct.pack("<dq", last - started, count))


def _round_trips(peer: str, answer_s: float) -> dict[str, Any]:
    times, asked, until = list[float](), 0, time.monotonic() + ANSWERS_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(answer_s)
        while asked < ROUNDS and (started := time.monotonic()) < until:
            asked += 1
            with suppress(TimeoutError):
                asking.sendto(struct.pack("<q", asked), (peer, ECHO_PORT))
                while struct.unpack("<q", asking.recv(64))[0] != asked:
                    continue
                times.append((time.monotonic() - started) * 1e3)
    if not times:
        return {"rtt_ms": None}
    return {
        "rtt_ms": round(min(times), 4),
        "rtt_median_ms": round(statistics.median(times), 4),
        "lost": asked - len(times),
    }


def _rate(peer: str, mbit: float) -> float | None:
    """Mbit/s of payload that arrived: what STREAM_S gives at the set rate, over TCP."""
    lead, more = (
        max(int(mbit * 1e6 / 8 * seconds), frames * PAYLOAD)
        for seconds, frames in ((LEAD_S, LEAD_FRAMES), (STREAM_S, FRAMES))
    )
    left = lead + more
    block = memoryview(bytes(_CHUNK))
    with suppress(OSError), socket.create_connection((peer, STREAM_PORT), ANSWERS_S) as connection:
        connection.sendall(lead.to_bytes(8, "little"))
        until = time.monotonic() + LONGEST_S
        while left > 0 and time.monotonic() < until:
            left -= connection.send(block[: min(left, _CHUNK)])
        connection.shutdown(socket.SHUT_WR)
        seconds, count = struct.unpack("<dq", connection.recv(16, socket.MSG_WAITALL))
        return round(count * 8 / 1e6 / seconds, 2) if count else None
    return None
