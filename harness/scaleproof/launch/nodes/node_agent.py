"""`python -m scaleproof.launch.nodes.node_agent`: the agent on one node of an allocation. It answers discovery, or runs
the node's ranks of a launch.

It reads its task, one line of JSON, from its standard input. It ends when that input ends, or the connection to the
launch's coordinator."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from scaleproof.core.handshake import Refused, prove
from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.core.location import ADDRESS, CLOCK, NODE
from scaleproof.core.rank_exit import write_missing_exits
from scaleproof.launch.launchers.launcher_contract import node_scratch
from scaleproof.launch.nodes import start_ranks
from scaleproof.launch.nodes.coordinator_link import BEAT_S, UNABLE, Link, LinkLost, failed_agent_line
from scaleproof.launch.nodes.file_transfer import FileTransfer
from scaleproof.launch.nodes.forwarded_variables import node_variables
from scaleproof.launch.nodes.node_facts import answer_discovery, node_number
from scaleproof.launch.nodes.remote_command import SOCKET, RemoteCommands
from scaleproof.launch.teardown import AGENT, clean_node, mark_as_own
from scaleproof.rank.process_lifetime import adopt_orphans
from scaleproof.rank.status_publisher import StatusPublisher

COMMANDS = "commands"
"""The socket for remote commands, in the agent's scratch."""
LEAVE_S = 2.0
"""Time for the last processes of a launch that went well to end by themselves."""


