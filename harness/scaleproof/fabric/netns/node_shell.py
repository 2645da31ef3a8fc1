"""`python -m scaleproof.fabric.netns.node_shell HOST COMMAND...`: runs a shell's command line on another node, as a
remote shell does; mpirun starts its daemons by it.

A node that waits serves at a socket in the launch's folder, which all nodes see though no network leads there. The
caller hands over its input and outputs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time

FOLDER = "SCALEPROOF_REACH"
"""In the environment of every process of a node: the launch's folder."""
LONGEST = 1 << 20
"""Bytes of a command line."""
START_S = 60.0
"""How long a node may take until it serves: the first node's command may begin before the others have looked at their
links."""


def place(host: str) -> str:
    """A node's socket, by a path that is short enough for one."""
    return f"/proc/self/fd/{os.open(os.environ[FOLDER], os.O_PATH)}/{host}.socket"


def serve(host: str) -> int:
    """Never returns: whatever is asked for runs as a child of this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody else waits for them
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place(host))
        listener.listen(64)
        while True:
            asking = listener.accept()[0]
            if os.fork() == 0:
                _run(asking)
            asking.close()


def _run(asking: socket.socket) -> None:
    """Never returns."""
    code = 255
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        said, files, _, _ = socket.recv_fds(asking, LONGEST, 3)
        for target, file in enumerate(files):
            os.dup2(file, target)
            os.close(file)
        code = subprocess.run(["/bin/sh", "-c", json.loads(said)], check=False).returncode
        asking.sendall(str(code).encode())
    finally:
        os._exit(code & 255)


def _connect(opened: socket.socket, where: str) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            return opened.connect(where)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def main() -> int:
    """The command's exit code; 255 when the node is gone."""
    host, line = sys.argv[1], " ".join(sys.argv[2:])
    with socket.socket(socket.AF_UNIX) as opened:
        _connect(opened, place(host))
        socket.send_fds(opened, [json.dumps(line).encode()], [0, 1, 2])
        said = opened.recv(16)
    return int(said) & 255 if said else 255


if __name__ == "__main__":
    sys.exit(main())
