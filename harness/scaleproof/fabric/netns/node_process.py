"""The first process of a node made of namespaces. Its coordinator forks it; it waits until its links exist."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from scaleproof.fabric.netns import namespaces

_LINKS_ARE_THERE = b"+"


class NodeProcess:
    """The process from the coordinator's side: a child process, with an interface like subprocess.Popen."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self.code: int | None = None
        self._pipe = pipe

    def announce_links(self) -> None:
        """Let the node continue: its links are in its network namespace."""
        os.write(self._pipe, _LINKS_ARE_THERE)
        os.close(self._pipe)

    def kill(self) -> None:
        """End the node: its process namespace ends with its first process."""
        os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """See node_coordinator.Process."""
        if self.code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if ended else None
        return self.code

    def wait(self) -> int:
        """See node_coordinator.Process."""
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code


def fork_node(main: Callable[[Callable[[], None]], None]) -> NodeProcess:
    """Forks a process into new namespaces (network, host name, IPC, mounts, process ids). Raises OSError when the
    kernel refuses.

    The process runs `main`, which never returns. The argument of `main` is a function that waits for the links."""
    reading, writing = os.pipe()

    def wait_for_links() -> None:
        if os.read(reading, 1) != _LINKS_ARE_THERE:
            raise RuntimeError("the coordinator ended before the links were made")

    def child() -> None:
        os.close(writing)
        main(wait_for_links)

    try:
        pid = namespaces.fork_into(namespaces.NET | namespaces.UTS | namespaces.IPC | namespaces.MOUNT, child)
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return NodeProcess(pid, writing)
