"""`python -m scaleproof.launch.nodes.coordinator FOLDER`: starts an agent on each node of nodes.json, hears of all of
them until the launch is over, and ends them.

Its life hangs on the supervisor's; the agents' lives hang on it."""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from scaleproof.core.atomic_write import read_json, write_json
from scaleproof.core.handshake import Refused, answer
from scaleproof.core.launch_spec import read_launch_spec
from scaleproof.launch.nodes import slurm
from scaleproof.launch.nodes.coordinator_link import BEAT_S, UNABLE, Link, LinkLost, failed_agents
from scaleproof.launch.nodes.file_transfer import send_file
from scaleproof.launch.nodes.forwarded_variables import carried, for_starter
from scaleproof.launch.nodes.received_files import ReceivedFiles, is_key
from scaleproof.launch.nodes.start_ranks import BY_FIRST_NODE, plain
from scaleproof.rank.status_publisher import STACKS

FILE, LEFT = "nodes.json", "left.json"
START_S = 60.0
"""From the start of an agent to its call."""
LEAVE_S = 8.0
"""How long agents may take to end what runs on their nodes."""
POLL_S = 0.05
ENDED_S = 1.0
"""After the program that started an agent has ended: time for the agent's own last words."""


@dataclass(slots=True)
class NodeState:
    """One node as the keeper sees it."""

    number: int
    name: str
    files: ReceivedFiles
    link: Link | None = None
    code: int | None = None
    """Exit code of what it ran; None while that runs, or when it never told."""
    over: bool = False
    """Nothing more will come: it has said goodbye, or is lost."""
    ready: bool = False
    starter: int = 0
    """Which of the starting programs."""


