"""Preflight of the machine, made by the supervisor: free disk space, memory, cores, locked memory, open files, and
traffic on its interfaces while no launch runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

from scaleproof.core.counters import read_counters, sent
from scaleproof.core.record_schema import PreflightCheck
from scaleproof.core.recorder import EVENT_DTYPE, GROW
from scaleproof.launch.nodes.allocated_nodes import NodePlacement
from scaleproof.record.cgroups import memory_left
from scaleproof.record.host import available_mib, memory_mib, usable_cores
from scaleproof.spec.case import AnyCase
from scaleproof.spec.estimate import estimate
from scaleproof.spec.launch_kind import sleeps
from scaleproof.spec.units import format_bytes

RECORD_BYTES = 2 << 20
"""Disk space of one record with its samples, logs and trained parameters; larger ones are rare."""
IDLE_S = 0.2
"""How long the traffic of interfaces is counted before an experiment."""
BUSY = float(1 << 20)
"""Bytes per second above which an interface counts as busy before the experiment."""
BESIDE_OTHERS = "beside_others"
"""Code of the warning on every record of an experiment that is not timed."""
FEW_FILES = 16
"""Open files that a rank needs besides its connections."""


def disk(results: Path, cases: Sequence[AnyCase]) -> PreflightCheck:
    """Disk space for the records of all launches and for the events of the launch that runs. `cases`: one per
    launch."""
    existing = next(folder for folder in (results.absolute(), *results.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(existing).free
    needed = RECORD_BYTES * len(cases) + max((case.ranks for case in cases), default=0) * GROW * EVENT_DTYPE.itemsize
    message = (
        f"{format_bytes(free)} free for the results, about {format_bytes(needed)} needed for {len(cases)} launches"
    )
    advice = "free space on the file system of the results folder, or name another one with --results"
    return checked("disk", free >= needed, message, "" if free >= needed else advice)


def shared() -> PreflightCheck:
    """Of an experiment that is not timed: what its records have to say about their clocks."""
    message = "ranks are forked from one process, and others may run beside them (timed: false): times say nothing"
    return checked(BESIDE_OTHERS, True, message, "compare its times with none")


def memory(case: AnyCase, placement: NodePlacement | None = None) -> PreflightCheck:
    """The estimated memory of one launch against the machine's memory (fails) and its free memory (warns). Of several
    nodes the one with the most ranks counts, against the memory of this machine, which is one of the nodes or like
    them."""
    needed, in_cgroup = estimate(case).nbytes, memory_left()
    if placement is not None:
        needed = needed * max(map(len, placement.ranks)) // case.ranks
    total, free = memory_mib() << 20, available_mib() << 20
    if in_cgroup is not None:
        total, free = min(total, in_cgroup), min(free, in_cgroup)
    message = f"a launch needs about {format_bytes(needed)}, {format_bytes(free)} of {format_bytes(total)} are free"
    if needed > total:
        return checked("memory", False, message, "choose a smaller size, fewer ranks or a smaller minibatch")
    return checked(
        "memory", True, message, "end what else uses memory here, or the kernel may end a rank" if needed > free else ""
    )


def cores(case: AnyCase, placement: NodePlacement | None = None) -> PreflightCheck:
    """Ranks times threads against the cores that may be used. More threads than cores give a warning, and such a launch
    counts for no claim about scaling."""
    if sleeps(case):
        message = (
            f"{case.ranks} ranks that sleep instead of computing on {usable_cores():g} cores; "
            "the launch measures how idle the cores are"
        )
        return checked("oversubscribed", True, message)
    if placement is not None:
        crowded = placement.oversubscribed(case.threads_per_rank)
        message = (
            f"{case.ranks} ranks with {case.threads_per_rank} threads on {len(placement.nodes)} nodes "
            f"with {placement.cores} cores in all"
        )
        return checked(
            "oversubscribed",
            True,
            message,
            "times include waiting for a core: they count for no claim about scaling" if crowded else "",
        )
    threads, usable = case.ranks * case.threads_per_rank, usable_cores()
    message = f"{case.ranks} ranks with {case.threads_per_rank} threads on {usable:g} cores"
    advice = "times include waiting for a core: they count for no claim about scaling"
    return checked("oversubscribed", True, message, advice if threads > usable else "")


def locked_memory(case: AnyCase, limits: Sequence[int], placement: NodePlacement | None = None) -> PreflightCheck:
    """The ranks' limits on locked memory in bytes (-1: no limit) against what the transport locks. Of several nodes the
    one with the most ranks counts."""
    lowest = min((limit for limit in limits if limit >= 0), default=-1)
    message = f"{'no limit' if lowest < 0 else format_bytes(lowest)} of locked memory"
    pinned_bytes = case.plugin("transport").pinned_bytes if case.transport is not None else None
    if pinned_bytes is None:
        return checked("memlock", True, f"{message}; transport {case.transport!r} pins none")
    local = max(map(len, placement.ranks)) if placement is not None else ceil(case.ranks / case.nodes)
    needed = pinned_bytes(case, local)
    advice = (
        "raise it: `ulimit -l unlimited`, LimitMEMLOCK in the service that starts the ranks, "
        "or --ulimit memlock=-1 of the container"
    )
    enough = lowest < 0 or lowest >= needed
    return checked(
        "memlock", enough, f"{message}, {format_bytes(needed)} are to be locked per rank", "" if enough else advice
    )


def open_files(case: AnyCase, limits: Sequence[int]) -> PreflightCheck:
    """The ranks' limits on open files (-1: no limit) against two connections per peer."""
    lowest, needed = min((limit for limit in limits if limit >= 0), default=-1), 2 * case.ranks + FEW_FILES
    message = f"{'no limit' if lowest < 0 else lowest} of open files, about {needed} needed per rank"
    enough = lowest < 0 or lowest >= needed
    return checked("open_files", enough, message, "" if enough else "raise it: `ulimit -n`")


def idle_traffic() -> tuple[PreflightCheck, dict[str, float]]:
    """The check, and the bytes per second that each interface sends while no launch runs; these are subtracted from
    later counts."""
    before, started = read_counters(), time.monotonic()
    time.sleep(IDLE_S)
    after, seconds = read_counters(), time.monotonic() - started
    rates = {name: count / seconds for name, count in sent(before, after).items()}
    return idle_check(rates), rates


def idle_check(rates: Mapping[str, float]) -> PreflightCheck:
    """`rates`: bytes per second of each interface while no launch ran."""
    busy = ", ".join(f"{name} {format_bytes(rate)}/s" for name, rate in rates.items() if rate)
    advice = (
        "other traffic uses this machine: measure when it is quiet"
        if any(rate > BUSY for rate in rates.values())
        else ""
    )
    return checked("idle_traffic", True, f"before the experiment interfaces sent {busy or 'nothing'}", advice)


def checked(code: str, passed: bool | None, message: str, advice: str = "") -> PreflightCheck:
    """A check. Advice on a check that passed makes it a warning; advice on one that failed says what to do."""
    return PreflightCheck(code=code, passed=passed, message=message, advice=advice)
