"""The process that starts a launch's ranks, and the word on which it begins."""

from __future__ import annotations

import select
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from scaleproof.core.go_signal import GO, WAIT_FOR_GO
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.adopted_process import LauncherProcess
from scaleproof.launch.launchers.launcher_contract import Launcher, scratch, waits_for_go
from scaleproof.launch.start.warm_parents import WarmParents


@dataclass(slots=True)
class StartedLauncher:
    """`gate`: to a launcher that begins when told; None: it begins by itself. `imports_s`: from its start until all was
    imported."""

    process: LauncherProcess
    gate: socket.socket | None
    started: float
    imports_s: float | None = None

    @property
    def has_imported(self) -> bool:
        """Whether it waits for the word, or needs none."""
        return self.imports_s is not None

    def cpu_s(self) -> float:
        """Processor time of it and its descendants so far."""
        used = 0.0
        with suppress(psutil.Error):
            own = psutil.Process(self.process.pid)
            for each in (own, *own.children(recursive=True)):
                with suppress(psutil.Error):
                    used += sum(each.cpu_times()[:4])  # user and system, also of ended children
        return used

    def begin(self) -> None:
        """Let it fork the ranks. One that has ended is noticed by who watches it."""
        if self.gate is None:
            return
        with self.gate as gate:
            try:
                gate.sendall(GO)
            except OSError:
                return


def start(
    folder: Path,
    launch_spec: LaunchSpec,
    launcher: Launcher,
    variables: dict[str, str],
    warm: WarmParents | None = None,
) -> StartedLauncher:
    """Start the launcher of a launch in its folder. `warm`: it is forked from one of these if it can be."""
    scratch(launch_spec.launch).mkdir(mode=0o700)
    command, started = launcher.command(folder, launch_spec), time.monotonic()
    if not waits_for_go(launcher):
        with _log(folder) as log:
            return StartedLauncher(_process(command, variables, log, subprocess.DEVNULL), None, started, 0.0)
    command = [*command, WAIT_FOR_GO]
    gate, its_gate = socket.socketpair()
    with its_gate, _log(folder) as log:
        files = [its_gate.fileno(), log.fileno()]
        forked = warm.fork(folder, launch_spec, command, variables, files) if warm is not None else None
        process = forked or _process(command, variables, log, its_gate.fileno())
    return StartedLauncher(process, gate, started)


def _log(folder: Path) -> IO[bytes]:
    return (folder / "launcher.log").open("wb")


def _process(command: list[str], variables: dict[str, str], log: IO[bytes], stdin: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=variables, stdin=stdin, stdout=log, stderr=log, start_new_session=True)


def wait_for_imports(launchers: Sequence[StartedLauncher], until: float) -> None:
    """Wait until each has imported everything or has ended. `until`: monotonic clock in s."""
    waiting = {each.gate: each for each in launchers if each.gate is not None and each.imports_s is None}
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return
        for gate in ready:
            gate.recv(1)  # IMPORTED, or nothing from one that has ended
            each = waiting.pop(gate)
            each.imports_s = time.monotonic() - each.started
