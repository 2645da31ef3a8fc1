"""`python -m harness.launch.nodes.agent`: on one node of an allocation, answers the roll call, or has the ranks of a launch run there.

What it is to do comes as one line of JSON on its input; when that ends, or the connection to the launch's keeper does, nobody is left to run ranks for."""

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

from harness.fabric.plan import ADDRESS, CLOCK, NODE, put
from harness.launch.base import node_scratch
from harness.launch.nodes.courier import Courier
from harness.launch.nodes.keeper import OWN
from harness.launch.nodes.link import BEAT_S, Link, LinkLost
from harness.launch.nodes.roll_call import Answer, sees, told
from harness.launch.teardown import AGENT, clean_node, owned, sweep
from harness.rank.orders import ENVIRONMENT
from harness.rank.tie import adopt_orphans
from harness.record.digest import code_digest, machine_id
from harness.record.host import boot_id
from harness.transports._handshake import Refused, prove

LOOK_S = 0.02
"""How often the agent looks for new files and for the end of its processes."""
TERM_S = 0.3


@dataclass(slots=True)
class Agent:
    """One node's part in one launch."""

    header: dict[str, Any]
    number: int
    over: threading.Event = field(default_factory=threading.Event)
    ready: threading.Event = field(default_factory=threading.Event)
    code: int = 255

    def run(self) -> int:
        """From the connection to the keeper until the launch is over; whatever happens nothing of it stays on this node."""
        launch = str(self.header["launch"])
        scratch = node_scratch(launch, self.number)
        link = None
        try:
            scratch.mkdir(parents=True, mode=0o700)
            owned(scratch)
            link = self._connect(launch)
            folder = scratch / "launch" if self.header["streamed"] else Path(self.header["folder"])
            courier = Courier(folder, link, list(self.header["ranks"][self.number]), bool(self.header["streamed"]), self.number)
            threading.Thread(target=self._listen, args=(link, courier), name="listen", daemon=True).start()
            offset = courier.clock()
            self._wait(self.ready)
            self._work(folder, scratch, offset, link, courier)
            while not self.over.wait(BEAT_S):
                link.send("beat")
        except (LinkLost, Refused, OSError) as why:
            print(f"node {self.header['hosts'][self.number]}: the keeper of the launch: {why}", file=sys.stderr, flush=True)
        finally:
            left = clean_node(launch, self.number, TERM_S)
            if link is not None:
                _say_goodbye(link, left)
        return self.code

    def _connect(self, launch: str) -> Link:
        address, port = self.header["keeper"]
        opened = socket.create_connection((address, port), timeout=30.0)
        prove(opened, self.header["token"], launch, self.number)
        return Link(opened)

    def _listen(self, link: Link, courier: Courier) -> None:
        """In a thread: what the keeper says, until it says no more."""
        try:
            while True:
                message, body = link.receive()
                if message["kind"] == "go":
                    self.ready.set()
                elif message["kind"] == "end":
                    break
                else:
                    courier.take(message, body)
        except (LinkLost, OSError, ValueError):
            pass
        self.end()

    def end(self) -> None:
        """The launch is over for this node."""
        self.over.set()
        self.ready.set()

    def _wait(self, event: threading.Event) -> None:
        event.wait()
        if self.over.is_set():
            raise LinkLost("it ended the launch before it began")

    def _work(self, folder: Path, scratch: Path, offset: int, link: Link, courier: Courier) -> None:
        """Run the node's command to its end, telling meanwhile that this node is there."""
        variables = self._variables(scratch, offset)
        process = subprocess.Popen(self._command(folder), env=variables, stdin=subprocess.DEVNULL)
        courier.start()
        beaten = 0.0
        with os.fdopen(os.pidfd_open(process.pid)) as ending:
            while process.poll() is None and not self.over.is_set():
                select.select([ending], [], [], courier.tick())
                if time.monotonic() - beaten > BEAT_S:
                    link.send("beat")
                    beaten = time.monotonic()
        if self.over.is_set():
            process.kill()  # first, so that it does not tell how its ranks ended: they die with it, by our hand
            process.wait()
            return
        self.code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        self._tell_for_ranks(folder)
        courier.last()
        link.send("done", code=self.code)

    def _command(self, folder: Path) -> list[str]:
        ranks = [str(rank) for rank in self.header["ranks"][self.number]]
        return [sys.executable, "-m", "harness.rank.parent", str(folder), "--creator", str(os.getpid()), "--ranks", *ranks]

    def _variables(self, scratch: Path, offset: int) -> dict[str, str]:
        here = {name: value for name, value in os.environ.items() if name.startswith(OWN)}
        launch, address = str(self.header["launch"]), str(self.header["addresses"][self.number])
        own = {ENVIRONMENT: launch, AGENT: f"{launch}.{self.number}", NODE: str(self.number), ADDRESS: address, CLOCK: str(offset), "TMPDIR": str(scratch)}
        return {**self.header["environment"], **here, **own}

    def _tell_for_ranks(self, folder: Path) -> None:
        """Of ranks whose parent ended without a word of them."""
        host = self.header["hosts"][self.number]
        for rank in self.header["ranks"][self.number]:
            if not (folder / f"exit-{rank}.json").exists():
                message = f"node {host}: the parent ended with code {self.code} and did not tell how its ranks ended"
                end = {"pid": 0, "exit_code": None, "signal": int(signal.SIGKILL), "at_ns": time.monotonic_ns(), "code": "start_failed", "message": message}
                put(folder / f"exit-{rank}.json", end)


def _say_goodbye(link: Link, left: list[str]) -> None:
    with suppress(LinkLost):  # the keeper went first
        link.send("gone", left=left[:20])
    link.close()


def answer(header: dict[str, Any], number: int) -> None:
    """The roll call: one line on the output."""
    sweep()
    addresses = {
        name: entry.address for name, entries in psutil.net_if_addrs().items() for entry in reversed(entries) if entry.family == socket.AF_INET
    }  # fmt: skip
    cores = sorted(os.sched_getaffinity(0))
    found = Answer(
        header["hosts"][number], boot_id(), machine_id(), cores, addresses, _own(header["hosts"][number], addresses), code_digest(), sees(header, number)
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
