"""Executes one launch in its folder: starts the launcher, watches the ranks, ends all processes."""

from __future__ import annotations

import os
import random
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scaleproof.core.board import Board
from scaleproof.core.launch_spec import ENVIRONMENT, LaunchSpec
from scaleproof.core.stall_schema import Stall
from scaleproof.core.uninterrupted import uninterrupted
from scaleproof.launch.adopted_process import LauncherProcess
from scaleproof.launch.launchers.launcher_contract import Launcher, scratch, waits_for_go
from scaleproof.launch.start.started_launcher import StartedLauncher, start, wait_for_imports
from scaleproof.launch.teardown import LEAVE_NODES_S, LEAVE_S, end_launch, wait_for_launcher
from scaleproof.launch.watch.failure_signs import Sign, Watch, root_cause, signal_name
from scaleproof.launch.watch.flight_recorder import (
    RankSnapshot,
    Silence,
    first_silent,
    look_again,
    sentence,
    stall_of,
    take_snapshots,
)
from scaleproof.launch.watch.rank_processes import Here, OnNodes
from scaleproof.paths import IMPORT_ROOT
from scaleproof.record.environment import PADDING

if TYPE_CHECKING:
    from scaleproof.launch.start.parents_ahead import ParentsAhead

POLL_S = 0.1
"""How often the supervisor polls, which takes a core from the ranks; the end of the launcher wakes it at once."""
CAUSE_S = 0.5
"""Time after the first sign for the sign of the rank that failed first to arrive."""
BLAME_S = 5.0
"""The same while all signs may be consequences: a rank that raised an error can need seconds to leave its library."""
WORDS_MAX = 200
"""Characters of a line of the launcher's output that a message quotes."""
TAIL = 4096
"""Bytes at the end of that output in which the line is looked for."""
PADDING_MAX = 4096
"""Bytes, one page: the environment grows by a random length below this, which moves the stacks of the processes."""
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Not passed on: without compiled modules every launch would compile this package anew."""


@dataclass(frozen=True, slots=True)
class LaunchEnd:
    """How a launch ended: the sign of the rank that failed first (None: it went well), what its processes left behind,
    its length, and what all ranks did when it failed. `wall_s`: of the imports and from the start of the ranks; without
    a parent's wait for its turn."""

    cause: Sign | None
    leftovers: list[str]
    wall_s: float
    stall: Stall | None = None


