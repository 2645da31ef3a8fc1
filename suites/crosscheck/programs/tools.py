"""Runs an external tool: it is found by PATH, ends with this rank, and its output is returned."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from scaleproof.rank import process_lifetime

OUTPUT_CHARACTERS = 400
"""Characters from the end of a tool's output that an error message quotes."""


class ToolFailed(RuntimeError):
    """A tool failed, or its output could not be understood."""


def obstacle(name: str, advice: str) -> tuple[str, str] | None:
    """Reason and advice when a tool is not in PATH."""
    return None if shutil.which(name) else (f"{name} is not installed", advice)


def debian(package: str) -> str:
    """Advice to install a Debian package."""
    return f"type `apt-get install {package}` as root"


def tied(command: Sequence[str]) -> list[str]:
    """The command as a process that the kernel kills when this process ends. It starts without site packages, in a
    hundredth of a second."""
    return [sys.executable, "-I", "-S", str(process_lifetime.__file__), str(os.getpid()), *command]


def start(command: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Starts a tool. It inherits the launch's environment, by which the supervisor finds processes of a killed
    rank."""
    return subprocess.Popen(
        tied(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )


def finish(process: subprocess.Popen[str], timeout_s: float) -> str:
    """Waits for a tool and returns its output. Raises ToolFailed when it failed or took too long."""
    name = str(process.args[5]) if isinstance(process.args, list) else "the tool"
    try:
        printed, complained = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise ToolFailed(f"{name} did not end within {timeout_s:g} s") from None
    if process.returncode:
        raise ToolFailed(
            f"{name} ended with code {process.returncode}: {(complained or printed).strip()[-OUTPUT_CHARACTERS:]}"
        )
    return printed


def run_tool(command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None) -> str:
    """Runs a tool and returns its output."""
    return finish(start(command, env), timeout_s)
