"""Measures the bytes per second that two processes move through one TCP connection over the loopback interface; run as
`python -m scaleproof.calibrate.loopback_bandwidth`.

One process sends, the other receives into one buffer; neither sleeps or uses the bytes. The fastest stream of several
buffer sizes counts: a transport that sends each byte once through one connection cannot be faster. So the connection
has the congestion control of our transport tcp: under a pacing default (bbr) it would be the slower one.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable

from scaleproof.core.handshake import LOOPBACK_CONGESTION
from scaleproof.rank.process_lifetime import die_with_creator

CHUNKS = (64 << 10, 256 << 10, 1 << 20)
STREAM = 16 << 20
"""Bytes of one timed stream: its acknowledgement takes less than 1 % of the time."""
STREAMS = 12


def main() -> None:
    """Print {"bytes_per_second": value}."""
    creator = os.getpid()
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = os.fork()
        if not child:
            die_with_creator(creator)
            _receive_all(server.getsockname())
            os._exit(0)
        connection, _ = server.accept()
    with connection:
        as_our_transport(connection)
        connection.setblocking(False)
        best = max(
            STREAM / send(connection, memoryview(bytearray(chunk)), STREAM) for chunk in CHUNKS for _ in range(STREAMS)
        )
    os.waitpid(child, 0)
    json.dump({"bytes_per_second": best}, sys.stdout)


def as_our_transport(connection: socket.socket) -> None:
    """Set what transport tcp sets on a loopback."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, LOOPBACK_CONGESTION.encode())


def send(connection: socket.socket, payload: memoryview, nbytes: int) -> float:
    """Send a stream of so many bytes, `payload` repeatedly, which the receiver acknowledges with a byte; returns its
    time in s. `connection` does not block."""
    start, remaining = time.perf_counter(), nbytes
    while remaining:
        remaining -= _without_sleep(connection.send, payload[: min(remaining, len(payload))])
    _without_sleep(connection.recv_into, memoryview(bytearray(1)))
    return time.perf_counter() - start


def receive(connection: socket.socket, buffer: memoryview, nbytes: int) -> None:
    """Receive the stream of `send` and acknowledge it; the bytes overwrite each other in `buffer`."""
    remaining = nbytes
    while remaining:
        remaining -= _without_sleep(connection.recv_into, buffer[: min(remaining, len(buffer))])
    _without_sleep(connection.send, memoryview(b"1"))


def _receive_all(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.setblocking(False)
        for chunk in CHUNKS:
            buffer = memoryview(bytearray(chunk))
            for _ in range(STREAMS):
                receive(connection, buffer, STREAM)


def _without_sleep(call: Callable[[memoryview], int], data: memoryview) -> int:
    """The bytes that a call moved; polls instead of sleeping. ConnectionError when the other process has ended."""
    while True:
        try:
            moved = call(data)
        except BlockingIOError:
            os.sched_yield()
            continue
        if not moved:
            raise ConnectionError("the other process has ended")
        return moved


if __name__ == "__main__":
    main()
