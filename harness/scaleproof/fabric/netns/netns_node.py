"""A node made of namespaces: its coordinator forks it into new namespaces (network, host name, IPC, mounts, process
ids), where it sets up its links and runs its command."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from scaleproof.core.atomic_write import write_json
from scaleproof.core.counters import read_counters
from scaleproof.core.location import ADDRESS, NODE
from scaleproof.fabric.guests.guest_node import run_program
from scaleproof.fabric.guests.guest_plan import address
from scaleproof.fabric.netns import namespaces, node_shell, veth_links
from scaleproof.fabric.netns.core_quota import Quota
from scaleproof.fabric.netns.netns_plan import NamespacePlan
from scaleproof.fabric.netns.node_process import NodeProcess, fork_node
from scaleproof.fabric.netns.rate_probes import rate_probers, slowest
from scaleproof.fabric.probe import probe
from scaleproof.fabric.topology import EmulatedNetwork
from scaleproof.spec.cluster import node_name

Command = Callable[[int], int]
"""What a node runs in its first process: from its number to an exit code."""
CONGESTION = "cubic"
"""Congestion control of TCP between nodes, if this kernel has it: Linux's default. The host's own setting may need a
pacing queue that nodes do not have."""
SETTINGS = {
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv4/fib_multipath_hash_policy": "1",
    "ipv4/tcp_congestion_control": CONGESTION,
}
"""Settings below /proc/sys/net. A reply may arrive over another link than the one the request was sent over;
connections, not peers, are spread over parallel links."""
SEND_BUFFER, RECEIVE_BUFFER = (16 << 10, 4 << 20), (128 << 10, 6 << 20)
"""Initial and largest buffers of a TCP socket in bytes, whatever this machine has: Linux's defaults (kernel
documentation, networking/ip-sysctl)."""
LEAST_SEND, LEAST_RECEIVE = 16 << 10, 32 << 10
"""Lower limits of the largest buffers under `shrink`: frames do not shrink, and some must fit."""


class CoordinatorState(Protocol):
    """The part of the coordinator's state that nodes read."""

    folder: Path
    plan: NamespacePlan
    network: EmulatedNetwork
    command: Command
    quota: Quota | None
    netem: bool


def start(coordinator: CoordinatorState, number: int) -> NodeProcess:
    """Forks a node. Raises SystemExit when the kernel refuses."""
    try:
        return fork_node(lambda wait_for_links: _main(coordinator, number, wait_for_links))
    except OSError as error:
        raise SystemExit(f"node {number}: {error}") from None


def _main(coordinator: CoordinatorState, number: int, wait_for_links: Callable[[], None]) -> None:
    """Never returns."""
    folder, started, end = coordinator.folder, time.monotonic(), dict[str, Any](code=255)
    try:
        os.setsid()
        _redirect(folder / f"node-{number}.console")
        _furnish(folder, coordinator.plan, number)
        wait_for_links()
        veth_links.set_up(coordinator.network, number, coordinator.netem)
        configure(number in coordinator.network.forwarding_nodes(), coordinator.plan.shrink)
        os.environ.update({ADDRESS: address(number), NODE: str(number)})
        link = measure_link(folder, coordinator.network, number) | socket_buffers()
        write_json(
            folder / f"node-{number}.json",
            {"booted_s": round(time.monotonic() - started, 4), "link": link, "counters": read_counters()},
        )
        if coordinator.quota:
            coordinator.quota.join(number)
        end = {"code": coordinator.command(number)}
        end["counters"] = read_counters()
    except BaseException as error:
        end["why"] = f"{type(error).__name__}: {error}"
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        write_json(folder / f"node-{number}.end", end)
        os._exit(0)


def _redirect(path: Path) -> None:
    """Redirects input to /dev/null, and both outputs to a file."""
    with path.open("wb", buffering=0) as console, open(os.devnull, "rb") as empty:
        for source, target in ((empty, 0), (console, 1), (console, 2)):
            os.dup2(source.fileno(), target)


def measure_link(folder: Path, network: EmulatedNetwork, number: int) -> dict[str, Any]:
    """Measured and configured round trip and rate to the next node; the rate is measured only on `rate_probers`."""
    nodes = network.cluster.nodes
    if nodes == 1:
        return {}
    peer = (number + 1) % nodes
    mbit = slowest(network, number, peer)
    rtt_ms = sum(link.delay_ms for link in network.route_links(number, peer) + network.route_links(peer, number))
    return probe(folder, nodes, number, mbit, rtt_ms, number in rate_probers(network)) | {
        "set_rtt_ms": rtt_ms,
        "set_mbit": mbit,
    }


def run(folder: Path, plan: NamespacePlan, number: int) -> int:
    """Runs the plan's command for this node; its output goes to node-N.out. A node without a command runs commands that
    other nodes request by node_shell."""
    if not plan.commands[number]:
        return node_shell.serve(node_name(number))
    return run_program(plan.commands[number], folder / f"node-{number}.out", plan.cwd, dict(os.environ))


def _furnish(folder: Path, plan: NamespacePlan, number: int) -> None:
    """Sets up the namespaces (see namespaces.furnish) and the scratch folder of the launch."""
    namespaces.furnish(node_name(number), {node_name(node): address(node) for node in range(plan.nodes)}, folder)
    Path(os.environ.get("TMPDIR", "/tmp")).mkdir(parents=True, exist_ok=True)


def congestion() -> str:
    """Congestion control of TCP on nodes."""
    folder = Path("/proc/sys/net/ipv4")
    return (
        CONGESTION
        if CONGESTION in (folder / "tcp_available_congestion_control").read_text().split()
        else (folder / "tcp_congestion_control").read_text().strip()
    )


def buffers(shrink: float) -> dict[str, str]:
    """Settings with which a socket buffers the same share of a shrunk message as of a full one."""
    send, receive = (
        max(round(SEND_BUFFER[1] / shrink), LEAST_SEND),
        max(round(RECEIVE_BUFFER[1] / shrink), LEAST_RECEIVE),
    )
    return {
        "ipv4/tcp_wmem": f"4096 {min(SEND_BUFFER[0], send)} {send}",
        "ipv4/tcp_rmem": f"4096 {min(RECEIVE_BUFFER[0], receive)} {receive}",
    }


def socket_buffers() -> dict[str, int]:
    """Largest buffers of a socket in bytes, by the settings in effect."""
    return {
        name: int((Path("/proc/sys/net/ipv4") / file).read_text().split()[-1])
        for name, file in (("send_buffer", "tcp_wmem"), ("receive_buffer", "tcp_rmem"))
    }


def configure(forwards: bool, shrink: float) -> None:
    """Writes the node's network settings; settings that this kernel does not have are skipped."""
    # The kernel applies the stricter value of `all` and of the interface.
    filters = {f"ipv4/conf/{path.name}/rp_filter": "0" for path in Path("/proc/sys/net/ipv4/conf").iterdir()}
    forwarding = {"ipv4/ip_forward": "1"} if forwards else {}
    for name, value in (SETTINGS | buffers(shrink) | filters | forwarding).items():
        try:
            Path("/proc/sys/net", name).write_text(value)
        except OSError:
            if name == "ipv4/ip_forward":
                raise
