"""`python -m scaleproof.launch.nodes.coordinator FOLDER`: starts an agent on each node of nodes.json, exchanges
messages with all of them until the launch is over, and ends them.

It lives no longer than the supervisor; the agents live no longer than it."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.core.handshake import Refused, answer
from scaleproof.core.launch_spec import LaunchSpec, read_launch_spec
from scaleproof.launch.nodes.agent_starters import ENDED_S, AgentStarters
from scaleproof.launch.nodes.coordinator_link import BEAT_S, Link, LinkLost
from scaleproof.launch.nodes.file_transfer import send_file
from scaleproof.launch.nodes.node_state import LaunchNodes, NodeState
from scaleproof.launch.nodes.received_files import ReceivedFiles, is_key
from scaleproof.launch.nodes.start_ranks import BY_FIRST_NODE, plain
from scaleproof.rank.status_publisher import STACKS

FILE, LEFT = "nodes.json", "left.json"
START_S = 60.0
"""How long an agent may take from its start to its connection."""
LEAVE_S = 8.0
"""How long agents may take to end the processes of their nodes."""
POLL_S = 0.05


class Coordinator:
    """One launch over several nodes. `plan`: the content of nodes.json."""

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self.folder, self.plan = folder, plan
        ranks = [tuple(ranks) for ranks in plan["ranks"]]
        states = [
            NodeState(number, name, ReceivedFiles(folder, number, ranks[number]))
            for number, name in enumerate(plan["hosts"])
        ]
        self.nodes = LaunchNodes(folder, states)
        self.starters = AgentStarters(self.nodes)
        self._leftovers: list[str] = []
        self._port = 0
        """Port of the first node, for torchrun."""

    def run(self) -> int:
        """Serve until all nodes have ended, a node is lost, or the supervisor ends the launch; returns the worst exit
        code."""
        spec = read_launch_spec(self.folder)
        with socket.create_server((self.plan["address"], 0), backlog=len(self.nodes.states) + 8) as listener:
            threading.Thread(target=self._accept, args=(listener, spec), daemon=True).start()
            fields = {"launch": spec.launch, "token": spec.token, "folder": str(self.folder)}
            self.starters.start(self.plan, fields | {"coordinator": listener.getsockname()[:2]})
            self._watch()
            self._end()
        write_json(self.folder / LEFT, self._leftovers)
        return max(255 if node.exit_code is None else node.exit_code for node in self.nodes.states)

    def _watch(self) -> None:
        started, last_beat, stacks_request = time.monotonic(), 0.0, ""
        while not self.nodes.ending.wait(POLL_S):
            now = time.monotonic()
            self.starters.check(now)
            if now - started > START_S:
                self._lose_unconnected()
            if self.nodes.all_done():
                return
            if now - last_beat > BEAT_S:
                self.nodes.send("beat")
                last_beat = now
            request = _text(self.folder / STACKS)
            if request != stacks_request:
                stacks_request = request
                if self.plan["header"]["streamed"]:
                    self.nodes.send_file(STACKS, request.encode())

    def _lose_unconnected(self) -> None:
        for node in self.nodes.states:
            if node.link is None and not node.over:
                how = f"its agent did not connect within {START_S:g} s; does a firewall block {self.plan['address']}?"
                self.nodes.lose(node, "start_failed", how)

    def _accept(self, listener: socket.socket, spec: LaunchSpec) -> None:
        """In a thread: accept connections, and serve each in a thread."""
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection, spec), daemon=True).start()

    def _serve(self, connection: socket.socket, spec: LaunchSpec) -> None:
        """In a thread: serve one agent from its connection to its goodbye, if it proves that it knows the token."""
        try:
            number = answer(connection, spec.token, spec.launch)
        except (OSError, Refused):  # not an agent of this launch
            connection.close()
            return
        with self.nodes.lock:
            node = self.nodes.states[number] if number < len(self.nodes.states) else None
            if node is None or node.link is not None or node.over:
                connection.close()
                return
            node.link = link = Link(connection)
        try:
            self._send_launch_files(link)
            while not node.over:
                self._handle(node, link, *link.receive())
        except (LinkLost, ValueError, KeyError, TypeError) as error:
            if node.exit_code is None:
                self.nodes.lose(node, "node_lost", str(error))
            node.over = True
        except OSError as error:  # the disk of the results is full
            print(f"files of node {node.name}: {error}", flush=True)
            node.over = True
            self.nodes.ending.set()
        link.close()

    def _send_launch_files(self, link: Link) -> None:
        if self.plan["header"]["streamed"]:
            for name in self.plan["files"]:
                with (self.folder / name).open("rb") as file:
                    send_file(link, name, file.read)

    def _handle(self, node: NodeState, link: Link, message: dict[str, Any], body: bytes) -> None:
        """Handle one message of an agent."""
        kind = message["kind"]
        if kind == "clock":
            link.send("clock", now=time.monotonic_ns())
        elif kind == "ready":
            self._ready(node, int(message["port"]))
        elif kind == "command":
            self._forward_command(node, link, message)
        elif kind == "command_done":
            self._forward_exit_code(message)
        elif kind == "line":
            node.files.write_board_line(message, body)
        elif kind == "log":
            node.files.add_to_log(message, body)
        elif kind == "file":
            self._file(node, message, body)
        elif kind == "done":
            node.exit_code = int(message["code"])
        elif kind == "goodbye":
            self._goodbye(node, message)

    def _ready(self, node: NodeState, port: int) -> None:
        """Ranks start together, once all nodes are ready."""
        with self.nodes.lock:
            node.ready = True
            self._port = port if node.number == 0 else self._port
            all_ready = all(other.ready for other in self.nodes.states)
        if all_ready:
            self.nodes.send("go", port=self._port)

    def _file(self, node: NodeState, message: dict[str, Any], body: bytes) -> None:
        """Write a file of a node; keys go to all other nodes too, since all ranks read them."""
        with self.nodes.lock:
            name = node.files.write(message, body)
        if name and is_key(name):
            self.nodes.send_file(name, (self.folder / name).read_bytes(), source=node)

    def _goodbye(self, node: NodeState, message: dict[str, Any]) -> None:
        self._leftovers += [f"{leftover} on {node.name}" for leftover in message["left"]]
        if node.exit_code is None and message["ended_by"]:  # a signal of Slurm, which ends the job
            self.nodes.lose(node, "interrupted", f"its agent was ended by {message['ended_by']}")
        elif node.exit_code is None:
            self.nodes.lose(node, "start_failed", message["why"] or "its agent ended")
        node.over = True

    def _forward_command(self, node: NodeState, link: Link, message: dict[str, Any]) -> None:
        """Send a remote command to the agent of the node that it names."""
        connected = (other for other in self.nodes.states if other.link is not None)
        target = next((other for other in connected if plain(other.name) == message["host"]), None)
        if target is not None and target.link is not None and self.plan["header"]["inner"] in BY_FIRST_NODE:
            with suppress(LinkLost):
                target.link.send("command", number=message["number"], requester=node.number, command=message["command"])
        else:
            print(f"a remote command for {message['host']!r}, which is no node of this launch", flush=True)
            link.send("command_done", number=message["number"], code=255)

    def _forward_exit_code(self, message: dict[str, Any]) -> None:
        requester = self.nodes.states[int(message["requester"])].link
        if requester is not None:
            with suppress(LinkLost):  # the thread that receives from the requester reports it
                requester.send("command_done", number=int(message["number"]), code=int(message["code"]))

    def _end(self) -> None:
        """Have the agents end the processes of their nodes and send their goodbyes; then the programs that started them
        end."""
        self.nodes.ending.set()
        self.nodes.send("end")
        until = time.monotonic() + LEAVE_S
        while time.monotonic() < until and not self.nodes.all_left():
            time.sleep(0.01)
        if any(node.exit_code is None for node in self.nodes.states):
            until = time.monotonic() + ENDED_S  # a program whose node is lost would only wait
        self.starters.end(until)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def main() -> int:
    """See Coordinator.run."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder: Path = arguments.parse_args().folder
    coordinator = Coordinator(folder, read_json(folder / FILE))

    def end(number: int, frame: FrameType | None) -> None:
        coordinator.nodes.ending.set()

    signal.signal(signal.SIGTERM, end)
    return coordinator.run()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
