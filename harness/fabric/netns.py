"""Nodes as network namespaces of this machine: a small cluster with set rates and delays (docs/netns.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from harness.fabric.guests import as_root
from harness.fabric.plan import INTERFACE

NAMESPACES = ("--net", "--pid", "--mount", "--fork", "--kill-child")
_TRIAL = " && ".join([
    "mount -t proc proc /proc",
    "mount -t sysfs sysfs /sys",
    "mount -t tmpfs tmpfs /dev/shm",
    "ip link add name bridge0 type bridge",
    "ip link add name veth0 type veth peer name veth1",
    "tc qdisc add dev veth0 root tbf rate 1mbit burst 4kb limit 4kb",
])  # fmt: skip
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class Netns:
    """Ranks are processes in namespaces that a keeper makes for the launch (fabric/netns_keeper.py)."""

    evidence = "emulated"

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def address(self) -> str:
        """Empty: a rank learns its node's address from its node."""
        return ""

    def obstacle(self) -> tuple[str, str] | None:
        """Why no such nodes can be made here, and what to do; None when nothing is known to stand against it."""
        if self.interface != INTERFACE:
            return f"nodes of fabric netns have no interface {self.interface!r}", f"leave `interface` out, or name {INTERFACE!r}"
        if missing := [name for name in ("unshare", "ip", "tc") if shutil.which(name, path=_PATH) is None]:
            return f"no program {', '.join(missing)}", "type `apt-get install iproute2 util-linux`"
        trial = ["unshare", *NAMESPACES, *as_root(), "sh", "-c", _TRIAL]
        said = subprocess.run(trial, capture_output=True, text=True, check=False, timeout=20, env={**os.environ, "PATH": _PATH})
        if said.returncode:
            why = (said.stderr.strip().splitlines() or [f"ended with {said.returncode}"])[-1]
            advice = "run as root (in a container with --cap-add SYS_ADMIN --cap-add NET_ADMIN), or use fabric `simulated`, which needs none"
            return f"nodes of namespaces cannot be made: {why[:120]}", advice
        return None


def keeper_command(python: str, module: str, folder: Path) -> list[str]:
    """Start the keeper of a folder with namespaces.json; whoever kills the first process of this command has ended all nodes."""
    return ["unshare", *NAMESPACES, *as_root(), python, "-m", module, str(folder)]
