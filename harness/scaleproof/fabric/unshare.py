"""Commands in process and network namespaces of their own. Their first process is the coordinator of a network: when it
is gone, however it went, the kernel ends every process and removes every link in there."""

from __future__ import annotations

import os

# Mounts /proc anew.
OWN_PROC = "--mount-proc"
# The coordinator mounts what it needs itself.
OWN_MOUNTS = "--mount"


def unshared(mounts: str, command: list[str]) -> list[str]:
    """The command line that runs a command in there; `mounts`: OWN_PROC or OWN_MOUNTS."""
    return ["unshare", "--net", "--pid", "--fork", "--kill-child", mounts, *_as_root(), *command]


def _as_root() -> list[str]:
    """For a user who is not root: a user namespace in which they are."""
    return [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