@dataclass(slots=True)
class Coordinator:
    """All nodes of one launch."""

    folder: Path
    plan: dict[str, Any]
    nodes: list[NodeState] = field(default_factory=list)
    starters: list[subprocess.Popen[bytes]] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)
    left: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _port: int = 0
    """Of the first node, for torchrun."""
    _ended_at: dict[int, float] = field(default_factory=dict)

    def run(self) -> int:
        """Until all nodes have ended, one is lost, or the supervisor wants the end; the worst exit code."""
        launch_spec = read_launch_spec(self.folder)
        ranks = [tuple(some) for some in self.plan["ranks"]]
        self.nodes = [
            NodeState(number, name, ReceivedFiles(self.folder, number, ranks[number]))
            for number, name in enumerate(self.plan["hosts"])
        ]
        with socket.create_server((self.plan["address"], 0), backlog=len(self.nodes) + 8) as listener:
            threading.Thread(
                target=self._accept, args=(listener, launch_spec.token, launch_spec.launch), daemon=True
            ).start()
            self._start(
                {
                    "launch": launch_spec.launch,
                    "token": launch_spec.token,
                    "keeper": listener.getsockname()[:2],
                    "folder": str(self.folder),
                }
            )
            self._watch()
            self._end()
        write_json(self.folder / LEFT, self.left)
        return max((node.code if node.code is not None else 255) for node in self.nodes)

    def _start(self, told: dict[str, Any]) -> None:
        header = json.dumps({**self.plan["header"], **told, "environment": carried(os.environ)}).encode() + b"\n"
        for index, (command, numbers) in enumerate(self.plan["starters"]):
            # It ends with the agents that it started, which end when this process does.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, env=for_starter(command[0], os.environ), start_new_session=True
            )
            self.starters.append(process)
            for number in numbers:
                self.nodes[number].starter = index
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # it has ended; _look_at_starters tells
                process.stdin.write(header)
                process.stdin.flush()

    def _watch(self) -> None:
        started, beaten, wished = time.monotonic(), 0.0, ""
        while not self.ending.wait(POLL_S):
            now = time.monotonic()
            self._look_at_starters(now)
            for node in self.nodes:
                if node.link is None and not node.over and now - started > START_S:
                    self._lost(
                        node,
                        "start_failed",
                        f"its agent did not call within {START_S:g} s; does a firewall bar the way to {self.plan['address']}?",
                    )
            if all(node.code is not None or node.over for node in self.nodes):
                return
            if now - beaten > BEAT_S:
                self._to_all("beat")
                beaten = now
            if (wish := _text(self.folder / STACKS)) != wished:
                wished = wish
                if self.plan["header"]["streamed"]:
                    self._send_to_all(STACKS, wish.encode())

    def _look_at_starters(self, now: float) -> None:
        """The program that started an agent ends when that does, well or not; also when the way to its node is gone."""
        for index, process in enumerate(self.starters):
            if process.poll() is None:
                continue
            if now - self._ended_at.setdefault(index, now) > ENDED_S:
                mine = [node for node in self.nodes if node.starter == index and node.code is None and not node.over]
                if mine and process.returncode == UNABLE and all(node.link is None for node in mine):
                    reasons = failed_agents(_text(self.folder / "launcher.log"))
                    for node in mine:
                        self._lost(
                            node,
                            "start_failed",
                            reasons.get(node.number) or "its agent found no way to the launch; launcher.log says why",
                        )
                elif mine:
                    self._not_there(
                        mine,
                        f"{Path(process.args[0]).name if isinstance(process.args, list) else ''} ended with code {process.returncode}",
                    )

    def _not_there(self, nodes: list[NodeState], how: str) -> None:
        """All of them answered the roll call. One step of Slurm starts on all of its nodes or on none: Slurm knows
        which of them are down."""
        names = [node.name for node in nodes]
        down = names if len(names) == 1 else {*slurm.down(names), *slurm.unreached(_text(self.folder / "launcher.log"))}
        for node in nodes:
            if node.link is None and not down:
                self._lost(node, "start_failed", f"no agent was started: {how}; launcher.log says why")
            elif node.link is not None or node.name in down:
                self._lost(node, "node_lost", f"{how}, and no agent was started" if node.link is None else how)
            else:
                node.over = True

    def _lost(self, node: NodeState, code: str, how: str) -> None:
        """Its ranks cannot tell how they ended."""
        with self._lock:
            if node.over or self.ending.is_set():
                return
            node.over = True
        message = f"node {node.name}: {how}"
        print(message, flush=True)
        for rank in node.files.ranks:
            if not (self.folder / f"exit-{rank}.json").exists():
                end = {
                    "pid": 0,
                    "exit_code": None,
                    "signal": int(signal.SIGKILL),
                    "at_ns": time.monotonic_ns(),
                    "code": code,
                    "message": message,
                    "node": node.name,
                }
                write_json(self.folder / f"exit-{rank}.json", end)

    def _accept(self, listener: socket.socket, token: str, launch: str) -> None:
        """In a thread: agents that prove that they know the token, each once."""
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._greet, args=(connection, token, launch), daemon=True).start()

    def _greet(self, connection: socket.socket, token: str, launch: str) -> None:
        try:
            number = answer(connection, token, launch)
        except (OSError, Refused):  # a stranger
            connection.close()
            return
        with self._lock:
            if number >= len(self.nodes) or self.nodes[number].link is not None or self.nodes[number].over:
                connection.close()
                return
            node, link = self.nodes[number], Link(connection)
            node.link = link
        try:
            self._prepare(link)
            while not node.over:
                self._take(node, *link.receive())
        except (LinkLost, ValueError, KeyError, TypeError) as why:
            if node.code is None:
                self._lost(node, "node_lost", str(why))
            node.over = True
        except OSError as error:  # the results' disk is full
            print(f"files of node {node.name}: {error}", flush=True)
            node.over = True
            self.ending.set()
        link.close()

    def _prepare(self, link: Link) -> None:
        if self.plan["header"]["streamed"]:
            for name in self.plan["files"]:
                with (self.folder / name).open("rb") as file:
                    send_file(link, name, file.read)

    def _take(self, node: NodeState, message: dict[str, Any], body: bytes) -> None:
        kind, files = message["kind"], node.files
        if kind == "clock":
            assert node.link is not None
            node.link.send("clock", now=time.monotonic_ns())
        elif kind == "ready":
            with self._lock:  # ranks begin together, and find each other
                node.ready = True
                self._port = int(message["port"]) if node.number == 0 else self._port
                all_ready = all(other.ready for other in self.nodes)
            if all_ready:
                self._to_all("go", port=self._port)
        elif kind == "errand":
            self._pass_on(node, message)
        elif kind == "errand_done":
            asker = self.nodes[int(message["asker"])].link
            if asker is not None:
                with suppress(LinkLost):  # whoever receives from it tells
                    asker.send("errand_done", number=int(message["number"]), code=int(message["code"]))
        elif kind == "line":
            files.write_board_line(message, body)
        elif kind == "log":
            files.add_to_log(message, body)
        elif kind == "file":
            with self._lock:
                name = files.write(message, body)
            if is_key(name):
                self._send_to_all(name, (self.folder / name).read_bytes(), but=node)
        elif kind == "done":
            node.code = int(message["code"])
        elif kind == "gone":
            self.left += [f"{left} on {node.name}" for left in message["left"]]
            if node.code is None and message["told"]:  # by Slurm, whose job comes to its end
                self._lost(node, "interrupted", f"its agent was ended by {message['told']}")
            elif node.code is None:
                self._lost(node, "start_failed", message["why"] or "its agent ended")
            node.over = True

    def _pass_on(self, node: NodeState, message: dict[str, Any]) -> None:
        """An errand to the agent of the node that it names."""
        other = next(
            (other for other in self.nodes if plain(other.name) == message["host"] and other.link is not None), None
        )
        if other is not None and other.link is not None and self.plan["header"]["inner"] in BY_FIRST_NODE:
            with suppress(LinkLost):
                other.link.send("errand", number=message["number"], asker=node.number, line=message["line"])
        elif node.link is not None:
            print(f"an errand to {message['host']!r}, which is no node of this launch", flush=True)
            node.link.send("errand_done", number=message["number"], code=255)

    def _to_all(self, kind: str, **told: Any) -> None:
        for node in self.nodes:
            if node.link is not None and not node.over:
                with suppress(LinkLost):  # whoever receives from it tells
                    node.link.send(kind, **told)

    def _send_to_all(self, name: str, content: bytes, but: NodeState | None = None) -> None:
        for node in self.nodes:
            if node is but or node.link is None or node.over:
                continue
            with suppress(LinkLost):
                send_file(node.link, name, io.BytesIO(content).read)

    def _end(self) -> None:
        """Agents end what is left on their nodes and say goodbye; those who started them end then."""
        self.ending.set()
        self._to_all("end")
        until = time.monotonic() + LEAVE_S
        while time.monotonic() < until and not all(node.over or node.link is None for node in self.nodes):
            time.sleep(0.01)
        for process in self.starters:
            if process.stdin is not None:
                process.stdin.close()
        if any(node.code is None for node in self.nodes):
            until = time.monotonic() + ENDED_S  # what reaches for a node that is gone would only wait
        for process in self.starters:
            try:
                process.wait(max(until - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def main() -> int:
    """See Coordinator.run."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder: Path = arguments.parse_args().folder
    keeper = Coordinator(folder, read_json(folder / FILE))

    def end(number: int, frame: FrameType | None) -> None:
        keeper.ending.set()

    signal.signal(signal.SIGTERM, end)
    return keeper.run()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
