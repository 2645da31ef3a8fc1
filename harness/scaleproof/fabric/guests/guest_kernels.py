"""Paths of the guests' kernels in the user's cache, and their keys. Imports nothing that set-up has yet to install."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from scaleproof.paths import user_cache

CONFIG = Path(__file__).with_name("guest.config")
"""Configuration of the User-Mode Linux kernel, added to `allnoconfig`."""
PATCH = Path(__file__).with_name("guest.patch")
"""Changes to its source, with reasons."""
ADVICE = "type `make env`, or `python3 -m tools.build_guest_kernel` alone: 4 min on two cores, once"

QEMU_ADVICE = "type `apt-get install qemu-system-x86 busybox-static`, then `python3 -m tools.build_guest_kernel --qemu`"


def folder() -> Path:
    """Folder of all guest kernels."""
    return user_cache() / "guests"


def digest() -> str:
    """Digest of configuration and patch, which identifies a kernel."""
    return hashlib.sha256(CONFIG.read_bytes() + PATCH.read_bytes()).hexdigest()[:12]


def uml() -> Path | None:
    """The User-Mode Linux kernel of this configuration that was built last; None if there is none."""
    built = sorted(folder().glob(f"uml-{digest()}-*/linux"), key=lambda path: path.stat().st_mtime)
    return built[-1] if built else None


def stock_digest(script: str, modules: Sequence[str]) -> str:
    """Digest of the inputs of the archive for QEMU."""
    return hashlib.sha256("\0".join([script, *modules]).encode()).hexdigest()[:12]


def qemu() -> Path | None:
    """Folder with the stock kernel `vmlinux` and the archive `initrd` for QEMU; None if there is none."""
    made = sorted(folder().glob("qemu-*/initrd"), key=lambda path: path.stat().st_mtime)
    return made[-1].parent if made else None
