"""Runs an instrument that others wrote: found by PATH, tied to this rank's life, its output handed back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from scaleproof.rank import process_lifetime

SAID = 400
"""Characters of a tool's last words that an error repeats."""


class ToolFailed(RuntimeError):
    """A tool ended badly, or said something that is not its usual output."""


def obstacle(name: str, advice: str) -> tuple[str, str] | None:
    """Reason and advice when a tool is not in PATH."""
    return None if shutil.which(name) else (f"{name} is not installed", advice)


def debian(package: str) -> str:
    """What to type for a Debian package."""
    return f"type `apt-get install {package}` as root"


def tied(command: Sequence[str]) -> list[str]:
    """The command as a process that the kernel kills with this one. Without site packages: the tie itself takes a
    hundredth of a second."""
    return [sys.executable, "-I", "-S", str(process_lifetime.__file__), str(os.getpid()), *command]


def start(command: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a tool. It inherits the launch's environment, by which the supervisor finds what a killed rank leaves."""
    return subprocess.Popen(
        tied(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )


def finish(process: subprocess.Popen[str], timeout_s: float) -> str:
    """What a tool printed, once it has ended; ToolFailed when it ended badly or not in time."""
    name = str(process.args[5]) if isinstance(process.args, list) else "the tool"
    try:
        printed, complained = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise ToolFailed(f"{name} did not end within {timeout_s:g} s") from None
    if process.returncode:
        raise ToolFailed(f"{name} ended with code {process.returncode}: {(complained or printed).strip()[-SAID:]}")
    return printed


def run_tool(command: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None) -> str:
    """Start and finish."""
    return finish(start(command, env), timeout_s)
