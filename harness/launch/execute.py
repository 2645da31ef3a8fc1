"""One launch in its folder: start the launcher, watch the ranks, end everything."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import harness
from harness.launch.base import Launcher
from harness.launch.teardown import clean, dump_stacks, end_processes, reap_session
from harness.launch.watch import Sign, Watch, root_cause, signal_name
from harness.rank.board import Board
from harness.rank.orders import ENVIRONMENT, Orders

POLL_S = 0.1
"""How often the supervisor looks, which takes a core from the ranks; the end of the launcher wakes it at once."""
CAUSE_S = 0.5
"""After the first sign: time for the sign of the rank that failed first to arrive."""
BLAME_S = 5.0
"""The same when all signs so far may be consequences: a rank that raised can need seconds to leave its library."""
LEAVE_S = 5.0
"""After the last rank: time for the launcher to end by itself."""
TERM_S = 0.3
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a launch ended: the failed rank's sign (None: well), what was left behind by its processes, and how long it took."""

    cause: Sign | None
    leftovers: list[str]
    wall_s: float


def launch_environment(orders: Orders, launcher: Launcher, folder: Path) -> dict[str, str]:
    """Variables of every process of the launch."""
    threads = {name: str(orders.case["threads_per_rank"]) for name in THREAD_VARIABLES}
    paths = [str(Path(harness.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {ENVIRONMENT: orders.launch, "PYTHONHASHSEED": str(orders.seed % 2**32), "PYTHONPATH": os.pathsep.join(paths)}
    return {**os.environ, **threads, **own, **launcher.environment(folder, orders)}


def execute(folder: Path, orders: Orders, launcher: Launcher, variables: dict[str, str], watch: Watch) -> Ended:
    """Run the launch to its end. Whatever happens in here, also KeyboardInterrupt, none of its processes survives."""
    started = time.monotonic()
    scratch = launcher.scratch(orders)
    for path in scratch:
        path.mkdir(mode=0o700)
    with (folder / "launcher.log").open("wb") as log:
        process = subprocess.Popen(launcher.command(folder, orders), env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            cause = _until_end(watch, process, started + orders.deadline_s)
            leftovers = [] if cause else _leave(process)
        finally:
            with _uninterrupted():
                end_processes(orders.launch, TERM_S)
                process.kill()
                process.wait()
                reap_session(process.pid)
                for path in scratch:
                    shutil.rmtree(path, ignore_errors=True)
                left = clean(orders.launch)
    return Ended(cause, leftovers or left if cause is None else [], time.monotonic() - started)


def new_watch(folder: Path, world_size: int) -> Watch:
    """The watch over a folder that `prepare` made."""
    return Watch(folder, Board(folder / "board", world_size))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C waits until everything is torn down."""
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _until_end(watch: Watch, process: subprocess.Popen[bytes], deadline: float) -> Sign | None:
    """The cause of failure, None when all ranks ended well."""
    first_sign: float | None = None
    with os.fdopen(os.pidfd_open(process.pid)) as ending:
        while True:
            # In this order: a parent has written how its ranks ended before it is gone.
            gone = process.poll()
            signs, now = watch.poll(), time.monotonic()
            if signs and first_sign is None:
                first_sign = now
                if any(sign.code in ("rank_stopped", "rank_silent") for sign in signs):
                    dump_stacks(watch.living())
            if signs and first_sign is not None:
                grace = CAUSE_S if root_cause(signs).is_first_hand else BLAME_S
                if watch.all_ended() or gone is not None or now - first_sign > grace:
                    return root_cause(watch.poll())
            elif watch.all_ended():
                return None
            elif gone is not None:
                return _launcher_gone(watch, gone)
            elif now > deadline:
                return _too_late(watch)
            select.select([ending], [], [], POLL_S)


def _launcher_gone(watch: Watch, code: int) -> Sign:
    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with code {code}"
    started = any(watch.board.pid(rank) for rank in watch.ranks)
    # The ranks died with it, by the kernel's hand; none of them is to blame.
    return watch.sign("rank_killed" if started and code < 0 else "start_failed", -1, f"the launcher {how} before its ranks had ended")


def _too_late(watch: Watch) -> Sign:
    rank = watch.least_advanced()
    line = watch.board.read(rank)
    still_s = (time.monotonic_ns() - line.moved_ns) / 1e9
    doing = (
        f"is furthest behind, in {line.operation!r} for {still_s:.1f} s" if line.operation else "has not begun" if watch.board.pid(rank) else "has not started"
    )
    sign = watch.sign("deadline", rank, f"deadline passed; rank {rank} {doing}")
    dump_stacks(watch.living())
    return sign


def _leave(process: subprocess.Popen[bytes]) -> list[str]:
    try:
        process.wait(LEAVE_S)
    except subprocess.TimeoutExpired:
        return [f"the launcher (process {process.pid})"]
    return []
