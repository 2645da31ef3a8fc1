"""A node made of namespaces: its coordinator forks it into a network, host name, IPC, mounts and process numbers of its
own; there it sets up its links and runs its command."""

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
"""Of TCP between nodes, where this kernel has it: what Linux machines have by default; the host's own choice may pace
by a queue that is not there."""
SETTINGS = {
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv4/fib_multipath_hash_policy": "1",
    "ipv4/tcp_congestion_control": CONGESTION,
}
"""Below /proc/sys/net. A reply may arrive by another link than the request left by; connections, not peers, are spread
over parallel links."""
SEND_BUFFER, RECEIVE_BUFFER = (16 << 10, 4 << 20), (128 << 10, 6 << 20)
"""Bytes that a socket of TCP holds at first and at most, whatever this machine has: Linux's defaults (kernel
documentation, networking/ip-sysctl)."""
LEAST_SEND, LEAST_RECEIVE = 16 << 10, 32 << 10
"""Least of the second value under `shrink`: frames do not shrink, and some must fit."""


class CoordinatorState(Protocol):
    """What nodes read of their coordinator."""

    folder: Path
    plan: NamespacePlan
    network: EmulatedNetwork
    command: Command
    quota: Quota | None
    netem: bool


def start(coordinator: CoordinatorState, number: int) -> NodeProcess:
    """Fork a node; SystemExit when the kernel refuses."""
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
    """Empty input, and both outputs to a file."""
    with path.open("wb", buffering=0) as console, open(os.devnull, "rb") as empty:
        for source, target in ((empty, 0), (console, 1), (console, 2)):
            os.dup2(source.fileno(), target)


def measure_link(folder: Path, network: EmulatedNetwork, number: int) -> dict[str, Any]:
    """Round trip and rate to the next node, beside what was set; the rate only where `rate_probers` allows it."""
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
    """The command that a plan has for this node; its output goes to node-N.out. A node without one runs the commands
    that others request by node_shell."""
    if not plan.commands[number]:
        return node_shell.serve(node_name(number))
    return run_program(plan.commands[number], folder / f"node-{number}.out", plan.cwd, dict(os.environ))


def _furnish(folder: Path, plan: NamespacePlan, number: int) -> None:
    """See namespaces.furnish; and the scratch of the launch."""
    namespaces.furnish(node_name(number), {node_name(node): address(node) for node in range(plan.nodes)}, folder)
    Path(os.environ.get("TMPDIR", "/tmp")).mkdir(parents=True, exist_ok=True)


def congestion() -> str:
    """What TCP uses on nodes."""
    here = Path("/proc/sys/net/ipv4")
    return (
        CONGESTION
        if CONGESTION in (here / "tcp_available_congestion_control").read_text().split()
        else (here / "tcp_congestion_control").read_text().strip()
    )


def buffers(shrink: float) -> dict[str, str]:
    """Settings by which a socket holds the same share of a shrunken message as of a whole one."""
    send, receive = (
        max(round(SEND_BUFFER[1] / shrink), LEAST_SEND),
        max(round(RECEIVE_BUFFER[1] / shrink), LEAST_RECEIVE),
    )
    return {
        "ipv4/tcp_wmem": f"4096 {min(SEND_BUFFER[0], send)} {send}",
        "ipv4/tcp_rmem": f"4096 {min(RECEIVE_BUFFER[0], receive)} {receive}",
    }


def socket_buffers() -> dict[str, int]:
    """What a socket holds at most, in bytes: the settings in effect."""
    return {
        name: int((Path("/proc/sys/net/ipv4") / file).read_text().split()[-1])
        for name, file in (("send_buffer", "tcp_wmem"), ("receive_buffer", "tcp_rmem"))
    }


def configure(forwards: bool, shrink: float) -> None:
    """Write the node's network settings; one that this kernel does not have stays as it is."""
    # The kernel applies the stricter value of `all` and of the interface.
    filters = {f"ipv4/conf/{path.name}/rp_filter": "0" for path in Path("/proc/sys/net/ipv4/conf").iterdir()}
    forwarding = {"ipv4/ip_forward": "1"} if forwards else {}
    for name, value in (SETTINGS | buffers(shrink) | filters | forwarding).items():
        try:
            Path("/proc/sys/net", name).write_text(value)
        except OSError:
            if name == "ipv4/ip_forward":
                raise
