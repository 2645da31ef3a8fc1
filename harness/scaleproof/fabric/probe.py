"""Measures a node's link before a launch: round-trip time of small packets, and the rate where one was set."""

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
ROUNDS, FEWEST_ROUNDS, ROUNDS_S = 20, 5, 0.2
"""Round trips, and how many are enough once they have taken so many seconds: on links with a delay."""
SHORT_STREAM_S, LONG_STREAM_S = (0.05, 0.1), (0.1, 0.3)
"""Streams that measure a rate: seconds in which TCP reaches the rate, since it starts slowly on a link with a delay,
and seconds that are measured after that."""
NEAR = 0.9
"""Where a short stream has less than this share of the configured rate, or more than its inverse, a long one follows,
and counts: other processes disturb it less, and it may only have started slowly."""
LEAD_FRAMES, FRAMES = 3, 12
"""Fewest full frames in the periods of a stream. On a slow link the token bucket lets two frames through at once."""
LONGEST_S = 1.5
"""How long a stream may last if the machine does not reach the rate."""
MEET_S = 90.0
ANSWER_S, ANSWERS_S = 1.0, 20.0
"""Time limit of one reply (at least three times the configured round trip), and of all replies together."""
PAYLOAD = 1448
"""Bytes of a full segment of TCP in an Ethernet frame."""
_CHUNK = 1 << 16


def probe(
    folder: Path, nodes: int, number: int, mbit: float | None, rtt_ms: float, rate: bool = True
) -> dict[str, Any]:
    """Measures round trips to the next node in ms, and the rate in Mbit/s if one is configured (`mbit`) and `rate` is
    True. `rtt_ms`: the configured round trip. All nodes measure at the same time. Empty for a single node."""
    if nodes == 1:
        return {}
    with _Answers(address(number)):
        peer, before = (number + 1) % nodes, (number - 1) % nodes
        _meet(folder, "probe", number, peer)
        measured: dict[str, Any] = {"peer": peer} | _round_trips(address(peer), max(ANSWER_S, 3 * rtt_ms / 1e3))
        if mbit:
            _meet(folder, "stream", number, peer, before)
            if rate:
                measured["mbit"] = _rate(address(peer), mbit)
        _meet(folder, "probed", number, before)
    return measured


def _meet(folder: Path, name: str, number: int, *others: int) -> None:
    write_json(folder / f"{name}-{number}", True)
    until = time.monotonic() + MEET_S
    while missing := [node for node in others if read_json(folder / f"{name}-{node}") is None]:
        if time.monotonic() > until:
            raise TimeoutError(f"node {missing[0]} did not come to {name!r} within {MEET_S:g} s")
        time.sleep(0.01)


class _Answers:
    """Echoes datagrams, and receives streams, one after the other. A stream's sender gets the duration and the bytes
    that arrived after the lead."""

    def __init__(self, own: str) -> None:
        self.echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.echo.bind((own, ECHO_PORT))
        self.stream = socket.create_server((own, STREAM_PORT))

    def __enter__(self) -> None:
        for serve in (self._echo, self._receive):
            threading.Thread(target=serve, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.echo.close()
        self.stream.close()

    def _echo(self) -> None:
        with suppress(OSError):
            while True:
                datagram, sender = self.echo.recvfrom(64)
                self.echo.sendto(datagram, sender)

    def _receive(self) -> None:
        memory = bytearray(_CHUNK)
        with suppress(OSError):
            while True:
                with self.stream.accept()[0] as connection:
                    lead, count = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "little"), 0
                    while lead > 0:  # includes the bytes in the token bucket
                        lead -= connection.recv_into(memory) or lead
                    started = last = time.monotonic()
                    while received := connection.recv_into(memory):
                        count += received
                        last = time.monotonic()
                    connection.sendall(struct.pack("<dq", last - started, count))


def _round_trips(peer: str, answer_s: float) -> dict[str, Any]:
    times, sent, begun = list[float](), 0, time.monotonic()
    until, enough = begun + ANSWERS_S, begun + ROUNDS_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(answer_s)
        while sent < ROUNDS and (started := time.monotonic()) < (enough if len(times) >= FEWEST_ROUNDS else until):
            sent += 1
            with suppress(TimeoutError):
                client.sendto(struct.pack("<q", sent), (peer, ECHO_PORT))
                while struct.unpack("<q", client.recv(64))[0] != sent:
                    continue
                times.append((time.monotonic() - started) * 1e3)
    if not times:
        return {"rtt_ms": None}
    return {
        "rtt_ms": round(min(times), 4),
        "rtt_median_ms": round(statistics.median(times), 4),
        "lost": sent - len(times),
    }


def _rate(peer: str, mbit: float) -> float | None:
    """Measured rate of TCP payload in Mbit/s."""
    measured = _streamed(peer, mbit, *SHORT_STREAM_S)
    if measured is not None and NEAR <= measured / mbit <= 1 / NEAR:
        return measured
    return _streamed(peer, mbit, *LONG_STREAM_S)


def _streamed(peer: str, mbit: float, lead_s: float, stream_s: float) -> float | None:
    """The rate of one stream, as long as these times at the configured rate."""
    lead, more = (
        max(int(mbit * 1e6 / 8 * seconds), frames * PAYLOAD)
        for seconds, frames in ((lead_s, LEAD_FRAMES), (stream_s, FRAMES))
    )
    unsent = lead + more
    block = memoryview(bytes(_CHUNK))
    with suppress(OSError), socket.create_connection((peer, STREAM_PORT), ANSWERS_S) as connection:
        connection.sendall(lead.to_bytes(8, "little"))
        until = time.monotonic() + LONGEST_S
        while unsent > 0 and time.monotonic() < until:
            unsent -= connection.send(block[: min(unsent, _CHUNK)])
        connection.shutdown(socket.SHUT_WR)
        seconds, count = struct.unpack("<dq", connection.recv(16, socket.MSG_WAITALL))
        return round(count * 8 / 1e6 / seconds, 2) if count else None
    return None
