"""Ranks without a supervisor, for tests and benchmarks: forks processes that share a temporary folder."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from scaleproof.core.board import Board
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import Recorder
from scaleproof.core.rendezvous import Rendezvous
from scaleproof.spec.case import AnyCase


def run_ranks(case: AnyCase, body: Callable[[RankContext], None], timeout_s: float = 60.0) -> list[str]:
    """Fork `case.ranks` processes that each run `body(context)`; returns each rank's error text ('' when it succeeded).
    Kills all at the deadline."""
    with tempfile.TemporaryDirectory(prefix="scaleproof-test-") as name:
        folder = Path(name)
        (folder / "rendezvous").mkdir()
        Board(folder / "board", case.ranks).close()
        launch_id, token = secrets.token_hex(8), secrets.token_hex(16)
        pids = [_fork(case, rank, folder, launch_id, token, body) for rank in range(case.ranks)]
        ended = _join(pids, time.monotonic() + timeout_s)
        return [_outcome(folder, rank, ended.get(pid)) for rank, pid in enumerate(pids)]


def run_some_ranks(
    case: AnyCase,
    ranks: Sequence[int],
    shared: Path,
    address: str,
    body: Callable[[RankContext], None],
    timeout_s: float = 60.0,
) -> list[str]:
    """Like `run_ranks`, for the ranks of one node. `shared`: a folder that all nodes share, empty at the start."""
    (shared / "rendezvous").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scaleproof-test-") as name:
        folder = Path(name)
        Board(folder / "board", case.ranks).close()
        pids = [_fork(case, rank, folder, "test", "test", body, shared / "rendezvous", address) for rank in ranks]
        ended = _join(pids, time.monotonic() + timeout_s)
        return [_outcome(folder, rank, ended.get(pid)) for rank, pid in zip(ranks, pids, strict=True)]


def _fork(
    case: AnyCase,
    rank: int,
    folder: Path,
    launch_id: str,
    token: str,
    body: Callable[[RankContext], None],
    meeting: Path | None = None,
    address: str = "127.0.0.1",
) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        if "torch" in sys.modules:  # threads of OpenMP that the parent has used do not exist in the child
            sys.modules["torch"].set_num_threads(1)
        context = RankContext(
            case=case,
            rank=rank,
            world_size=case.ranks,
            launch_id=launch_id,
            token=token,
            seed=0,
            folder=folder,
            address=address,
            rendezvous=Rendezvous(meeting or folder / "rendezvous"),
            recorder=Recorder(folder / f"rank-{rank}.events"),
            board=Board(folder / "board", case.ranks),
        )
        body(context)
        (folder / f"ok-{rank}").touch()
        code = 0
    except BaseException:
        (folder / f"error-{rank}").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _join(pids: list[int], deadline: float) -> dict[int, int]:
    """Exit codes of the processes that ended in time, negative where a signal ended them."""
    ended = dict[int, int]()
    while len(ended) < len(pids) and time.monotonic() < deadline:
        for pid in set(pids) - set(ended):
            ended_pid, status = os.waitpid(pid, os.WNOHANG)
            if ended_pid:
                ended[pid] = os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    for pid in set(pids) - set(ended):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return ended


def _outcome(folder: Path, rank: int, code: int | None) -> str:
    if (folder / f"ok-{rank}").exists():
        return ""
    if (error := folder / f"error-{rank}").exists():
        return error.read_text()
    if code is None:
        return "did not finish in time"
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code} without a message"
