"""Ends what a launch has started."""

from __future__ import annotations

import subprocess
from pathlib import Path

from scaleproof.core.atomic_write import read_json
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.launch.nodes.coordinator import LEFT
from scaleproof.launch.teardown import clean, end_processes, reap_session

LEAVE_S, LEAVE_NODES_S = 5.0, 30.0
"""Time after the last rank for the launcher to end by itself; that of guests still has to count captured packets."""
TERM_S = 0.3
"""Time between SIGTERM and SIGKILL."""


def tear_down(process: subprocess.Popen[bytes] | None, folder: Path, launch_spec: LaunchSpec) -> list[str]:
    """End all processes of the launch and remove its files outside of the folder; returns what it had left behind."""
    if launch_spec.nodes and process is not None:
        process.terminate()  # the coordinator then makes the agents end all processes on their nodes
        wait_for_launcher(process, LEAVE_NODES_S)
    end_processes(launch_spec.launch, TERM_S)
    if process is not None:
        process.kill()
        process.wait()
        reap_session(process.pid)
    return [*clean(launch_spec.launch), *(read_json(folder / LEFT) or [])]


def wait_for_launcher(process: subprocess.Popen[bytes], within_s: float) -> list[str]:
    """What survived: the launcher, or nothing."""
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return [f"the launcher (process {process.pid})"]
    return []
