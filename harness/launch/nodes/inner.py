"""How an agent starts the ranks of its node: by one parent that forks them, or by the processes of mpirun or torchrun, a parent for each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.launch.mpirun import options, options_over, started
from harness.launch.torchrun import torchrun

FOLDER = "SCALEPROOF_FOLDER"
"""The launch's folder as a node has it: where files are sent every node has its own."""
ERRAND = f"{sys.executable} -m harness.launch.nodes.errand"


def command(header: Mapping[str, Any], node: int, folder: Path, scratch: Path, port: int) -> list[str] | None:
    """What the agent of a node runs; None where another node's command starts what runs here."""
    ranks: list[list[int]] = header["ranks"]
    mine = [str(rank) for rank in ranks[node]]
    if header["inner"] == "mpirun":
        if node:
            return None
        hosts = {plain(host): len(some) for host, some in zip(header["hosts"], ranks, strict=True)}
        told = options(len(ranks[0]), scratch) if len(hosts) == 1 else options_over(hosts, header["interface"], ERRAND)
        return started(told, f"${FOLDER}")
    if header["inner"] == "torchrun":
        # By the place on the node, not by torchrun's RANK: its elastic rendezvous numbers nodes as they come.
        worker = ["harness.rank.parent", str(folder), "--bind", "--attended", "--rank-from", "LOCAL_RANK", "--ranks", *mine]
        return torchrun(header["launch"], node, ranks, header["addresses"], port, header["rendezvous"], worker)
    return [sys.executable, "-m", "harness.rank.parent", str(folder), "--creator", str(os.getpid()), "--bind", "--ranks", *mine]


def plain(host: str) -> str:
    """A host's name without the user's."""
    return host.rpartition("@")[2]
