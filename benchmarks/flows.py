"""The command that every node runs while links are measured: `python -m benchmarks.flows TOOL PATTERN MBIT SECONDS` on
every node; rates are written to the shared folder. All streams of one pattern run at once and continue during the
measurement. Tools: iperf3, and our transport tcp. Recorded are the payload rate of each stream, and for each sending
node the rate of all its frames with headers, as counted by its token bucket. For our transport also the rate at which
the payload of each stream arrived in its socket, read or unread: of three streams that share a link, the unread bytes
change by more than a link carries in a second."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.core.context import RankContext
from scaleproof.core.handshake import connect_all
from scaleproof.fabric.guests.guest_plan import INTERFACE, address
from scaleproof.rank.unsupervised_ranks import run_some_ranks
from scaleproof.spec.case import parse_case
from scaleproof.transports._tcp_frames import Connection
from scaleproof.transports.contract import Handle
from scaleproof.transports.tcp import Tcp

PATTERNS: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "pair": (2, [(0, 1)]),
    "ring": (4, [(node, (node + 1) % 4) for node in range(4)]),
    "all to one": (4, [(1, 0), (2, 0), (3, 0)]),
}
"""Nodes, and streams from one to another."""
SIZE, WINDOW, LEAD_S = 1 << 17, 8, 1
PORT = 5200
MEET_S = 30.0
TCP_INFO, RECEIVED = 11, 128
"""Option of a socket, and where in the kernel's answer (struct tcp_info) the payload that came so far stands, in 8
bytes."""
Streams = list[tuple[int, int]]


def main() -> None:
    """Leave Mbit/s in rate-NODE.json of the shared folder: `payload` and `came` by stream, `wire` of all that this node
    sent (None: it sends nothing)."""
    tool, pattern, mbit, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    node, shared = int(os.environ["SCALEPROOF_NODE"]), Path(os.environ["SCALEPROOF_SHARED"])
    nodes, streams = PATTERNS[pattern]
    measure = iperf3 if tool == "iperf3" else ours
    write_json(shared / f"rate-{node}.json", measure(node, nodes, streams, mbit, seconds, shared))


def sent_bytes() -> int:
    """Bytes of all frames, with headers, that the token bucket of eth0 has let pass."""
    with IPRoute() as route:
        index = route.link_lookup(ifname=INTERFACE)[0]
        bucket = next(queue for queue in route.get_qdiscs(index=index) if queue.get("kind") == "tbf")
        return int(bucket.get("stats2").get("TCA_STATS_BASIC")["bytes"])


def came_bytes(opened: socket.socket) -> int:
    """Payload bytes that arrived in a socket since it was opened, read or unread."""
    return int.from_bytes(opened.getsockopt(socket.IPPROTO_TCP, TCP_INFO, RECEIVED + 8)[RECEIVED:], sys.byteorder)


def iperf3(node: int, nodes: int, streams: Streams, mbit: float, seconds: int, shared: Path) -> dict[str, Any]:
    """One process for each end of each stream; the first second is left out."""
    servers = [
        subprocess.Popen(
            ["iperf3", "-s", "-1", "-B", address(node), "-p", str(PORT + source)], stdout=subprocess.DEVNULL
        )
        for source, target in streams
        if target == node
    ]
    time.sleep(0.3)  # until the servers listen, which iperf3 does not report
    _meet(shared, "listening", node, nodes)
    clients = {
        f"{source}-{target}": subprocess.Popen(
            [
                "iperf3",
                "-c",
                address(target),
                "-p",
                str(PORT + node),
                "-t",
                str(seconds),
                "-O",
                str(LEAD_S),
                "-l",
                str(SIZE),
                "-J",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for source, target in streams
        if source == node
    }
    time.sleep(LEAD_S)
    moments = [(time.monotonic(), sent_bytes())]
    time.sleep(seconds * 0.9)
    moments.append((time.monotonic(), sent_bytes()))
    payload = {
        name: json.loads(client.communicate()[0])["end"]["sum_received"]["bits_per_second"] / 1e6
        for name, client in clients.items()
    }
    _meet(shared, "done", node, nodes)
    for server in servers:
        server.kill()
        server.wait()
    return {"payload": payload, "wire": _wire(moments) if clients else None, "came": {}}


def ours(node: int, nodes: int, streams: Streams, mbit: float, seconds: int, shared: Path) -> dict[str, Any]:
    """One rank per node; as many messages as the link carries in that time."""
    fields: dict[str, object] = {
        "program": "transfer",
        "suite": "bench",
        "experiment": "netns",
        "arm": "ours",
        "sizes": [8],
    }
    case = parse_case({**fields, "transport": "tcp", "collective": "ring", "ranks": nodes})
    body = partial(_stream, streams=streams, mbit=mbit, seconds=seconds, into=shared / f"ours-{node}.json")
    errors = run_some_ranks(case, [node], shared, address(node), body, MEET_S + 4 * seconds)
    if any(errors):
        raise RuntimeError(errors[0])
    rates: dict[str, Any] = read_json(shared / f"ours-{node}.json")
    return rates


def _stream(context: RankContext, streams: Streams, mbit: float, seconds: int, into: Path) -> None:
    sockets = connect_all(context)
    transport = Tcp(
        context.rank,
        context.world_size,
        {peer: Connection(peer, opened) for peer, opened in sockets.items()},
        context.post,
    )
    out, sources = (
        [target for source, target in streams if source == context.rank],
        [source for source, target in streams if target == context.rank],
    )
    busiest = max(sum(target == node for _, target in streams) for node in range(context.world_size))
    # Sending continues after the last moment: otherwise the bytes unread at the first one would have drained by then.
    lead, count, end = (
        round(mbit * 1e6 / 8 * time_s / SIZE / busiest) for time_s in (LEAD_S, LEAD_S + seconds, 2 * LEAD_S + seconds)
    )
    buffer = transport.allocate(SIZE)
    buffer[:] = 1
    ways = [*(("send", peer) for peer in out), *(("recv", peer) for peer in sources)]
    under_way: dict[tuple[str, int], deque[Handle]] = {way: deque() for way in ways}
    transport.barrier()
    moments: list[tuple[float, int]] = []
    came: list[list[int]] = []
    for number in range(end):
        for (way, peer), handles in under_way.items():
            if len(handles) == WINDOW:
                handles.popleft().wait()
            handles.append(transport.send(buffer, peer) if way == "send" else transport.recv(buffer, peer))
        if number in (lead, count):
            moments.append((time.monotonic(), sent_bytes()))
            came.append([came_bytes(sockets[source]) for source in sources])
    for handles in under_way.values():
        for handle in handles:
            handle.wait()
    mbit_s = 8 / 1e6 / (moments[1][0] - moments[0][0])
    names = [f"{source}-{context.rank}" for source in sources]
    payload = dict.fromkeys(names, (count - lead) * SIZE * mbit_s)
    write_json(
        into,
        {
            "payload": payload,
            "wire": _wire(moments) if out else None,
            "came": {name: (after - before) * mbit_s for name, before, after in zip(names, *came, strict=True)},
        },
    )
    transport.barrier()
    transport.close()


def _wire(moments: list[tuple[float, int]]) -> float:
    """Mbit/s between two moments."""
    (started, before), (ended, after) = moments
    return (after - before) * 8 / 1e6 / (ended - started)


def _meet(shared: Path, name: str, node: int, nodes: int) -> None:
    write_json(shared / f"{name}-{node}", True)
    until = time.monotonic() + MEET_S
    while any(read_json(shared / f"{name}-{peer}") is None for peer in range(nodes)):
        if time.monotonic() > until:
            raise TimeoutError(f"not all nodes came to {name!r}")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
