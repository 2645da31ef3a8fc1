"""Ranks started by torchrun, with one parent process per rank: the command of one node."""

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
    """`ranks` and `addresses`: of all nodes; `port`: of the first node, where torchrun's processes meet. `rendezvous`:
    `static`, or the elastic `c10d`, which numbers nodes in the order in which they join. `worker`: module and
    arguments. torchrun restarts no rank: failures are the supervisor's task."""
    program = Path(sys.executable).parent / "torchrun"
    command = [
        str(program),
        f"--nnodes={len(ranks)}",
        f"--nproc-per-node={len(ranks[node])}",
        "--max-restarts=0",
        f"--local-addr={addresses[node]}",
    ]
    if rendezvous == STATIC:
        command += [f"--node-rank={node}", f"--master-addr={addresses[0]}", f"--master-port={port}"]
    else:
        command += [f"--rdzv-backend={rendezvous}", f"--rdzv-endpoint={addresses[0]}:{port}", f"--rdzv-id={launch}"]
        command += [f"--rdzv-conf=is_host={int(node == 0)}"]
    return [*command, "-m", *worker]
