"""Ranks started by MPICH's mpiexec on this machine, in the environment that has it, one parent process each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.rank.orders import Orders
from harness.transports.mpich import ON_ONE_MACHINE, STARTED, home


def started(ranks: int, words: list[str]) -> list[str]:
    """mpiexec, and what each of its processes runs in the Python beside it."""
    # Inside a batch job it would otherwise start them by the job's own means.
    options = ["-launcher", "fork", "-rmk", "user", "-hosts", "localhost", "-bind-to", "none", "-n", str(ranks)]
    return [str(home() / "bin" / "mpiexec"), *options, str(home() / "bin" / "python"), *words]


class Mpich:
    """`mpiexec` of the environment with MPICH."""

    def command(self, folder: Path, orders: Orders) -> list[str]:
        """mpiexec tied to the supervisor's life; each of its processes forks the rank whose number it got."""
        words = ["-m", "harness.rank.parent", str(folder), "--rank-from", STARTED]
        return [sys.executable, "-m", "harness.rank.tie", str(os.getpid()), *started(int(orders.case["ranks"]), words)]

    def environment(self, folder: Path, orders: Orders) -> dict[str, str]:
        """The path of the bytes."""
        return dict(ON_ONE_MACHINE)
