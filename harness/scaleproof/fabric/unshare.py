"""Runs commands in new process and network namespaces. Their first process is the coordinator of a network: when it has
ended, however it ended, the kernel kills every process and removes every link in the namespaces."""

from __future__ import annotations

import os

# Mounts /proc anew.
OWN_PROC = "--mount-proc"
# The coordinator mounts what it needs itself.
OWN_MOUNTS = "--mount"


def unshared(mounts: str, command: list[str]) -> list[str]:
    """The command line that runs a command in new namespaces. `mounts`: OWN_PROC or OWN_MOUNTS."""
    return ["unshare", "--net", "--pid", "--fork", "--kill-child", mounts, *_as_root(), *command]


def _as_root() -> list[str]:
    """Options for a user who is not root: a user namespace in which they are root."""
    return [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
