"""`python -m scaleproof.launch.nodes.node_agent`: on one node of an allocation, answers node discovery, or runs the
ranks of a launch.

What it is to do comes as one line of JSON on its input; when that ends, or the connection to the launch's keeper does,
nobody is left to run ranks for."""

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
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from scaleproof.core.atomic_write import write_json
from scaleproof.core.handshake import Refused, prove
from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.core.location import ADDRESS, CLOCK, NODE
from scaleproof.launch.launchers.launcher_contract import node_scratch
from scaleproof.launch.nodes import start_ranks
from scaleproof.launch.nodes.coordinator_link import BEAT_S, UNABLE, Link, LinkLost, failed_agent_line
from scaleproof.launch.nodes.discovery import NodeAnswer, sees, told
from scaleproof.launch.nodes.file_transfer import FileTransfer
from scaleproof.launch.nodes.forwarded_variables import kept
from scaleproof.launch.nodes.remote_command import PLACE, RemoteCommands
from scaleproof.launch.teardown import AGENT, clean_node, owned, sweep
from scaleproof.rank.process_lifetime import adopt_orphans
from scaleproof.rank.status_publisher import StatusPublisher
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.host import boot_id

REMOTE_COMMANDS = "errands"
LEAVE_S = 2.0
"""After a launch that went well: time for what is left of it to end."""


@dataclass(slots=True)
class Agent:
    """One node's part in one launch."""

    header: dict[str, Any]
    number: int
    over: threading.Event = field(default_factory=threading.Event)
    ready: threading.Event = field(default_factory=threading.Event)
    code: int = 255
    why: str = ""
    """What keeps this node from its part."""
    told: str = ""
    """The signal by which somebody else ended this agent."""
    port: int = 0
    """Of the first node, on which processes of torchrun meet."""
    variables: dict[str, str] = field(default_factory=dict)
    errands: RemoteCommands | None = None

    def run(self) -> int:
        """From the connection to the keeper until the launch is over; whatever happens nothing of it stays on this
        node."""
        launch = str(self.header["launch"])
        scratch = node_scratch(launch, self.number)
        link = None
        try:
            scratch.mkdir(parents=True, mode=0o700)
            owned(scratch)
            link = self._connect(launch)
            folder = scratch / "launch" if self.header["streamed"] else Path(self.header["folder"])
            transfer = FileTransfer(
                folder, link, list(self.header["ranks"][self.number]), bool(self.header["streamed"]), self.number
            )
            threading.Thread(target=self._listen, args=(link, transfer), name="listen", daemon=True).start()
            self.variables = self._variables(scratch, folder, transfer.clock_offset_ns())
            if self.header["inner"] in start_ranks.BY_FIRST_NODE:
                self.errands = RemoteCommands(link, scratch / REMOTE_COMMANDS)
            link.send("ready", port=self._free_port())
            self._wait(link)
            self._work(folder, scratch, link, transfer)
            while not self.over.wait(BEAT_S):
                link.send("beat")
        except (LinkLost, Refused) as lost:
            self._say(f"the coordinator of the launch: {lost}")
        except OSError as error:  # no room, no program, no way to the keeper
            self.why = f"{type(error).__name__}: {error}"
            if link is None:
                address, port = self.header["keeper"]
                self._say(
                    f"its agent found no way to the launch, by its scratch folder and to {address} port {port}: {self.why}"
                )
                self.code = UNABLE
        finally:
            left = clean_node(launch, self.number, LEAVE_S if self.code == 0 else 0.0)
            if link is not None:
                with suppress(LinkLost):  # the keeper went first
                    link.send("gone", left=left[:20], why=self.why, told=self.told)
                link.close()
        return self.code

    def _say(self, why: str) -> None:
        """To the launch's log, where there is no connection to the coordinator."""
        print(failed_agent_line(self.number, why), file=sys.stderr, flush=True)

    def _connect(self, launch: str) -> Link:
        address, port = self.header["keeper"]
        opened = socket.create_connection((address, port), timeout=30.0)
        prove(opened, self.header["token"], launch, self.number)
        return Link(opened)

    def _listen(self, link: Link, transfer: FileTransfer) -> None:
        """In a thread: what the keeper says, until it says no more."""
        try:
            while True:
                message, body = link.receive()
                if message["kind"] == "go":
                    self.port = int(message["port"])
                    self.ready.set()
                elif message["kind"] == "end":
                    break
                elif message["kind"] == "errand" and self.errands is not None:
                    threading.Thread(target=self.errands.run, args=(message, self.variables), daemon=True).start()
                elif message["kind"] == "errand_done" and self.errands is not None:
                    self.errands.done(message)
                else:
                    transfer.receive(message, body)
        except (LinkLost, OSError, ValueError, KeyError):
            pass  # whatever it was: nobody says any more what is to be done
        self.end()

    def end(self) -> None:
        """The launch is over for this node."""
        self.over.set()
        self.ready.set()

    def _wait(self, link: Link) -> None:
        """Until all nodes are ready."""
        while not self.ready.wait(BEAT_S):
            link.send("beat")
        if self.over.is_set():
            raise LinkLost("it ended the launch before it began")

    def _work(self, folder: Path, scratch: Path, link: Link, transfer: FileTransfer) -> None:
        """Run the node's command to its end, telling meanwhile that this node is there."""
        os.environ.update(self.variables)  # where MPICH is, and this node's place, stand there
        command = start_ranks.command(self.header, self.number, folder, scratch, self.port)
        if self.header["inner"] != "fork":
            StatusPublisher(folder, int(self.header["world"])).attend(self.header["ranks"][self.number])
        process = None if command is None else subprocess.Popen(command, env=self.variables, stdin=subprocess.DEVNULL)
        transfer.start()
        beaten = 0.0
        while not self.over.is_set() and not self._ended(process, folder):
            _sleep(process, transfer.send_changes())
            if time.monotonic() - beaten > BEAT_S:
                link.send("beat")
                beaten = time.monotonic()
        if self.over.is_set():
            if (
                process is not None
            ):  # first, so that it does not tell how its ranks ended: they die with it, by our hand
                process.kill()
                process.wait()
            return
        code = 0 if process is None else process.returncode
        self.code = code if code >= 0 else 128 - code
        self._tell_for_ranks(folder)
        transfer.send_rest()
        link.send("done", code=self.code)

    def _ended(self, process: subprocess.Popen[bytes] | None, folder: Path) -> bool:
        """Whether the command has; without one, all ranks here."""
        if process is not None:
            return process.poll() is not None
        return all((folder / f"exit-{rank}.json").exists() for rank in self.header["ranks"][self.number])

    def _free_port(self) -> int:
        with socket.create_server((self.header["addresses"][self.number], 0)) as taken:
            return int(taken.getsockname()[1])

    def _variables(self, scratch: Path, folder: Path, offset: int) -> dict[str, str]:
        launch, address = str(self.header["launch"]), str(self.header["addresses"][self.number])
        own = {
            ENVIRONMENT: launch,
            AGENT: f"{launch}.{self.number}",
            NODE: str(self.number),
            ADDRESS: address,
            CLOCK: str(offset),
            "TMPDIR": str(scratch),
        }
        return {
            **self.header["environment"],
            **kept(os.environ),
            **own,
            start_ranks.FOLDER: str(folder),
            PLACE: str(scratch / REMOTE_COMMANDS),
        }

    def _tell_for_ranks(self, folder: Path) -> None:
        """Of ranks whose parent ended without a word of them."""
        host = self.header["hosts"][self.number]
        for rank in self.header["ranks"][self.number]:
            if not (folder / f"exit-{rank}.json").exists():
                message = f"node {host}: the parent ended with code {self.code} and did not tell how its ranks ended"
                end = {
                    "pid": 0,
                    "exit_code": None,
                    "signal": int(signal.SIGKILL),
                    "at_ns": time.monotonic_ns(),
                    "code": "start_failed",
                    "message": message,
                    "node": host,
                }
                write_json(folder / f"exit-{rank}.json", end)


