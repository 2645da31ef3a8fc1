"""A command in every node of a network that is made for it, outside of any launch: how it is started, ended, and what
it leaves."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleproof.core.atomic_write import read_json
from scaleproof.core.launch_spec import ENVIRONMENT
from scaleproof.fabric.guests.guest_plan import REPORT
from scaleproof.launch.launchers.launcher_contract import scratch
from scaleproof.launch.teardown import clean
from scaleproof.paths import IMPORT_ROOT


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command did on nodes: the worst exit code, each node's output, and the coordinator's report (None:
    there is none)."""

    code: int
    output: list[str]
    network: dict[str, Any] | None
    log: str
    """What the coordinator said, and the consoles of nodes that said anything."""


def run_on_nodes(
    nodes: int,
    prepare: Callable[[Path], None],
    coordinator: Callable[[Path], list[str]],
    timeout_s: float,
    keep: Path | None,
) -> CommandResult:
    """`prepare` writes the plan into the folder that nodes share (`keep`, else a temporary one), `coordinator` is the
    command that runs it. Exit code 124: out of time."""
    launch = secrets.token_hex(8)
    folder = Path(tempfile.mkdtemp(prefix="scaleproof-nodes-")) if keep is None else keep.resolve()
    try:
        scratch(launch).mkdir(mode=0o700)
        prepare(folder)
        paths = [str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        own = {
            ENVIRONMENT: launch,
            "TMPDIR": str(scratch(launch)),
            "PYTHONPATH": os.pathsep.join(paths),
            "SCALEPROOF_SHARED": str(folder),
        }
        tied = [sys.executable, "-m", "scaleproof.rank.process_lifetime", str(os.getpid()), *coordinator(folder)]
        return _ran(folder, nodes, *_run(tied, {**os.environ, **own}, timeout_s))
    finally:
        clean(launch)
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def one_per_node(command: Sequence[str] | Sequence[Sequence[str]], nodes: int) -> list[list[str]]:
    """The same command for every node, or those that are given."""
    return (
        [list(map(str, command))] * nodes
        if command and isinstance(command[0], str)
        else [list(map(str, each)) for each in command]
    )


def _run(command: list[str], variables: dict[str, str], timeout_s: float) -> tuple[int, str]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        return code, log.read().decode(errors="replace")


def _ran(folder: Path, nodes: int, code: int, log: str) -> CommandResult:
    outputs = [_text(folder / f"node-{node}.out") for node in range(nodes)]
    consoles = [
        f"console of node {node}:\n{said}"
        for node in range(nodes)
        if (said := _text(folder / f"node-{node}.console").strip())
    ]
    return CommandResult(code, outputs, read_json(folder / REPORT), "\n".join([log, *consoles]))


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
