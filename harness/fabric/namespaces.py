"""What Linux gives to take processes apart, by the C library: namespaces and mounts."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

NET, UTS, IPC, MOUNT, PID = 0x40000000, 0x04000000, 0x08000000, 0x00020000, 0x20000000
"""Flags of unshare(2)."""
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_NOSUID, _NODEV, _NOEXEC = 2, 4, 8

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces named; a new process namespace holds the children made from then on."""
    _check(_libc.unshare(flags), "unshare")


def enter(file: int) -> None:
    """Join the namespace that an open file of /proc/PID/ns stands for."""
    _check(_libc.setns(file, 0), "setns")


def keep_mounts_private() -> None:
    """What is mounted from now on is seen in this mount namespace only."""
    _mount("none", Path("/"), None, _RECURSIVE | _PRIVATE)


def mount(kind: str, at: Path, options: str = "") -> None:
    """A file system of the kernel's own: proc, sysfs, tmpfs."""
    _mount(kind, at, kind, _NOSUID | _NODEV | (_NOEXEC if kind in ("proc", "sysfs") else 0), options)


def bind(what: Path, at: Path) -> None:
    """The same file or folder, with all that is mounted below it, in a second place."""
    _mount(str(what), at, None, _BIND | _RECURSIVE)


def _mount(source: str, at: Path, kind: str | None, flags: int, options: str = "") -> None:
    done = _libc.mount(source.encode(), bytes(at), kind and kind.encode(), ctypes.c_ulong(flags), options.encode() or None)
    _check(done, f"mount {kind or source} on {at}")


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
