"""Nodes with their own Linux kernel on this machine: soft-RoCE, links with a configured rate and delay
(docs/guests.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from pydantic import Field

from scaleproof.fabric.emulated_nodes import EmulatedNodes
from scaleproof.fabric.guests import guest_kernels
from scaleproof.fabric.guests.guest_plan import INTERFACE
from scaleproof.fabric.link_options import LinkOptions
from scaleproof.fabric.unshare import OWN_PROC, unshared
from scaleproof.spec.common_case import CommonCase
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import FabricPlugin

COORDINATOR = "scaleproof.fabric.guests.guest_coordinator"


class Guests(EmulatedNodes):
    """Ranks are processes of nodes that a coordinator boots for the launch (guest_coordinator.py)."""

    fabric = "guests"

    def obstacle(self, case: CommonCase | None = None) -> tuple[str, str] | None:
        """Reason why no such guest can run here, and what to do; None if no reason is known."""
        guest = case.options_of(GuestOptions).guest if case else "uml"
        if wrong := self.wrong_interface():
            return wrong
        if missing := [name for name in ("unshare", "ip", "tc", "rdma") if shutil.which(name, path=_PATH) is None]:
            return f"no program {', '.join(missing)}", "type `apt-get install iproute2 util-linux`"
        if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            return "no /dev/net/tun that may be opened", "give the container the device: --device /dev/net/tun"
        if guest == "qemu" and (shutil.which("qemu-system-x86_64") is None or guest_kernels.qemu() is None):
            return "no QEMU, or no stock kernel for it in the cache", guest_kernels.QEMU_ADVICE
        if guest == "uml" and guest_kernels.uml() is None:
            return "no guest kernel in the cache", guest_kernels.ADVICE
        trial = subprocess.run(unshared(OWN_PROC, ["true"]), capture_output=True, text=True, check=False, timeout=20)
        if trial.returncode:
            return (
                f"namespaces cannot be made: {trial.stderr.strip()[:120]}",
                "run as root, or allow user namespaces (kernel.unprivileged_userns_clone=1)",
            )
        return None


_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def coordinator_command(folder: Path) -> list[str]:
    """Command that starts the coordinator of a folder with guests.json. Killing its first process ends all nodes."""
    return unshared(OWN_PROC, [sys.executable, "-m", COORDINATOR, str(folder)])


class GuestOptions(LinkOptions):
    """Options of nodes with their own kernel."""

    guest: Literal["uml", "qemu"] = Field(
        "uml", description="What boots a node: User-Mode Linux, or QEMU with a stock kernel."
    )


def check(case: CommonCase) -> None:
    """Raises FieldError for a launcher that cannot start ranks in guests."""
    if case.plugin("launcher").process_per_rank:
        message = f"launcher {case.launcher!r} starts no ranks inside guests; use launcher 'local', or fabric 'host'"
        raise FieldError("launcher", message)


PLUGIN = FabricPlugin(
    name="guests",
    summary="nodes with a Linux kernel of their own, soft-RoCE, set rate and delay",
    implementation=Guests,
    options=GuestOptions,
    check=check,
    evidence="emulated",
    makes_nodes=True,
    starter="scaleproof.launch.start.on_guests:GuestsLauncher",
    own_kernels=True,
    interface=INTERFACE,
)
