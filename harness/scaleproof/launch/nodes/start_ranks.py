"""How an agent starts the ranks of its node: by one parent that forks them, or by the processes of mpirun, mpiexec or
torchrun, a parent for each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scaleproof.launch.launchers import mpich, mpirun
from scaleproof.launch.launchers.torchrun import torchrun

FOLDER = "SCALEPROOF_FOLDER"
"""The launch's folder as a node has it: where files are sent every node has its own."""
BY_FIRST_NODE = ("mpirun", "mpich")
"""What one node runs to start the ranks of all."""
REMOTE_COMMAND = "scaleproof.launch.nodes.remote_command"


def command(header: Mapping[str, Any], node: int, folder: Path, scratch: Path, port: int) -> list[str] | None:
    """What the agent of a node runs; None where another node's command starts what runs here."""
    ranks: list[list[int]] = header["ranks"]
    own = [str(rank) for rank in ranks[node]]
    if header["inner"] in BY_FIRST_NODE:
        if node:
            return None
        hosts = {plain(host): len(some) for host, some in zip(header["hosts"], ranks, strict=True)}
        return _by_mpi(header["inner"], hosts, header["interface"], scratch)
    if header["inner"] == "torchrun":
        # LOCAL_RANK, not torchrun's RANK: its elastic rendezvous numbers nodes in the order in which they come.
        worker = [
            "scaleproof.rank.fork_ranks",
            str(folder),
            "--bind",
            "--attended",
            "--rank-from",
            "LOCAL_RANK",
            "--ranks",
            *own,
        ]
        return torchrun(header["launch"], node, ranks, header["addresses"], port, header["rendezvous"], worker)
    return [
        sys.executable,
        "-m",
        "scaleproof.rank.fork_ranks",
        str(folder),
        "--creator",
        str(os.getpid()),
        "--bind",
        "--ranks",
        *own,
    ]


def _by_mpi(library: str, hosts: Mapping[str, int], interface: str, scratch: Path) -> list[str]:
    """What starts the ranks of all nodes."""
    one = sum(hosts.values()) if len(hosts) == 1 else 0
    if library == "mpich":
        options = mpich.options(one) if one else mpich.options_over(hosts, interface)
        return mpich.started(options, mpich.parent(f"${FOLDER}"), REMOTE_COMMAND)
    return mpirun.started(
        mpirun.options(one, scratch) if one else mpirun.options_over(hosts, interface, REMOTE_COMMAND), f"${FOLDER}"
    )


def plain(host: str) -> str:
    """A host's name without the user's."""
    return host.rpartition("@")[2]
