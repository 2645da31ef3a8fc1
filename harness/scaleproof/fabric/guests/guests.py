"""Nodes with a Linux kernel of their own on this machine: soft-RoCE, a wire with a set rate and a set delay
(docs/guests.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from scaleproof.fabric.guests import guest_kernels
from scaleproof.fabric.guests.guest_plan import INTERFACE

NAMESPACES = ("--net", "--pid", "--fork", "--kill-child", "--mount-proc")


class Guests:
    """Ranks are processes of nodes that a keeper boots for the launch (fabric/guests/guest_coordinator.py)."""

    evidence = "emulated"

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def address(self) -> str:
        """Empty: a rank learns its node's address from its node."""
        return ""

    def obstacle(self, guest: str = "uml") -> tuple[str, str] | None:
        """Why no such guest can run here, and what to do; None when nothing is known to stand against it."""
        if self.interface != INTERFACE:
            return (
                f"nodes of fabric guests have no interface {self.interface!r}",
                f"leave `interface` out, or name {INTERFACE!r}",
            )
        if missing := [name for name in ("unshare", "ip", "tc", "rdma") if shutil.which(name, path=_PATH) is None]:
            return f"no program {', '.join(missing)}", "type `apt-get install iproute2 util-linux`"
        if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            return "no /dev/net/tun that may be opened", "give the container the device: --device /dev/net/tun"
        if guest == "qemu" and (shutil.which("qemu-system-x86_64") is None or guest_kernels.qemu() is None):
            return "no QEMU, or no stock kernel for it in the cache", guest_kernels.QEMU_ADVICE
        if guest == "uml" and guest_kernels.uml() is None:
            return "no guest kernel in the cache", guest_kernels.ADVICE
        said = subprocess.run(
            ["unshare", *NAMESPACES, *as_root(), "true"], capture_output=True, text=True, check=False, timeout=20
        )
        if said.returncode:
            return (
                f"namespaces cannot be made: {said.stderr.strip()[:120]}",
                "run as root, or allow user namespaces (kernel.unprivileged_userns_clone=1)",
            )
        return None


_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def as_root() -> list[str]:
    """For a user who is not root: a user namespace in which they are."""
    return [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


def keeper_command(python: str, folder: Path) -> list[str]:
    """Start the keeper of a folder with guests.json; whoever kills the first process of this command has ended all
    nodes."""
    return ["unshare", *NAMESPACES, *as_root(), python, "-m", "scaleproof.fabric.guests.guest_coordinator", str(folder)]