def launch_environment(launch_spec: LaunchSpec, launcher: Launcher, folder: Path, timed: bool = True) -> dict[str, str]:
    """Variables of every process of the launch. Where its clocks are read, hash seed and length are its own."""
    threads = {name: str(launch_spec.case["threads_per_rank"]) for name in THREAD_VARIABLES}
    paths = [str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {
        ENVIRONMENT: launch_spec.launch,
        "PYTHONHASHSEED": str(launch_spec.seed % 2**32 if timed else 0),
        "PYTHONPATH": os.pathsep.join(paths),
        PADDING: padding(launch_spec.seed) if timed else "",
        # pydantic would look for plugins in every installed package, and they would instrument what is measured.
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
    }
    # A rank ends without the exit handlers that would remove its libraries' temporary files: they lie in the scratch.
    own["TMPDIR"] = str(scratch(launch_spec.launch))
    inherited = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    return {**inherited, **threads, **own, **launcher.environment(folder, launch_spec)}


def padding(seed: int) -> str:
    """A text whose random length follows from the launch's seed."""
    return "x" * random.Random(f"padding/{seed}").randrange(PADDING_MAX)


def execute(
    folder: Path,
    launch_spec: LaunchSpec,
    launcher: Launcher,
    variables: dict[str, str],
    watch: Watch,
    ahead: ParentsAhead | None = None,
    before_ranks: Callable[[float], None] = lambda cpu_s: None,
) -> LaunchEnd:
    """Run the launch to its end. None of its processes survives this call, also not when it raises. `ahead`: may have
    its parent already, and starts those of the next launches. `before_ranks` is called while no rank runs and nothing
    imports, with the processor time that the launch has used by then, s."""
    started: StartedLauncher | None = None
    try:
        if waits_for_go(launcher):
            started = ahead.take(launch_spec.launch) if ahead is not None else None
            if started is None:
                started = start(folder, launch_spec, launcher, variables, ahead.warm if ahead is not None else None)
                _import_together(started, ahead, launch_spec.deadline_s)
            before_ranks(started.cpu_s())
            began = time.monotonic()
            started.begin()
        else:
            before_ranks(0.0)
            began = time.monotonic()
            started = start(folder, launch_spec, launcher, variables)
        deadline = (began if started.has_imported else started.started) + launch_spec.deadline_s
        ending = _until_end(watch, started.process, deadline, launch_spec.stall_s)
        cause = ending.cause
        stall = None
        if cause and any(watch.board.pid(rank) for rank in watch.ranks):
            stall = stall_of(look_again(watch, ending.snapshots), cause, ending.silence)
        surviving_launcher = [] if cause else wait_for_launcher(started.process, _leave_s(launch_spec))
    finally:
        with uninterrupted():
            leftovers = end_launch(started.process if started else None, folder, launch_spec)
    wall_s = (started.imports_s or 0.0) + time.monotonic() - began
    return LaunchEnd(cause, surviving_launcher or leftovers if cause is None else [], wall_s, stall)


def _import_together(started: StartedLauncher, ahead: ParentsAhead | None, deadline_s: float) -> None:
    """Wait until it has imported, and beside it the parents of the next launches; what still imports then is ended."""
    beside = ahead.start_next() if ahead is not None else []
    wait_for_imports([started, *beside], started.started + deadline_s)
    if ahead is not None:
        ahead.end_those_that_import()


def _leave_s(launch_spec: LaunchSpec) -> float:
    """Time for the launcher to end after the last rank."""
    on_nodes = launch_spec.nodes or launch_spec.parsed_case.plugin("fabric").own_kernels
    return LEAVE_NODES_S if on_nodes else LEAVE_S


def prepare(folder: Path, launch_spec: LaunchSpec) -> None:
    """Make the launch's folder, readable only by this user since it holds the launch's token; or complete the launch
    spec of one whose parent was started ahead."""
    if not folder.exists():
        folder.mkdir(parents=True, mode=0o700)
        (folder / "rendezvous").mkdir()
        Board(folder / "board", int(launch_spec.case["ranks"])).close()
    launch_spec.write(folder)


def new_watch(folder: Path, launch_spec: LaunchSpec) -> Watch:
    """The watch over a folder that `prepare` made."""
    ranks, nodes = int(launch_spec.case["ranks"]), launch_spec.nodes or int(launch_spec.case["nodes"])
    on_nodes = launch_spec.nodes or launch_spec.parsed_case.plugin("fabric").own_kernels
    processes = OnNodes(folder, [rank * nodes // ranks for rank in range(ranks)]) if on_nodes else Here()
    return Watch(folder, Board(folder / "board", ranks), processes)


@dataclass(frozen=True, slots=True)
class _Ending:
    """The cause of failure (None: all ranks ended well), snapshots of the ranks at the first sign of it, and the first
    silent rank where no rank failed by itself."""

    cause: Sign | None
    snapshots: list[RankSnapshot]
    silence: Silence | None = None


def _until_end(watch: Watch, process: LauncherProcess, deadline: float, stall_s: float) -> _Ending:
    """Watch until all ranks have ended, one has failed, or nothing moves any more."""
    first_sign_at, snapshots = 0.0, list[RankSnapshot]()
    with os.fdopen(os.pidfd_open(process.pid)) as ending:
        while True:
            # The launcher first: a parent process writes how its ranks ended before it ends itself.
            launcher_code = process.poll()
            signs, now = watch.poll(), time.monotonic()
            if signs and not snapshots:
                first_sign_at, snapshots = now, take_snapshots(watch)
            if signs:
                grace = CAUSE_S if root_cause(signs).can_be_the_cause else BLAME_S
                if watch.all_ended() or launcher_code is not None or now - first_sign_at > grace:
                    return _Ending(root_cause(watch.poll()), snapshots)
            elif watch.all_ended():
                return _Ending(None, snapshots)
            elif launcher_code is not None:
                return _Ending(_launcher_ended(watch, launcher_code), take_snapshots(watch))
            elif now > deadline:
                return _nobody_failed(watch, "deadline", "deadline passed")
            elif (idle_s := watch.idle_s()) > stall_s:
                return _nobody_failed(watch, "stalled", f"no rank moved for {idle_s:.1f} s")
            select.select([ending], [], [], POLL_S)


def _launcher_ended(watch: Watch, code: int) -> Sign:
    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with code {code}"
    started = any(watch.board.pid(rank) for rank in watch.ranks)
    # The kernel kills the ranks together with a launcher that was killed; no rank is the cause.
    message = f"the launcher {how} before its ranks had ended{_last_line(watch.folder)}"
    return watch.sign("rank_killed" if started and code < 0 else "start_failed", -1, message)


def _last_line(folder: Path) -> str:
    """The last line of the launcher's output; the folder of a preflight is not kept."""
    with (folder / "launcher.log").open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
        lines = log.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:WORDS_MAX]}" if last else ""


def _nobody_failed(watch: Watch, code: str, message: str) -> _Ending:
    """All ranks live but the launch does not end: the sign names the rank at the end of the chain of waiting ranks."""
    snapshots = take_snapshots(watch)
    silence = first_silent(snapshots)
    sign = Sign(code, silence.rank, time.monotonic_ns(), f"{message}; {sentence(silence, snapshots)}")
    if silence.rank >= 0:
        # From the snapshot: the request for its stacks may have woken the rank.
        line = snapshots[silence.rank].line
        sign = replace(sign, step=line.step, operation=line.operation)
    return _Ending(sign, snapshots, silence)
