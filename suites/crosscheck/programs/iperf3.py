"""iperf3 between two processes: rank 1 runs its one-off server, rank 0 its client. Options: `messages` writes of
`sizes[0]` bytes (-l), over one stream.

Event `bandwidth`: the receiver's rate in GB/s as reported by iperf3, `nbytes`: the size of a write.
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
"""Another process may take the port between our test and the start of iperf3."""
LISTEN_S = 5.0
UNCOUNTED = 32 << 20
"""Bytes that both sides' socket buffers may still hold when the server stops counting."""
CONGESTION = "reno"
"""The algorithm that our tcp transport sets on a loopback address, for an equal comparison."""


def obstacle(case: Any) -> tuple[str, str] | None:
    """See harness/scaleproof/programs/own.py."""
    return tools.obstacle("iperf3", tools.debian("iperf3"))


def run(context: RankContext) -> None:
    """Runs one transfer."""
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
    """Whether the server listens, by the list of sockets: the server would serve a test connection and end."""
    until = time.monotonic() + LISTEN_S
    while process.poll() is None and time.monotonic() < until:
        connections = psutil.Process(process.pid).net_connections("tcp")
        if any(connection.status == psutil.CONN_LISTEN and connection.laddr.port == port for connection in connections):
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
    report: dict[str, Any] = json.loads(tools.run_tool(command, TIMEOUT_S))
    if "error" in report:
        raise tools.ToolFailed(f"iperf3: {report['error']}")
    return report


def _record(context: RankContext, report: dict[str, Any]) -> None:
    received = report["end"]["sum_received"]
    requested = context.case.sizes[0] * int(context.case.options["messages"])
    moment = now()
    context.recorder.add("bandwidth", 0, moment, moment, context.case.sizes[0], received["bits_per_second"] / 8e9)
    # The server stops counting when the client reports its end; bytes still in the socket are not in the sum.
    complete = report["end"]["sum_sent"]["bytes"] >= requested and received["bytes"] >= requested - UNCOUNTED
    context.check("iperf3.bytes", complete, f"{received['bytes']} bytes received of {requested}")
    context.facts["iperf3"] = {
        "version": report["start"]["version"],
        "congestion": report["end"]["sender_tcp_congestion"],
        "seconds": received["seconds"],
        "cpu_percent": report["end"]["cpu_utilization_percent"],
    }