class Agent:
    """One node's part of one launch. `header`: the header of the plan, with the launch, its token and the coordinator's
    address."""

    def __init__(self, header: dict[str, Any], number: int) -> None:
        self.header, self.number = header, number
        self.launch = str(header["launch"])
        self.ranks: list[int] = list(header["ranks"][number])
        self.over, self.ready = threading.Event(), threading.Event()
        self.exit_code = 255
        self.ended_by = ""
        """Name of the signal that ended this agent from outside."""
        self._failure = ""
        """Why this node could not run its ranks."""
        self._port = 0
        """Port of the first node on which the processes of torchrun meet."""
        self._variables: dict[str, str] = {}
        self._commands: RemoteCommands | None = None

    def run(self) -> int:
        """Connect to the coordinator and serve it until the launch is over. In every case nothing of the launch stays
        on this node. Returns the exit code."""
        scratch = node_scratch(self.launch, self.number)
        link = None
        try:
            scratch.mkdir(parents=True, mode=0o700)
            mark_as_own(scratch)
            link = self._connect()
            self._serve(link, scratch)
        except (LinkLost, Refused) as error:
            self._write_to_log(f"the coordinator of the launch: {error}")
        except OSError as error:  # the disk is full, a program is missing, the coordinator cannot be reached
            self._failure = f"{type(error).__name__}: {error}"
            if link is None:
                self._write_to_log(self._unreachable_message())
                self.exit_code = UNABLE
        finally:
            leftovers = clean_node(self.launch, self.number, LEAVE_S if self.exit_code == 0 else 0.0)
            if link is not None:
                with suppress(LinkLost):  # the coordinator ended first
                    link.send("goodbye", left=leftovers[:20], why=self._failure, ended_by=self.ended_by)
                link.close()
        return self.exit_code

    def end(self) -> None:
        """The launch is over for this node."""
        self.over.set()
        self.ready.set()

    def _serve(self, link: Link, scratch: Path) -> None:
        streamed = bool(self.header["streamed"])
        folder = scratch / "launch" if streamed else Path(self.header["folder"])
        transfer = FileTransfer(folder, link, self.ranks, streamed, self.number)
        threading.Thread(target=self._listen, args=(link, transfer), name="listen", daemon=True).start()
        self._variables = self._environment(scratch, folder, transfer.clock_offset_ns())
        if self.header["inner"] in start_ranks.BY_FIRST_NODE:
            self._commands = RemoteCommands(link, scratch / COMMANDS)
        link.send("ready", port=self._free_port())
        self._wait_for_all(link)
        self._run_ranks(folder, scratch, link, transfer)
        while not self.over.wait(BEAT_S):
            link.send("beat")

    def _connect(self) -> Link:
        address, port = self.header["coordinator"]
        connection = socket.create_connection((address, port), timeout=30.0)
        prove(connection, self.header["token"], self.launch, self.number)
        return Link(connection)

    def _unreachable_message(self) -> str:
        address, port = self.header["coordinator"]
        return (
            "its agent could not join the launch: it could not make its scratch folder, "
            f"or not connect to {address} port {port}: {self._failure}"
        )

    def _write_to_log(self, why: str) -> None:
        """Write to the launch's log, by standard error, where there is no connection to the coordinator."""
        print(failed_agent_line(self.number, why), file=sys.stderr, flush=True)

    def _listen(self, link: Link, transfer: FileTransfer) -> None:
        """In a thread: handle the coordinator's messages until the last one."""
        try:
            while True:
                message, body = link.receive()
                kind = message["kind"]
                if kind == "go":
                    self._port = int(message["port"])
                    self.ready.set()
                elif kind == "end":
                    break
                elif kind == "command" and self._commands is not None:
                    threading.Thread(target=self._commands.run, args=(message, self._variables), daemon=True).start()
                elif kind == "command_done" and self._commands is not None:
                    self._commands.send_exit_code(message)
                else:
                    transfer.receive(message, body)
        except (LinkLost, OSError, ValueError, KeyError):
            pass  # after any of these no message can come any more
        self.end()

    def _wait_for_all(self, link: Link) -> None:
        """Wait until all nodes are ready, with a beat to the coordinator meanwhile."""
        while not self.ready.wait(BEAT_S):
            link.send("beat")
        if self.over.is_set():
            raise LinkLost("it ended the launch before it began")

    def _run_ranks(self, folder: Path, scratch: Path, link: Link, transfer: FileTransfer) -> None:
        """Run the node's command to its end, with a beat to the coordinator meanwhile."""
        os.environ.update(self._variables)  # start_ranks and StatusPublisher read them
        command = start_ranks.command(self.header, self.number, folder, scratch, self._port)
        if self.header["inner"] != "fork":
            StatusPublisher(folder, int(self.header["world"])).publish_ranks_of_others(self.ranks)
        process = None if command is None else subprocess.Popen(command, env=self._variables, stdin=subprocess.DEVNULL)
        transfer.start()
        last_beat = 0.0
        while not self.over.is_set() and not self._ranks_ended(process, folder):
            _sleep(process, transfer.send_changes())
            if time.monotonic() - last_beat > BEAT_S:
                link.send("beat")
                last_beat = time.monotonic()
        if self.over.is_set():
            if process is not None:
                # Before its ranks are killed, so that it does not report their end as their failure.
                process.kill()
                process.wait()
            return
        code = 0 if process is None else process.returncode
        self.exit_code = code if code >= 0 else 128 - code
        host = self.header["hosts"][self.number]
        message = f"node {host}: the parent ended with code {self.exit_code} and did not report how its ranks ended"
        write_missing_exits(folder, self.ranks, code="start_failed", message=message, node=host)
        transfer.send_rest()
        link.send("done", code=self.exit_code)

    def _ranks_ended(self, process: subprocess.Popen[bytes] | None, folder: Path) -> bool:
        """Whether the command has ended; where another node's command starts the ranks, whether all ranks of this node
        have ended."""
        if process is not None:
            return process.poll() is not None
        return all((folder / f"exit-{rank}.json").exists() for rank in self.ranks)

    def _free_port(self) -> int:
        with socket.create_server((self.header["addresses"][self.number], 0)) as server:
            return int(server.getsockname()[1])

    def _environment(self, scratch: Path, folder: Path, clock_offset_ns: int) -> dict[str, str]:
        """Variables of the node's processes: the supervisor's, this node's own, and the launch's."""
        of_launch = {
            ENVIRONMENT: self.launch,
            AGENT: f"{self.launch}.{self.number}",
            NODE: str(self.number),
            ADDRESS: str(self.header["addresses"][self.number]),
            CLOCK: str(clock_offset_ns),
            "TMPDIR": str(scratch),
            start_ranks.FOLDER: str(folder),
            SOCKET: str(scratch / COMMANDS),
        }
        return {**self.header["environment"], **node_variables(os.environ), **of_launch}


def _sleep(process: subprocess.Popen[bytes] | None, seconds: float) -> None:
    """Sleep, at most until the process ends."""
    if process is None:
        time.sleep(seconds)
        return
    with os.fdopen(os.pidfd_open(process.pid)) as ending:
        select.select([ending], [], [], seconds)


def main() -> int:
    """Run the agent; returns its exit code."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--node", type=int)
    options = arguments.parse_args()
    header = json.loads(sys.stdin.buffer.readline() or b"{}")
    if not header:
        return 1  # the coordinator has ended already
    number = node_number(header, options.node)
    if "discovery" in header:
        answer_discovery(header, number)
        return 0
    agent = Agent(header, number)

    def end(signal_number: int, frame: FrameType | None) -> None:
        agent.ended_by = signal.Signals(signal_number).name
        agent.end()

    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, end)
    adopt_orphans()
    threading.Thread(target=_until_input_ends, args=(agent,), name="input", daemon=True).start()
    return agent.run()


def _until_input_ends(agent: Agent) -> None:
    while os.read(0, 4096):
        pass
    agent.end()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
