"""How an agent starts the ranks of its node: one parent forks all of them, or mpirun, mpiexec or torchrun start a
parent for each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scaleproof.launch.launchers import mpich, mpirun
from scaleproof.launch.launchers.torchrun import torchrun

FOLDER = "SCALEPROOF_FOLDER"
"""Environment variable: the launch's folder on a node; without a shared file system every node has its own."""
BY_FIRST_NODE = ("mpirun", "mpich")
"""Launchers whose command runs on the first node and starts the ranks of all nodes."""
REMOTE_COMMAND = "scaleproof.launch.nodes.remote_command"


def command(header: Mapping[str, Any], node: int, folder: Path, scratch: Path, port: int) -> list[str] | None:
    """The command that the agent of a node runs; None where another node's command starts the ranks of this one."""
    ranks: list[list[int]] = header["ranks"]
    own = [str(rank) for rank in ranks[node]]
    if header["inner"] in BY_FIRST_NODE:
        if node:
            return None
        hosts = {plain(host): len(of_host) for host, of_host in zip(header["hosts"], ranks, strict=True)}
        return _by_mpi(header["inner"], hosts, header["interface"], scratch)
    if header["inner"] == "torchrun":
        # LOCAL_RANK, not torchrun's RANK: its elastic rendezvous numbers nodes in the order in which they join.
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
    """The command that starts the ranks of all nodes."""
    ranks = sum(hosts.values())
    on_one_node = len(hosts) == 1
    if library == "mpich":
        options = mpich.options(ranks) if on_one_node else mpich.options_over(hosts, interface)
        return mpich.started(options, mpich.parent(f"${FOLDER}"), REMOTE_COMMAND)
    options = mpirun.options(ranks, scratch) if on_one_node else mpirun.options_over(hosts, interface, REMOTE_COMMAND)
    return mpirun.started(options, f"${FOLDER}")


def plain(host: str) -> str:
    """A host's name without the user's."""
    return host.rpartition("@")[2]
