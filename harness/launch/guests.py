"""Launches and single commands in guests: from a case to guests.json, and to the keeper that boots its nodes."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
from harness.fabric.guests import keeper_command
from harness.fabric.plan import REPORT, GuestPlan, take
from harness.launch.base import Launcher, ranks_of, scratch
from harness.launch.netns import InNamespaces
from harness.launch.teardown import clean
from harness.rank.orders import ENVIRONMENT, Orders
from harness.spec import registry


def launcher_of(fabric: str, launcher: str) -> Launcher:
    """What starts a case's ranks: in guests and on nodes of namespaces the keeper, which starts them on every node."""
    on_nodes: dict[str, Launcher] = {"guests": InGuests(), "netns": InNamespaces()}
    started: Launcher = on_nodes[fabric] if fabric in on_nodes else registry.load("launcher", launcher)()
    return started


class InGuests:
    """One keeper, which boots the nodes and starts a parent in each."""

    def command(self, folder: Path, orders: Orders) -> list[str]:
        """Writes guests.json; the keeper's life hangs on the supervisor's."""
        nodes, ranks = int(orders.case.get("nodes", 1)), int(orders.case["ranks"])
        mine = [ranks_of(node, nodes, ranks) for node in range(nodes)]
        parent = [sys.executable, "-m", "harness.rank.parent", str(folder), "--ranks"]
        GuestPlan(
            nodes=nodes, commands=[[*parent, *map(str, some)] for some in mine], ranks=mine, kind=str(orders.case.get("guest", "uml")),
            link_mbit=orders.case.get("link_mbit"), link_delay_ms=float(orders.case.get("link_delay_ms") or 0),
            capture=orders.case.get("tracing") == "full",
        ).write(folder)  # fmt: skip
        return [sys.executable, "-m", "harness.rank.tie", str(os.getpid()), *keeper_command(sys.executable, folder)]

    def environment(self, folder: Path, orders: Orders) -> dict[str, str]:
        """Nothing of its own."""
        return {}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did in guests: the worst exit code, each node's output, and the keeper's report (None when it left none)."""

    code: int
    output: list[str]
    network: dict[str, Any] | None
    log: str
    """What the keeper said, and the consoles of nodes that said anything."""


def run_in_guests(command: Sequence[str] | Sequence[Sequence[str]], *, timeout_s: float = 120.0, keep: Path | None = None, **plan: Any) -> Ran:
    """Run a command in every node of a network of guests (or one command per node), in this working directory with this environment.

    Processes find SCALEPROOF_NODE, SCALEPROOF_ADDRESS (node n has fabric.plan.address(n)), eth0 and rxe0; SCALEPROOF_SHARED is a folder that all nodes and
    this machine share (`keep`, else a temporary one). `plan`: fields of GuestPlan: nodes, kind, memory_mib, link_mbit, link_delay_ms, capture. Exit code 124:
    out of time."""
    launch, nodes = secrets.token_hex(8), int(plan.pop("nodes", 1))
    commands = [list(map(str, command))] * nodes if command and isinstance(command[0], str) else [list(map(str, each)) for each in command]
    folder = Path(tempfile.mkdtemp(prefix="scaleproof-guests-")) if keep is None else keep.resolve()
    try:
        scratch(launch).mkdir(mode=0o700)
        GuestPlan(nodes=nodes, commands=commands, **plan).write(folder)
        paths = [str(Path(harness.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        own = {ENVIRONMENT: launch, "TMPDIR": str(scratch(launch)), "PYTHONPATH": os.pathsep.join(paths), "SCALEPROOF_SHARED": str(folder)}
        tied = [sys.executable, "-m", "harness.rank.tie", str(os.getpid()), *keeper_command(sys.executable, folder)]
        return _ran(folder, nodes, *_run(tied, {**os.environ, **own}, timeout_s))
    finally:
        clean(launch)
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], variables: dict[str, str], timeout_s: float) -> tuple[int, str]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        return code, log.read().decode(errors="replace")


def _ran(folder: Path, nodes: int, code: int, log: str) -> Ran:
    outputs = [_text(folder / f"node-{node}.out") for node in range(nodes)]
    consoles = [f"console of node {node}:\n{said}" for node in range(nodes) if (said := _text(folder / f"node-{node}.console").strip())]
    return Ran(code, outputs, take(folder / REPORT), "\n".join([log, *consoles]))


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
