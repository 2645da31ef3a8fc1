"""`python -m scaleproof.fabric.guests.guest_node FOLDER N`: the first process of a guest. Sets up its link, measures
it, runs the node's command, powers off."""

from __future__ import annotations

import os
import platform
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.core.location import ADDRESS, CLOCK, NODE
from scaleproof.fabric.guests.bridge import FRAMES, QUEUE, burst
from scaleproof.fabric.guests.guest_plan import INTERFACE, GuestPlan, address, read_plan
from scaleproof.fabric.probe import probe

RXE_S = 5.0
"""How long soft-RoCE may take to come up; it needs milliseconds."""


def main() -> None:
    """Never returns: the first process of a kernel must not end."""
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    end: dict[str, Any] = {"code": 255}
    try:
        end = {"code": run(folder, number)}
    except Exception as error:
        end["why"] = f"{type(error).__name__}: {error}"
    finally:
        write_json(folder / f"node-{number}.end", end)
        while True:  # the coordinator ends this kernel
            time.sleep(60)


def run(folder: Path, number: int) -> int:
    """Exit code of the node's command."""
    plan = read_plan(folder)
    environment: dict[str, str] = read_json(folder / "environment.json")
    offset = time.time_ns() - time.monotonic_ns() - int(environment.pop("real_minus_monotonic_ns"))
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    set_up(plan, number)
    write_json(
        folder / f"node-{number}.json",
        {
            "kernel": platform.release(),
            "booted_s": uptime_s(),
            "link": probe(folder, plan.nodes, number, plan.link_mbit, 2 * plan.link_delay_ms),
        },
    )
    variables = environment | {ADDRESS: address(number), NODE: str(number), CLOCK: str(offset)}
    scratch = Path(variables.get("TMPDIR", "/tmp"))
    scratch.mkdir(parents=True, exist_ok=True)
    return run_program(plan.commands[number], folder / f"node-{number}.out", plan.cwd, variables)


def run_program(command: list[str], output: Path, cwd: str, variables: dict[str, str]) -> int:
    """Runs a node's command and returns its exit code, or 128 plus the number of the signal that ended it. Reaps
    orphans meanwhile."""
    with output.open("ab") as out:
        # The reference is kept, because a Popen object without one reaps its process itself.
        process = subprocess.Popen(command, env=variables, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    while True:
        ended, status = os.wait()
        if ended == process.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def set_up(plan: GuestPlan, number: int) -> None:
    """Sets up host names, loopback, eth0 with its rate and delay, soft-RoCE on it, and its device files."""
    socket.sethostname(f"node{number}")
    names = [f"{address(node)} node{node}" for node in range(plan.nodes)]
    Path("/etc/hosts").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
    _do("ip link set lo up")
    if Path("/sys/class/net/vec0").exists():
        _do(f"ip link set vec0 name {INTERFACE}")
    _do(f"ip link set {INTERFACE} mtu {plan.mtu} txqueuelen {FRAMES} gso_max_segs 1")
    _do(f"ip addr add {address(number)}/16 dev {INTERFACE}")
    _do(f"ip link set {INTERFACE} up")
    for line in shaping(plan):
        _do(f"tc qdisc add dev {INTERFACE} {line}")
    _do(f"rdma link add rxe0 type rxe netdev {INTERFACE}")
    state, until = Path("/sys/class/infiniband/rxe0/ports/1/state"), time.monotonic() + RXE_S
    while not (state.exists() and "ACTIVE" in state.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    _devices()


def shaping(plan: GuestPlan) -> list[str]:
    """Queueing disciplines of a node's sends: netem for the delay, a token bucket for the rate; with both, the bucket
    is inside netem."""
    lines, parent = [], "root"
    if plan.link_delay_ms:
        lines.append(f"root handle 1: netem delay {plan.link_delay_ms:g}ms limit 100000")
        parent = "parent 1:1"
    if plan.link_mbit:
        lines.append(
            f"{parent} handle 2: tbf rate {round(plan.link_mbit * 1e6)}bit burst {burst(plan.link_mbit)} limit {QUEUE}"
        )
    return lines


def _devices() -> None:
    """Makes device files, since a guest runs no udev."""
    folder = Path("/dev/infiniband")
    folder.mkdir(exist_ok=True)
    numbers = [(path.name, path / "dev") for path in Path("/sys/class/infiniband_verbs").glob("uverbs*")]
    for name, number in [*numbers, ("rdma_cm", Path("/sys/class/misc/rdma_cm/dev"))]:
        if number.exists() and not (folder / name).exists():
            major, minor = number.read_text().split(":")
            os.mknod(folder / name, 0o600 | 0o020000, os.makedev(int(major), int(minor)))


def uptime_s() -> float:
    """Seconds since this kernel started."""
    return float(Path("/proc/uptime").read_text().split()[0])


def _do(line: str) -> None:
    finished = subprocess.run(line.split(), capture_output=True, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(f"`{line}` failed: {finished.stderr.strip() or finished.returncode}")


if __name__ == "__main__":
    main()