def _sleep(process: subprocess.Popen[bytes] | None, seconds: float) -> None:
    """Or until the process ends."""
    if process is None:
        time.sleep(seconds)
        return
    with os.fdopen(os.pidfd_open(process.pid)) as ending:
        select.select([ending], [], [], seconds)


def answer(header: dict[str, Any], number: int) -> None:
    """The roll call: one line on the output."""
    sweep()
    addresses = {
        name: entry.address
        for name, entries in psutil.net_if_addrs().items()
        for entry in reversed(entries)
        if entry.family == socket.AF_INET
    }
    cores = sorted(os.sched_getaffinity(0))
    found = NodeAnswer(
        header["hosts"][number],
        boot_id(),
        machine_id(),
        cores,
        addresses,
        _own(header["hosts"][number], addresses),
        code_digest(),
        sees(header, number),
    )
    print(told(found, number), flush=True)


def _own(host: str, addresses: dict[str, str]) -> str:
    """The interface with the address that the node's name has, else the one by which it would reach another network."""
    for name in (host.rpartition("@")[2], socket.gethostname()):
        try:
            wanted = {entry[4][0] for entry in socket.getaddrinfo(name, None, socket.AF_INET)}
        except OSError:
            continue
        for interface, address in addresses.items():
            if address in wanted and not address.startswith("127."):
                return interface
    try:
        routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    except OSError:
        return ""
    return next((fields[0] for fields in routes if fields[1] == "00000000" and fields[0] in addresses), "")


def number_of(header: dict[str, Any], asked: int | None) -> int:
    """This node's number among the hosts: as told, or by the name that Slurm gives it."""
    if asked is not None:
        return asked
    hosts: list[str] = header["hosts"]
    name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    if name not in hosts:
        raise SystemExit(f"node {name} is none of {', '.join(hosts)}")
    return hosts.index(name)


def main() -> int:
    """The worst exit code of what ran here."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--node", type=int)
    given = arguments.parse_args()
    header = json.loads(sys.stdin.buffer.readline() or b"{}")
    if not header:
        return 1  # whoever asked has gone already
    number = number_of(header, given.node)
    if "roll_call" in header:
        answer(header, number)
        return 0
    agent = Agent(header, number)

    def ended(signal_number: int, frame: FrameType | None) -> None:
        agent.told = signal.Signals(signal_number).name
        agent.end()

    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, ended)
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
