"""`python -m scaleproof.launch.nodes.remote_command HOST COMMAND...`: has the agent of another node of the launch run a
shell command line; mpirun starts its daemons this way.

It needs no remote shell: this process sends the command to the agent of its own node by a socket, that agent sends it
to the coordinator, and the coordinator to the agent of the other node."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from scaleproof.launch.nodes.coordinator_link import Link, LinkLost

SOCKET = "SCALEPROOF_COMMANDS"
"""Environment variable of the processes of a node: the path of the socket at which its agent accepts remote
commands."""
LONGEST = 1 << 15
"""Bytes of a command line."""


class RemoteCommands:
    """The agent's part: commands from processes of its node for other nodes, and from other nodes for its node."""

    def __init__(self, link: Link, path: Path) -> None:
        self.link = link
        self._requesters: dict[int, socket.socket] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._serve, name="commands", daemon=True).start()

    def _serve(self) -> None:
        number = 0
        while True:
            try:
                requester = self._listener.accept()[0]
                request = json.loads(requester.makefile("rb").readline(LONGEST))
                number += 1
                self._requesters[number] = requester
                self.link.send("command", number=number, host=str(request["host"]), command=str(request["command"]))
            except LinkLost:
                return  # the agent's main thread gets this error too
            except (OSError, ValueError, KeyError, TypeError):
                continue  # the requester has ended, or sent no request

    def send_exit_code(self, message: Mapping[str, Any]) -> None:
        """Pass the exit code of a command on to the process of this node that requested it."""
        requester = self._requesters.pop(int(message["number"]), None)
        if requester is not None:
            with suppress(OSError):  # the requester has ended
                requester.sendall(str(int(message["code"])).encode())
            requester.close()

    def run(self, message: Mapping[str, Any], variables: Mapping[str, str]) -> None:
        """Run a command that another node requested, to its end; call it in a thread."""
        code = subprocess.run(
            ["/bin/sh", "-c", str(message["command"])], env=dict(variables), stdin=subprocess.DEVNULL, check=False
        ).returncode
        with suppress(LinkLost):  # the launch is over
            self.link.send("command_done", number=message["number"], requester=message["requester"], code=code & 255)


def main() -> int:
    """The command's exit code; 255 when no agent could run it."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ[SOCKET])
        connection.sendall(json.dumps({"host": sys.argv[1], "command": " ".join(sys.argv[2:])}).encode() + b"\n")
        reply = connection.recv(16)
    return int(reply) & 255 if reply else 255


if __name__ == "__main__":
    sys.exit(main())
