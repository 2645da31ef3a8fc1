"""Agents started by a remote shell, one call per node; on this machine itself without it."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Sequence

PROGRAM = "SCALEPROOF_SSH"
"""Environment variable: another remote shell with its options; the host and one command line follow them."""
OPTIONS = (
    "-T",
    "-x",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=3",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "LogLevel=ERROR",
    "-o",
    "ClearAllForwardings=yes",
)


def remote_shell() -> list[str]:
    """The program and its options."""
    return shlex.split(os.environ[PROGRAM]) if os.environ.get(PROGRAM) else ["ssh", *OPTIONS]


def commands(names: Sequence[str], agent: Sequence[str]) -> list[tuple[list[str], list[int]]]:
    """A command for each node, with the number of the node. `agent`: the command line of an agent."""
    folder = os.getcwd()
    starters = []
    for number, name in enumerate(names):
        command = [*agent, "--node", str(number)]
        line = f"cd {shlex.quote(folder)} 2>/dev/null; exec {shlex.join(command)}"
        # By /bin/sh: a login shell may be csh, which has another syntax.
        remote = [*remote_shell(), name, f"exec /bin/sh -c {shlex.quote(line)}"]
        starters.append((command if is_here(name) else remote, [number]))
    return starters


def is_here(name: str) -> bool:
    """Whether a host's name is this machine's."""
    own = socket.gethostname()
    return name in ("localhost", own, own.partition(".")[0])
