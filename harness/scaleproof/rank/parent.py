"""The parent of ranks: imports the modules that the case needs once, forks the ranks, and writes the exit file of
each."""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from scaleproof.core import location
from scaleproof.core.go_signal import WAIT_FOR_GO, wait_for_go
from scaleproof.core.killed_rank import KilledRank, killed_rank
from scaleproof.core.launch_spec import LaunchSpec, read_launch_spec
from scaleproof.rank.process_facts import read_ahead
from scaleproof.rank.process_lifetime import die_with_creator
from scaleproof.rank.run_rank import run_rank
from scaleproof.rank.status_publisher import StatusPublisher
from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, OwnCase, TrainCase
from scaleproof.spec.plugins import loaded


def preload(case: AnyCase, programs: str = "") -> None:
    """Import before the fork the modules that every rank would import after it, except libraries that start threads on
    import (grpc, mpi4py)."""
    for name in frameworks(case):
        registry.load("framework", name)
    if isinstance(case, TrainCase) and _computes_stages(case):
        loaded(case.plugin("framework").stage)
    for kind, name in case.named():
        if kind != "framework":
            registry.load(kind, name)
    for module in _late_imports(case):
        importlib.import_module(module)
    if isinstance(case, OwnCase):
        from scaleproof.programs.own import preload_entry

        preload_entry(Path(programs), case)


def import_for(launch_spec: LaunchSpec) -> None:
    """`preload`, so that the ranks share its memory."""
    gc.disable()  # as fork_ranks.py does
    preload(launch_spec.parsed_case, launch_spec.programs)
    read_ahead()
    gc.freeze()  # later collections do not write to imported objects, so that their pages stay shared
    gc.enable()


def imported(folder: Path, waits: bool) -> LaunchSpec:
    """Import what the launch of a folder needs; `waits`: return once the supervisor says so. It may have completed
    the launch spec meanwhile."""
    launch_spec = read_launch_spec(folder)
    import_for(launch_spec)
    if not waits:
        return launch_spec
    wait_for_go()
    return read_launch_spec(folder)


def frameworks(case: AnyCase) -> list[str]:
    """The case's framework, unless its compute is replayed, and the one that its transport's library is built on."""
    own = [case.framework] if isinstance(case, TrainCase) and not _replays(case) else []
    needed = case.plugin("transport").needs_framework if case.transport else None
    return own if own or needed is None else [needed]


def _late_imports(case: AnyCase) -> list[str]:
    """Modules that ranks of a case import inside functions. One that is missing here fails no rank before it needs
    it."""
    needed = {
        "threadpoolctl": True,
        "numpy.random": isinstance(case, TrainCase),
        "numpy.ma": isinstance(case, TrainCase),  # by numpy.unique
        "scaleproof.programs.replayed": _replays(case),
        "scaleproof.programs.train_replicas": isinstance(case, TrainCase) and case.replicas is not None,
        "scaleproof.strategies.cut_off_learned": case.value("strategy.predictor") == "learned",
    }
    return [name for name, of_case in needed.items() if of_case and importlib.util.find_spec(name)]


def _computes_stages(case: TrainCase) -> bool:
    return case.replicas is not None and case.replicas.division is not None and not _replays(case)


def _replays(case: AnyCase) -> bool:
    return isinstance(case, TrainCase) and case.compute == "replay"


def shares(cores: Sequence[int], ranks: int) -> list[list[int]]:
    """Cores for each of the ranks of a node: neighbouring cores, and no core for two ranks; all cores for every rank
    where there are fewer cores than ranks."""
    each = len(cores) // ranks
    return [list(cores[each * rank : each * (rank + 1)]) if each else list(cores) for rank in range(ranks)]


def neighbours_first(cores: Iterable[int]) -> list[int]:
    """Cores sorted by package and core, so that hardware threads of one core are neighbours; by number where the kernel
    does not report these."""
    return sorted(cores, key=lambda core: (_topology(core, "physical_package_id"), _topology(core, "core_id"), core))


def _topology(core: int, name: str) -> int:
    try:
        return int(Path(f"/sys/devices/system/cpu/cpu{core}/topology/{name}").read_text())
    except (OSError, ValueError):
        return 0


def fork_rank(
    folder: Path, rank: int, launch_spec: LaunchSpec, cores: Sequence[int] = (), predecessor: KilledRank | None = None
) -> int:
    """Fork one rank and return its pid; the child never returns. `cores`: the cores that it may use, empty: all.
    `predecessor`: whose place it takes."""
    creator = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        die_with_creator(creator)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if cores:
            os.sched_setaffinity(0, cores)
        code = run_rank(folder, rank, launch_spec, predecessor)
    finally:
        os._exit(code)


def reap(folder: Path, ranks: dict[int, int], launch_spec: LaunchSpec, publisher: StatusPublisher | None = None) -> int:
    """Write exit-R.json as each rank ends, and fork the successors of those that faults of the case have killed;
    returns 0 when all others ended with 0."""
    worst, replaced = 0, set[int]()
    while ranks:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED)
        if ended is None or ended.si_pid not in ranks:
            continue
        at, rank = time.monotonic_ns() + location.to_supervisor_ns(), ranks.pop(ended.si_pid)
        killed = killed_rank(folder, rank) if rank not in replaced else None
        if killed is not None and killed.after_s is not None:
            replaced.add(rank)
            ranks[fork_rank(folder, rank, launch_spec, predecessor=killed)] = rank
            continue
        if publisher is not None:
            publisher.publish_end(rank)
        exited = ended.si_code == os.CLD_EXITED
        end = {
            "pid": ended.si_pid,
            "exit_code": ended.si_status if exited else None,
            "signal": None if exited else ended.si_status,
            "at_ns": at,
        }
        draft = folder / f".exit-{rank}.json"
        draft.write_text(json.dumps(end))
        draft.rename(folder / f"exit-{rank}.json")
        if killed is None:
            worst = max(worst, ended.si_status if exited else 1)
    return worst


def main() -> int:
    """Fork all ranks, those of `--ranks`, or the one that the environment variable of `--rank-from` names: its number,
    or with `--ranks` its index among them. `--attended`: the node's agent publishes the status of its ranks. `--bind`:
    each rank has cores of its own. `--wait-for-go`: see core.go_signal."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--rank-from")
    arguments.add_argument("--ranks", type=int, nargs="+")
    arguments.add_argument("--attended", action="store_true")
    arguments.add_argument("--bind", action="store_true")
    arguments.add_argument(WAIT_FOR_GO, action="store_true")
    arguments.add_argument("--creator", type=int, default=os.getppid())
    options = arguments.parse_args()
    die_with_creator(options.creator)
    # A launcher that ends its job must not end this process before it has written how the rank ended.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    launch_spec = imported(options.folder, options.wait_for_go)
    mine = list(options.ranks or range(int(launch_spec.case["ranks"])))
    cores = shares(neighbours_first(os.sched_getaffinity(0)), len(mine)) if options.bind else [[] for _ in mine]
    if options.rank_from:
        own = int(os.environ[options.rank_from])
        mine, cores = [mine[own]], [cores[own]]
    publisher = StatusPublisher(options.folder, int(launch_spec.case["ranks"])) if location.has_own_kernel() else None
    ranks = {
        fork_rank(options.folder, rank, launch_spec, rank_cores): rank
        for rank, rank_cores in zip(mine, cores, strict=True)
    }
    if publisher is not None and not options.attended:
        publisher.start({rank: pid for pid, rank in ranks.items()})
    return reap(options.folder, ranks, launch_spec, publisher)
