"""What benchmarks of two ranks over shared memory have in common: their launch, their calls, and their bounds."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic_ns as now
from typing import Any

import numpy as np

from scaleproof.collectives.group import Group
from scaleproof.core.context import RankContext
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.spec.case import parse_case
from scaleproof.transports.shm.shm import SharedMemory

ALGORITHM = "halving_doubling"
BOUNDS = {"registered": "memory_bandwidth", "plain": "plain_bandwidth"}
"""Buffers, with the program that measures their bound."""

Body = Callable[[RankContext, SharedMemory, Group], Any]


def results_of(experiment: str, size: int, body: Body) -> list[Any]:
    """What `body` returned on each of two ranks of a launch, through JSON."""
    case = parse_case(
        {
            "program": "transfer",
            "suite": "bench",
            "experiment": experiment,
            "arm": "shm",
            "transport": "shm",
            "sizes": [size],
        }
    )
    with TemporaryDirectory() as folder:
        assert run_ranks(case, partial(_connected, body=body, out=Path(folder)), 300) == ["", ""]
        return [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(2)]


def _connected(context: RankContext, body: Body, out: Path) -> None:
    # A fork of this process: in what earlier benchmarks have freed, malloc would find pages of 4 KiB that both share.
    ctypes.CDLL(None).malloc_trim(0)
    transport = SharedMemory.connect(context)
    result = body(context, transport, Group(transport, ALGORITHM))
    (out / f"{context.rank}.json").write_text(json.dumps(result))
    transport.barrier()
    transport.close()


def bound_seconds(module: str, operation: str, size: int) -> float:
    """One launch of the program that measures a bound."""
    command = [sys.executable, "-m", f"scaleproof.calibrate.{module}", str(size)]
    process = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    return float(json.loads(process.stdout)[operation][str(size)])


def fill(buffers: list[np.ndarray], rank: int, number: int) -> None:
    """Ones in the first call, which is checked; zeros afterwards, which stay zeros under repeated sums."""
    if number <= 1:
        buffers[0].fill(1 - number)
        buffers[1].fill(0)


def check(operation: str, buffers: list[np.ndarray]) -> None:
    """The sum of two ones, or the ones of the peer."""
    result = buffers[0] if operation == "all_reduce" else buffers[1]
    assert (result == (2 if operation == "all_reduce" else 1)).all()


def all_reduce(group: Group, buffer: np.ndarray) -> tuple[int, int]:
    """Start and end of one all-reduce, ns."""
    start = now()
    group.all_reduce(buffer).wait()
    return start, now()
