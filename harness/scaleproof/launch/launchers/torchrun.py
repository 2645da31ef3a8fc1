"""Ranks started by torchrun, one parent process each: the command of one node."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

STATIC = "static"


def torchrun(
    launch: str,
    node: int,
    ranks: Sequence[Sequence[int]],
    addresses: Sequence[str],
    port: int,
    rendezvous: str,
    worker: Sequence[str],
) -> list[str]:
    """`ranks` and `addresses` of all nodes, `port` of the first one on which torchrun's processes meet: at a place that
    is told to each (`static`), or by the elastic rendezvous of `c10d`, which numbers nodes as they come. `worker`:
    module and arguments. Nothing is restarted: the supervisor sees to that."""
    program = Path(sys.executable).parent / "torchrun"
    words = [
        str(program),
        f"--nnodes={len(ranks)}",
        f"--nproc-per-node={len(ranks[node])}",
        "--max-restarts=0",
        f"--local-addr={addresses[node]}",
    ]
    if rendezvous == STATIC:
        words += [f"--node-rank={node}", f"--master-addr={addresses[0]}", f"--master-port={port}"]
    else:
        words += [f"--rdzv-backend={rendezvous}", f"--rdzv-endpoint={addresses[0]}:{port}", f"--rdzv-id={launch}"]
        words += [f"--rdzv-conf=is_host={int(node == 0)}"]
    return [*words, "-m", *worker]
