"""Ranks started by Open MPI's mpirun, one parent process each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.launch.base import scratch
from harness.rank.orders import Orders


def options(ranks: int, folder: Path) -> list[str]:
    """What mpirun is told: that many ranks, not bound to cores, over shared memory whose backing files lie in `folder`."""
    # Without the tcp module no rank listens on any port; shared memory is what one machine uses anyway.
    path = ["--mca", "pml", "ob1", "--mca", "btl", "self,sm", "--mca", "btl_sm_backing_directory", str(folder)]
    return ["-n", str(ranks), "--oversubscribe", "--bind-to", "none", *path]


class Mpirun:
    """`mpirun` of this Python's environment. Its session and backing files lie in the scratch of the launch."""

    def command(self, folder: Path, orders: Orders) -> list[str]:
        """mpirun tied to the supervisor's life; each of its processes forks the rank whose number it got."""
        program = Path(sys.executable).parent / "mpirun"
        rank = [sys.executable, "-m", "harness.rank.parent", str(folder), "--rank-from", "OMPI_COMM_WORLD_RANK"]
        return [sys.executable, "-m", "harness.rank.tie", str(os.getpid()), str(program), *options(int(orders.case["ranks"]), scratch(orders.launch)), *rank]

    def environment(self, folder: Path, orders: Orders) -> dict[str, str]:
        """Root is allowed: containers and continuous integration run as root."""
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
