"""`python -m benchmarks.network COMMAND ...` runs a command where all sockets have the same congestion control: in a
network namespace of its own, with the one that our transport tcp sets on its sockets as the default of all.

Without it our sockets would have another one than those of peers, which have the machine's. Where the kernel allows no
namespace, the command runs all the same, and what it records says so."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from scaleproof.core.handshake import LOOPBACK_CONGESTION

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
"""The default of new sockets in the network namespace of the process that reads it."""
NAMESPACE = "BENCH_NETWORK"
"""Variable of the command's environment: `own`, or why it has no namespace of its own."""
OWN = "own"


def main() -> None:
    """Become the command."""
    command = sys.argv[1:]
    if not command:
        sys.exit("usage: python -m benchmarks.network COMMAND ...")
    try:
        own_network(LOOPBACK_CONGESTION)
        os.environ[NAMESPACE] = OWN
    except OSError as error:
        os.environ[NAMESPACE] = f"{error.strerror or error}"
        print(f"benchmarks.network: {statement(facts())}", file=sys.stderr, flush=True)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"benchmarks.network: {command[0]}: {error.strerror}")


def own_network(congestion: str) -> None:
    """Enter a new network namespace, bring its loopback up and set the default congestion control. OSError where the
    kernel does not allow it. The user stays the same."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "the kernel allows no network namespace")
        # Without them the user could make no further namespaces, as the peer of TensorFlow does.
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", name).write_text(text)
    with socket.socket() as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))
    CONGESTION.write_text(congestion)


def congestion() -> str:
    """The default of new sockets here; empty where the kernel does not tell."""
    return CONGESTION.read_text().strip() if CONGESTION.exists() else ""


def facts() -> dict[str, Any]:
    """Of the network in which all arms run: congestion control of peers and of our own sockets; `namespace`: see
    NAMESPACE."""
    return {
        "congestion_control": congestion(),
        "congestion_control_of_ours": LOOPBACK_CONGESTION,
        "namespace": os.environ.get(NAMESPACE, "not started by benchmarks.network"),
    }


def statement(network: dict[str, Any]) -> str:
    """What a reader of the ratios must know, in one line."""
    peers, ours = network["congestion_control"], network["congestion_control_of_ours"]
    if peers == ours:
        return f"All sockets had congestion control {ours}."
    return (
        f"The arms did not run alike: sockets of transport tcp had congestion control {ours}, those of gRPC and of "
        f"peers {peers or 'an unknown one'} ({network['namespace']}). A ratio between them is no fair comparison."
    )


if __name__ == "__main__":
    main()
