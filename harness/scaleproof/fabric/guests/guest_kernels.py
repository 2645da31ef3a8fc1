"""Paths of the guests' kernels in the user's cache, and their keys. The standard library only: set-up uses this file
before anything is installed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

CONFIG = Path(__file__).with_name("guest.config")
"""What the User-Mode Linux kernel is built with, over `allnoconfig`."""
PATCH = Path(__file__).with_name("guest.patch")
"""What is changed in its source, and why."""
ADVICE = "type `make env`, or `python3 -m tools.build_guest_kernel` alone: 4 min on two cores, once"

QEMU_ADVICE = "type `apt-get install qemu-system-x86 busybox-static`, then `python3 -m tools.build_guest_kernel --qemu`"


def folder() -> Path:
    """Of all guest kernels."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home.absolute() / "scaleproof" / "guests"


def digest() -> str:
    """Of configuration and patch: a kernel of others is another kernel."""
    return hashlib.sha256(CONFIG.read_bytes() + PATCH.read_bytes()).hexdigest()[:12]


def uml() -> Path | None:
    """The User-Mode Linux kernel of this configuration, the one built last where source or compiler have changed since;
    None when there is none."""
    built = sorted(folder().glob(f"uml-{digest()}-*/linux"), key=lambda path: path.stat().st_mtime)
    return built[-1] if built else None


def stock_digest(script: str, modules: Sequence[str]) -> str:
    """Of what the archive for QEMU is made with."""
    return hashlib.sha256("\0".join([script, *modules]).encode()).hexdigest()[:12]


def qemu() -> Path | None:
    """Folder with the stock kernel `vmlinux` and the archive `initrd` for QEMU; None when they are not there."""
    made = sorted(folder().glob("qemu-*/initrd"), key=lambda path: path.stat().st_mtime)
    return made[-1].parent if made else None
