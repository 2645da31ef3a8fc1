"""What a node does while links are measured: `python -m benchmarks.flows TOOL PATTERN MBIT SECONDS` on every node; rates go to the shared folder.

Streams of one pattern run at once; a receiver looks at its rate once every stream is under way. Tools: iperf3, and our transport tcp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from functools import partial
from pathlib import Path

from harness.fabric.plan import address, put, take
from harness.rank.context import RankContext
from harness.rank.testing import run_some_ranks
from harness.spec.case import parse_case
from harness.transports.base import Handle
from harness.transports.tcp import Tcp

PATTERNS: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "pair": (2, [(0, 1)]),
    "ring": (4, [(node, (node + 1) % 4) for node in range(4)]),
    "all to one": (4, [(1, 0), (2, 0), (3, 0)]),
}
"""Nodes, and streams from one to another."""
SIZE, WINDOW, LEAD_S = 1 << 17, 8, 1
PORT = 5200
MEET_S = 30.0
Streams = list[tuple[int, int]]


def main() -> None:
    """Leave Mbit/s of payload by stream in rate-NODE.json of the shared folder."""
    tool, pattern, mbit, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    node, shared = int(os.environ["SCALEPROOF_NODE"]), Path(os.environ["SCALEPROOF_SHARED"])
    nodes, streams = PATTERNS[pattern]
    measure = iperf3 if tool == "iperf3" else ours
    put(shared / f"rate-{node}.json", measure(node, nodes, streams, mbit, seconds, shared))


def iperf3(node: int, nodes: int, streams: Streams, mbit: float, seconds: int, shared: Path) -> dict[str, float]:
    """One process of it for either end of each stream; its first second is left out."""
    servers = [
        subprocess.Popen(["iperf3", "-s", "-1", "-B", address(node), "-p", str(PORT + source)], stdout=subprocess.DEVNULL)
        for source, target in streams
        if target == node
    ]
    time.sleep(0.3)  # until they listen; iperf3 says so nowhere
    _meet(shared, "listening", node, nodes)
    clients = {
        f"{source}-{target}": subprocess.Popen(
            ["iperf3", "-c", address(target), "-p", str(PORT + node), "-t", str(seconds), "-O", str(LEAD_S), "-l", str(SIZE), "-J"],
            stdout=subprocess.PIPE, text=True,
        )
        for source, target in streams
        if source == node
    }  # fmt: skip
    found = {name: json.loads(client.communicate()[0])["end"]["sum_received"]["bits_per_second"] / 1e6 for name, client in clients.items()}
    _meet(shared, "done", node, nodes)
    for server in servers:
        server.kill()
        server.wait()
    return found


def ours(node: int, nodes: int, streams: Streams, mbit: float, seconds: int, shared: Path) -> dict[str, float]:
    """One rank a node; as many messages as the link carries in that time."""
    fields: dict[str, object] = {"program": "transfer", "suite": "bench", "experiment": "netns", "arm": "ours", "sizes": [8]}
    case = parse_case({**fields, "transport": "tcp", "collective": "ring", "ranks": nodes})
    body = partial(_stream, streams=streams, mbit=mbit, seconds=seconds, into=shared / f"ours-{node}.json")
    errors = run_some_ranks(case, [node], shared, address(node), body, MEET_S + 4 * seconds)
    if any(errors):
        raise RuntimeError(errors[0])
    found: dict[str, float] = take(shared / f"ours-{node}.json")
    return found


def _stream(context: RankContext, streams: Streams, mbit: float, seconds: int, into: Path) -> None:
    transport = Tcp.connect(context)
    out, sources = [target for source, target in streams if source == context.rank], [source for source, target in streams if target == context.rank]
    busiest = max(sum(target == node for _, target in streams) for node in range(context.world_size))
    lead, count = (round(mbit * 1e6 / 8 * time_s / SIZE / busiest) for time_s in (LEAD_S, LEAD_S + seconds))
    buffer = transport.allocate(SIZE)
    buffer[:] = 1
    ways = [*(("send", peer) for peer in out), *(("recv", peer) for peer in sources)]
    under_way: dict[tuple[str, int], deque[Handle]] = {way: deque() for way in ways}
    transport.barrier()
    moments: list[float] = []
    for number in range(count + 1):
        for (way, peer), handles in under_way.items():
            if len(handles) == WINDOW:
                handles.popleft().wait()
            handles.append(transport.send(buffer, peer) if way == "send" else transport.recv(buffer, peer))
        if number in (lead, count):  # at both moments as much lies unread in the sockets
            moments.append(time.monotonic())
    for handles in under_way.values():
        for handle in handles:
            handle.wait()
    put(into, {f"{source}-{context.rank}": (count - lead) * SIZE * 8 / 1e6 / (moments[1] - moments[0]) for source in sources})
    transport.barrier()
    transport.close()


def _meet(shared: Path, name: str, node: int, nodes: int) -> None:
    put(shared / f"{name}-{node}", True)
    until = time.monotonic() + MEET_S
    while any(take(shared / f"{name}-{peer}") is None for peer in range(nodes)):
        if time.monotonic() > until:
            raise TimeoutError(f"not all nodes came to {name!r}")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
