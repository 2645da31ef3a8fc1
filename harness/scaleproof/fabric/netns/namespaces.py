"""Linux namespaces and mounts, by functions of the C library."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from pathlib import Path

NET, UTS, IPC, MOUNT, PID = 0x40000000, 0x04000000, 0x08000000, 0x00020000, 0x20000000
"""Flags of unshare(2)."""
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_NOSUID, _NODEV, _NOEXEC = 2, 4, 8
_MEMORY = Path("/dev/shm")

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Moves this process into new namespaces. A new process namespace applies only to later children."""
    _check(_libc.unshare(flags), "unshare")


def fork_into(flags: int, main: Callable[[], None]) -> int:
    """Forks a process into new namespaces, as the first one of its process namespace. It runs `main`, which never
    returns. Returns its process id in the caller's namespace; the caller is its parent. Raises OSError with the reason
    of a failure."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        try:
            unshare(flags | PID)
            first = os.fork()
            if first == 0:
                os.close(writing)
                main()
            os.write(writing, str(first).encode())
        except OSError as error:
            os.write(writing, f"{error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(between, 0)
    if not answer.isdigit():
        raise OSError(answer or "its process ended at once")
    return int(answer)


def enter(file: int) -> None:
    """Joins the namespace of an open file of /proc/PID/ns."""
    _check(_libc.setns(file, 0), "setns")


def keep_mounts_private() -> None:
    """Makes later mounts visible only in this mount namespace."""
    _mount("none", Path("/"), None, _RECURSIVE | _PRIVATE)


def mount(kind: str, at: Path, options: str = "") -> None:
    """Mounts a virtual file system: proc, sysfs, tmpfs."""
    _mount(kind, at, kind, _NOSUID | _NODEV | (_NOEXEC if kind in ("proc", "sysfs") else 0), options)


def bind(source: Path, target: Path) -> None:
    """Bind-mounts a file or folder, with everything mounted below it, at a second path."""
    _mount(str(source), target, None, _BIND | _RECURSIVE)


def furnish(host: str, names: dict[str, str], visible: Path) -> None:
    """Sets up a node's new namespaces: host name, /proc, /sys, /dev/shm, and a hosts file as the only source of host
    names (`names`: addresses by name). `visible`: a folder that stays visible at its path."""
    socket.sethostname(host)
    keep_mounts_private()
    mount("proc", Path("/proc"))
    groups = os.open("/sys/fs/cgroup", os.O_PATH) if Path("/sys/fs/cgroup").is_dir() else -1
    mount("sysfs", Path("/sys"))
    if groups >= 0:
        bind(Path(f"/proc/self/fd/{groups}"), Path("/sys/fs/cgroup"))
        os.close(groups)
    folder = os.open(visible, os.O_PATH)
    mount("tmpfs", _MEMORY)
    if _MEMORY in visible.parents:
        visible.mkdir(parents=True)
        bind(Path(f"/proc/self/fd/{folder}"), visible)
    os.close(folder)
    own = _MEMORY / "etc"
    own.mkdir()
    lines = [f"{address} {name}" for name, address in names.items()]
    for name, text in {
        "hosts": "\n".join(["127.0.0.1 localhost", *lines, ""]),
        "nsswitch.conf": "hosts: files\n",
        "resolv.conf": "",
    }.items():
        (own / name).write_text(text)
        if Path("/etc", name).exists():
            bind(own / name, Path("/etc", name))


def _mount(source: str, at: Path, kind: str | None, flags: int, options: str = "") -> None:
    result = _libc.mount(
        source.encode(), bytes(at), kind and kind.encode(), ctypes.c_ulong(flags), options.encode() or None
    )
    _check(result, f"mount {kind or source} on {at}")


def _check(result: int, action: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")
