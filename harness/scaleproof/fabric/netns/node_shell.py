"""`python -m scaleproof.fabric.netns.node_shell HOST COMMAND...`: runs a shell's command line on another node, as a
remote shell does; mpirun starts its daemons by it.

A node without a command serves requests at a socket in the launch's folder, which all nodes can access without a
network. The caller passes its standard input and outputs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time

# Environment variable of every process of a node: the launch's folder.
FOLDER = "SCALEPROOF_REACH"
# Bytes of a command line.
LONGEST = 1 << 20
# How long a node may take until it serves requests: the first node's command may begin while others still measure their
# links.
START_S = 60.0


def socket_path(host: str) -> str:
    """Path of a node's socket, short enough for the limit on such paths."""
    return f"/proc/self/fd/{os.open(os.environ[FOLDER], os.O_PATH)}/{host}.socket"


def serve(host: str) -> int:
    """Never returns: every requested command runs as a child of this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody else waits for them
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(socket_path(host))
        listener.listen(64)
        while True:
            client = listener.accept()[0]
            if os.fork() == 0:
                _run(client)
            client.close()


def _run(client: socket.socket) -> None:
    """Never returns."""
    code = 255
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        line, files, _, _ = socket.recv_fds(client, LONGEST, 3)
        for target, file in enumerate(files):
            os.dup2(file, target)
            os.close(file)
        code = subprocess.run(["/bin/sh", "-c", json.loads(line)], check=False).returncode
        client.sendall(str(code).encode())
    finally:
        os._exit(code & 255)


def _connect(client: socket.socket, path: str) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            return client.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def main() -> int:
    """The command's exit code; 255 if the node is lost."""
    host, line = sys.argv[1], " ".join(sys.argv[2:])
    with socket.socket(socket.AF_UNIX) as client:
        _connect(client, socket_path(host))
        socket.send_fds(client, [json.dumps(line).encode()], [0, 1, 2])
        answer = client.recv(16)
    return int(answer) & 255 if answer else 255


if __name__ == "__main__":
    sys.exit(main())
