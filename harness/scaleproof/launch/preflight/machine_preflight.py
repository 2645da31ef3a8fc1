"""Preflight of the machine, from the supervisor's side: room on the disk, memory, cores, locked memory, and what its
interfaces move when idle."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from scaleproof.core.counters import read_counters, sent
from scaleproof.core.record_schema import PreflightCheck
from scaleproof.core.recorder import EVENT_DTYPE, GROW
from scaleproof.launch.nodes.allocated_nodes import NodePlacement
from scaleproof.launch.start.replay_profile import sleeps
from scaleproof.record.cgroups import memory_left
from scaleproof.record.host import available_mib, memory_mib, usable_cores
from scaleproof.spec.case import AnyCase
from scaleproof.spec.estimate import estimate
from scaleproof.spec.units import format_bytes

RECORD_BYTES = 2 << 20
"""Room for one record with its samples, logs and trained parameters; larger ones are rare."""
IDLE_S = 0.2
"""How long interfaces are watched before an experiment."""
BUSY = float(1 << 20)
"""Bytes a second on an interface from which it is not idle before the experiment."""
FEW_FILES = 16
"""Open files that a rank needs besides its connections."""


def disk(results: Path, cases: Sequence[AnyCase]) -> PreflightCheck:
    """Room for the records of all launches and for the events of the one that runs. `cases`: one per launch."""
    existing = next(folder for folder in (results.absolute(), *results.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(existing).free
    needed = RECORD_BYTES * len(cases) + max((case.ranks for case in cases), default=0) * GROW * EVENT_DTYPE.itemsize
    message = (
        f"{format_bytes(free)} free for the results, about {format_bytes(needed)} needed for {len(cases)} launches"
    )
    advice = "free space on the file system of the results folder, or name another one with --results"
    return checked("disk", free >= needed, message, "" if free >= needed else advice)


def memory(case: AnyCase, placement: NodePlacement | None = None) -> PreflightCheck:
    """The estimate of one launch against what the machine has (fails) and what is free (warns). On several nodes the
    part of the fullest one, as if it were this machine, which is one of them or like them."""
    needed, left = estimate(case, {}).nbytes, memory_left()
    if placement is not None:
        needed = needed * max(map(len, placement.ranks)) // case.ranks
    everything, free = memory_mib() << 20, available_mib() << 20
    if left is not None:
        everything, free = min(everything, left), min(free, left)
    message = (
        f"a launch needs about {format_bytes(needed)}, {format_bytes(free)} of {format_bytes(everything)} are free"
    )
    if needed > everything:
        return checked("memory", False, message, "choose a smaller size, fewer ranks or a smaller minibatch")
    return checked(
        "memory", True, message, "end what else uses memory here, or the kernel may end a rank" if needed > free else ""
    )


def cores(case: AnyCase, placement: NodePlacement | None = None) -> PreflightCheck:
    """Ranks times threads against the cores that may be used; more warns, and bars every claim about scaling."""
    if sleeps(case):
        message = (
            f"{case.ranks} ranks that sleep instead of computing on {usable_cores():g} cores; "
            "the launch measures how idle these are"
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
    wanted, usable = case.ranks * case.threads_per_rank, usable_cores()
    message = f"{case.ranks} ranks with {case.threads_per_rank} threads on {usable:g} cores"
    advice = "times include waiting for a core: they count for no claim about scaling"
    return checked("oversubscribed", True, message, advice if wanted > usable else "")


def locked_memory(case: AnyCase, limits: Sequence[int]) -> PreflightCheck:
    """`limits` of the ranks in bytes, -1: none. Matters to transports that pin their buffers."""
    lowest = min((limit for limit in limits if limit >= 0), default=-1)
    message = f"{'no limit' if lowest < 0 else format_bytes(lowest)} of locked memory"
    pins = case.transport is not None and case.plugin("transport").pins_memory
    if not pins:
        return checked("memlock", True, f"{message}; transport {case.transport!r} pins none")
    needed = estimate(case, {}).nbytes // case.ranks
    advice = (
        "raise it: `ulimit -l unlimited`, LimitMEMLOCK in the service that starts the ranks, "
        "or --ulimit memlock=-1 of the container"
    )
    enough = lowest < 0 or lowest >= needed
    return checked(
        "memlock", enough, f"{message}, about {format_bytes(needed)} needed per rank", "" if enough else advice
    )


def open_files(case: AnyCase, limits: Sequence[int]) -> PreflightCheck:
    """Each rank holds a connection per peer."""
    lowest, needed = min((limit for limit in limits if limit >= 0), default=-1), 2 * case.ranks + FEW_FILES
    message = f"{'no limit' if lowest < 0 else lowest} of open files, about {needed} needed per rank"
    enough = lowest < 0 or lowest >= needed
    return checked("open_files", enough, message, "" if enough else "raise it: `ulimit -n`")


def idle_traffic() -> tuple[PreflightCheck, dict[str, float]]:
    """What interfaces send while nothing of ours runs, in bytes a second: measured for a moment, subtracted from what
    they send later."""
    before, started = read_counters(), time.monotonic()
    time.sleep(IDLE_S)
    after, seconds = read_counters(), time.monotonic() - started
    rates = {name: count / seconds for name, count in sent(before, after).items()}
    return idle_check(rates), rates


def idle_check(rates: Mapping[str, float]) -> PreflightCheck:
    """`rates`: bytes a second of each interface while nothing of ours ran."""
    busy = ", ".join(f"{name} {format_bytes(rate)}/s" for name, rate in rates.items() if rate)
    advice = (
        "other traffic uses this machine: measure when it is quiet"
        if any(rate > BUSY for rate in rates.values())
        else ""
    )
    return checked("idle_traffic", True, f"before the experiment interfaces sent {busy or 'nothing'}", advice)


def checked(code: str, passed: bool | None, message: str, advice: str = "") -> PreflightCheck:
    """`passed` with advice is a warning; advice to a check that failed says what to do."""
    return PreflightCheck(code=code, passed=passed, message=message, advice=advice)
