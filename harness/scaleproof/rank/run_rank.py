"""Runs one rank: redirects its output to its log, starts the heartbeat, runs the program, and writes the report."""

from __future__ import annotations

import errno
import faulthandler
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scaleproof.core import location
from scaleproof.core.board import Board
from scaleproof.core.context import RankContext
from scaleproof.core.killed_rank import KilledRank
from scaleproof.core.launch_spec import PREFLIGHT, LaunchSpec
from scaleproof.core.recorder import Recorder
from scaleproof.core.rendezvous import Rendezvous
from scaleproof.rank.clock_offsets import compared
from scaleproof.rank.process_facts import open_sockets, rank_facts
from scaleproof.spec import registry

BEAT_S = 0.2


@dataclass(frozen=True, slots=True)
class RankFailure:
    """How a rank failed: failure code, a message for people, and the peer that it lost (-1: none, or not known)."""

    code: str
    message: str
    peer: int = -1


def run_rank(folder: Path, rank: int, launch_spec: LaunchSpec, predecessor: KilledRank | None = None) -> int:
    """Run the case's program and write rank-R.json; returns the exit code (0: the program ended and every check
    passed). `predecessor`: whose place it takes, after a while."""
    _redirect(folder / f"rank-{rank}.log")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    context: RankContext | None = None
    failure: RankFailure | None = None
    try:
        board = Board(location.mapped(folder) / "board", int(launch_spec.case["ranks"]))
        _start_heartbeat(board, rank)
        if predecessor is not None:
            time.sleep(predecessor.after_s or 0.0)
        context = _context(folder, rank, launch_spec, board)
        context.predecessor = predecessor
        # A preflight compares clocks itself, after it has checked whether ranks reach each other. Nobody waits for the
        # clock of a successor.
        compares = launch_spec.size != PREFLIGHT and predecessor is None
        with compared(context) if compares else nullcontext():
            context.held_sockets = open_sockets()
            registry.load("program", context.case.program)(context)
        failure = _failed_check(context)
    except BaseException as error:
        traceback.print_exc()
        failure = failure_of(error)
        if context is not None and failure.peer >= 0:
            context.post.wait(failure.peer)
    if failure is None and context is not None:
        last = context.board.read(rank)
        context.board.write(rank, step=last.step, operation=last.operation, peer=last.peer, state="done")
    _report(folder, rank, context, failure)
    sys.stdout.flush()
    sys.stderr.flush()
    return 0 if failure is None else 1


def failure_of(error: BaseException) -> RankFailure:
    """The failure of an exception, with the exception's `code` and `peer` where it has them."""
    code = getattr(error, "code", None)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        code = "disk_full"
    # SystemExit also has a `code`, which is no failure code.
    code = code if isinstance(code, str) else "rank_raised"
    peer = getattr(error, "peer", -1)
    return RankFailure(
        code=code,
        message=f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        peer=peer if isinstance(peer, int) else -1,
    )


def _context(folder: Path, rank: int, launch_spec: LaunchSpec, board: Board) -> RankContext:
    return RankContext(
        case=launch_spec.case_of_ranks(),
        rank=rank,
        world_size=board.world_size,
        launch_id=launch_spec.launch,
        token=launch_spec.token,
        seed=launch_spec.seed,
        folder=folder,
        address=location.address(launch_spec.address),
        programs=launch_spec.programs,
        jitter=launch_spec.jitter,
        byte_s=launch_spec.byte_s,
        rendezvous=Rendezvous(folder / "rendezvous"),
        recorder=Recorder(location.mapped(folder) / f"rank-{rank}.events"),
        board=board,
    )


def _redirect(log: Path) -> None:
    """Everything that this process or a library in it prints goes to the rank's log; SIGUSR1 adds the stacks of all
    threads."""
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    os.close(empty)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    faulthandler.enable(file=2, all_threads=True)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)


def _start_heartbeat(board: Board, rank: int) -> None:
    board.enrol(rank)

    def beat() -> None:
        # The main thread must handle the signal that requests stacks: were this thread to handle it, the main thread
        # of a rank that was stopped would run on meanwhile.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        while True:
            board.beat(rank)
            time.sleep(BEAT_S)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()


def _failed_check(context: RankContext) -> RankFailure | None:
    failed = [check for check in context.checks if not check["passed"]]
    if not failed:
        return None
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return RankFailure("check_failed", f"check {failed[0]['name']} failed: {failed[0]['detail']}{more}")


def _report(folder: Path, rank: int, context: RankContext | None, failure: RankFailure | None) -> None:
    report: dict[str, Any] = {
        "rank": rank,
        "pid": os.getpid(),
        "status": "failed" if failure else "ok",
        "checks": [],
        "facts": rank_facts(),
        "artifacts": {},
    }
    report |= asdict(failure) if failure is not None else {"code": None, "message": "", "peer": -1}
    if context is not None:
        report |= {
            "checks": context.checks,
            "inputs": context.inputs,
            "counters": context.counters,
            "namespace": location.namespace(),
        }
        report["facts"] |= context.facts
        if (node := location.node()) is not None:
            report["facts"] |= {"node": node, "address": context.address}
        report["facts"]["seeds"] = {
            "launch": context.seed,
            "hash": os.environ.get("PYTHONHASHSEED"),
        } | context.facts.get("seeds", {})
        report["artifacts"] = {name: str(path) for name, path in context.artifacts.items()}
    draft = folder / f".rank-{rank}.json"
    draft.write_text(json.dumps(report, default=str))
    draft.rename(folder / f"rank-{rank}.json")
