"""`python -m scaleproof.launch.nodes.remote_command HOST LINE...`: runs a shell's command line on another node of the
launch, by its agent; mpirun starts its daemons so.

No remote shell is needed for it: the caller asks the agent of its own node at a socket, that one the keeper, the keeper
the other node's agent."""

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

PLACE = "SCALEPROOF_ERRANDS"
"""In the environment of what an agent starts: the socket at which it takes errands."""
LONGEST = 1 << 15
"""Bytes of a command line."""


class RemoteCommands:
    """An agent's part: those that processes of its node ask for, and those that other nodes ask of it."""

    def __init__(self, link: Link, place: Path) -> None:
        self.link, self.place = link, place
        self._asking: dict[int, socket.socket] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(place))
        self._listener.listen(64)
        threading.Thread(target=self._serve, name="errands", daemon=True).start()

    def _serve(self) -> None:
        number = 0
        while True:
            try:
                asking = self._listener.accept()[0]
                wanted = json.loads(asking.makefile("rb").readline(LONGEST))
                number += 1
                self._asking[number] = asking
                self.link.send("errand", number=number, host=str(wanted["host"]), line=str(wanted["line"]))
            except LinkLost:
                return  # the agent hears of it too
            except (OSError, ValueError, KeyError, TypeError):
                continue  # whoever asked has gone, or is no errand of ours

    def done(self, message: Mapping[str, Any]) -> None:
        """The code of one that was asked for here."""
        if (asking := self._asking.pop(int(message["number"]), None)) is not None:
            with suppress(OSError):  # whoever asked has gone
                asking.sendall(str(int(message["code"])).encode())
            asking.close()

    def run(self, message: Mapping[str, Any], variables: Mapping[str, str]) -> None:
        """One of another node, to its end; in a thread of its own."""
        code = subprocess.run(
            ["/bin/sh", "-c", str(message["line"])], env=dict(variables), stdin=subprocess.DEVNULL, check=False
        ).returncode
        with suppress(LinkLost):  # the launch is over
            self.link.send("errand_done", number=message["number"], asker=message["asker"], code=code & 255)


def main() -> int:
    """The command's exit code; 255 when nobody could run it."""
    with socket.socket(socket.AF_UNIX) as opened:
        opened.connect(os.environ[PLACE])
        opened.sendall(json.dumps({"host": sys.argv[1], "line": " ".join(sys.argv[2:])}).encode() + b"\n")
        said = opened.recv(16)
    return int(said) & 255 if said else 255


if __name__ == "__main__":
    sys.exit(main())
