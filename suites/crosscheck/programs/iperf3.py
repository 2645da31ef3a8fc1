"""iperf3 between two processes: rank 1 runs its one-off server, rank 0 its client. Options: `messages` writes of
`sizes[0]` bytes (-l), over one stream.

Event `bandwidth`: the receiver's rate in GB/s as iperf3 says it, `nbytes` the size of a write.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from typing import Any

import psutil
from suite_programs import tools

from scaleproof.core.context import RankContext
from scaleproof.core.recorder import now
from scaleproof.programs.common import mark

CLIENT, SERVER = 0, 1
TIMEOUT_S = 60.0
ATTEMPTS = 5
"""Another process may take the port between our look and iperf3's."""
LISTEN_S = 5.0
UNCOUNTED = 32 << 20
"""Bytes that both sides' socket buffers may still hold when the server stops counting."""
CONGESTION = "reno"
"""What our own tcp transport asks for on a loopback address; another algorithm is another experiment."""


def obstacle(case: Any) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py."""
    return tools.obstacle("iperf3", tools.debian("iperf3"))


def run(context: RankContext) -> None:
    """One transfer."""
    if context.rank == SERVER:
        process, port = _server(context.address)
        context.rendezvous.publish("iperf3.port", port)
        context.at(0, "iperf3 server", CLIENT)
        tools.finish(process, TIMEOUT_S)
    else:
        port = context.rendezvous.get("iperf3.port")
        context.at(0, "iperf3 client", SERVER)
        mark(context, "start", 0)
        _record(context, _client(context, port))
        mark(context, "end", 0)


def _server(address: str) -> tuple[subprocess.Popen[str], int]:
    for _ in range(ATTEMPTS):
        with socket.socket() as probe:
            probe.bind((address, 0))
            port: int = probe.getsockname()[1]
        process = tools.start(["iperf3", "--server", "--one-off", "--bind", address, "--port", str(port), "--json"])
        if _listens(process, port):
            return process, port
        process.kill()
        process.communicate()
    raise tools.ToolFailed(f"the iperf3 server found no port in {ATTEMPTS} attempts")


def _listens(process: subprocess.Popen[str], port: int) -> bool:
    """Looked up, not tried: a connection would be the one that the server serves."""
    until = time.monotonic() + LISTEN_S
    while process.poll() is None and time.monotonic() < until:
        found = psutil.Process(process.pid).net_connections("tcp")
        if any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in found):
            return True
        time.sleep(0.005)
    return False


def _client(context: RankContext, port: int) -> dict[str, Any]:
    case = context.case
    size = case.sizes[0]
    command = [
        "iperf3",
        "--client",
        context.address,
        "--port",
        str(port),
        "--json",
        "--parallel",
        "1",
        "--congestion",
        CONGESTION,
    ]
    command += [
        "--length",
        str(size),
        "--bytes",
        str(size * int(case.options["messages"])),
        "--connect-timeout",
        "5000",
    ]
    said: dict[str, Any] = json.loads(tools.run_tool(command, TIMEOUT_S))
    if "error" in said:
        raise tools.ToolFailed(f"iperf3: {said['error']}")
    return said


def _record(context: RankContext, said: dict[str, Any]) -> None:
    received = said["end"]["sum_received"]
    asked = context.case.sizes[0] * int(context.case.options["messages"])
    moment = now()
    context.recorder.add("bandwidth", 0, moment, moment, context.case.sizes[0], received["bits_per_second"] / 8e9)
    # The server stops counting when the client says that it is done: what the socket still holds then is not in its
    # sum.
    whole = said["end"]["sum_sent"]["bytes"] >= asked and received["bytes"] >= asked - UNCOUNTED
    context.check("iperf3.bytes", whole, f"{received['bytes']} bytes received of {asked}")
    context.facts["iperf3"] = {
        "version": said["start"]["version"],
        "congestion": said["end"]["sender_tcp_congestion"],
        "seconds": received["seconds"],
        "cpu_percent": said["end"]["cpu_utilization_percent"],
    }
