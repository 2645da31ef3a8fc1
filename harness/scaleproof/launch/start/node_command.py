"""Runs a command in every node of an emulated network that is made for it, outside of any launch."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
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
from scaleproof.rank.process_lifetime import ending_with_this_process


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command on all nodes: the worst exit code, each node's output, and the coordinator's report
    (None: there is none)."""

    code: int
    output: list[str]
    network: dict[str, Any] | None
    log: str
    """The coordinator's output, and the consoles of nodes that printed anything."""


def run_on_nodes(
    nodes: int,
    prepare: Callable[[Path], None],
    coordinator: Callable[[Path], list[str]],
    timeout_s: float,
    keep: Path | None,
) -> CommandResult:
    """`prepare` writes the plan into the folder that all nodes share (`keep`, else a temporary one); `coordinator`
    gives the command that runs the plan. Exit code 124: out of time."""
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
        code, log = _run(ending_with_this_process(coordinator(folder)), {**os.environ, **own}, timeout_s)
        return _result(folder, nodes, code, log)
    finally:
        clean(launch)
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def one_per_node(command: Sequence[str] | Sequence[Sequence[str]], nodes: int) -> list[list[str]]:
    """A list of commands as it is; a single command once for every node."""
    if command and isinstance(command[0], str):
        return [list(map(str, command))] * nodes
    return [list(map(str, of_node)) for of_node in command]


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


def _result(folder: Path, nodes: int, code: int, log: str) -> CommandResult:
    outputs = [_text(folder / f"node-{node}.out") for node in range(nodes)]
    consoles = [
        f"console of node {node}:\n{console}"
        for node in range(nodes)
        if (console := _text(folder / f"node-{node}.console").strip())
    ]
    return CommandResult(code, outputs, read_json(folder / REPORT), "\n".join([log, *consoles]))


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
