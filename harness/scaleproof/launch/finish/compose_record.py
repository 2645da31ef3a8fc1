"""From a launch that ended to its record."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from scaleproof.core.atomic_write import read_json
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import Check, Evidence, Failure, InputCheck, Record, Status, Warning
from scaleproof.fabric.guests.guest_plan import REPORT
from scaleproof.launch.finish.artifacts import collect_artifacts
from scaleproof.launch.finish.core_saturation import Crowding, crowding, saturation
from scaleproof.launch.finish.disturbances import link_warnings
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.launch.finish.rank_agreement import agreement, common, unequal_hosts
from scaleproof.launch.finish.rank_status import known_code, rank_clocks, rank_status
from scaleproof.launch.finish.surroundings import Surroundings, command
from scaleproof.launch.finish.validity import disturbances, network_of, per_rank, silent_failure
from scaleproof.launch.preflight.experiment_preflight import warnings
from scaleproof.launch.start.execute import LaunchEnd
from scaleproof.launch.start.replay_profile import sleeps
from scaleproof.launch.watch.failure_signs import Sign, Watch
from scaleproof.launch.watch.idle_time import IdleTrace
from scaleproof.record.digest import code_version
from scaleproof.record.host import usable_cores
from scaleproof.record.pace import power_w
from scaleproof.spec.case import AnyCase

SHARED_FACTS = ("libraries", "host")
"""Kept once per launch where all ranks agree; a rank's facts have what only it has."""


def compose(
    case: AnyCase,
    launch_spec: LaunchSpec,
    ended: LaunchEnd,
    watch: Watch,
    events: Mapping[int, np.ndarray],
    around: Surroundings,
    evidence: Evidence,
) -> Record:
    """The record of a launch that was started."""
    reports = [report for _, report in sorted(watch.reports.items())]
    facts = {rank: report["facts"] for rank, report in sorted(watch.reports.items())}
    shared = {name: common(facts, name) for name in SHARED_FACTS}
    preflight, network = [*around.preflight, *agreement(facts)], network_of(watch)
    of_ranks, address = launch_spec.case_of_ranks(), launch_spec.address
    if ended.cause is not None:
        failure: Failure | None = failure_of(ended.cause)
    else:
        failure = silent_failure(of_ranks, address, watch, events, preflight, network)
    transport = _transport(case, of_ranks.interface, watch, around)
    crowded = _crowding(case, watch, around)
    around_ranks = disturbances(
        of_ranks, address, watch, events, around.load, around.idle, network, below=around.placement is None
    )
    return Record(
        launch=launch_spec.launch,
        case_id=launch_spec.case_id,
        case=case,
        size=launch_spec.size,
        plan_index=launch_spec.plan_index,
        seed=launch_spec.seed,
        evidence=evidence,
        oversubscribed=_oversubscribed(case, around),
        status=status_of(failure),
        failure=failure,
        ranks=[rank_status(rank, watch, shared) for rank in watch.ranks],
        preflight=preflight,
        network=network,
        checks=[
            Check(rank=rank, **check) for rank, report in sorted(watch.reports.items()) for check in report["checks"]
        ],
        clocks=rank_clocks(watch),
        inputs=[InputCheck(**check) for report in reports for check in report.get("inputs", [])],
        warnings=[
            *warnings(around.preflight),
            *_leftovers(ended),
            *link_warnings(transport.get("fabric")),
            *around_ranks,
            *(saturation(crowded) if sleeps(case) else []),
            *unequal_hosts(facts),
        ],
        code=code_version(),
        machine=around.machine,
        environment={**around.fixed, "load": _load(around, ended, crowded), "libraries": shared["libraries"]},
        transport=transport,
        started_at=around.started_at,
        wall_s=round(ended.wall_s, 4),
        command=command(case, launch_spec, around.placement),
        artifacts=dict.fromkeys(collect_artifacts(watch), ""),
        stall=ended.stall,
        placement=around.placement.as_record() if around.placement else None,
        sniff=around.sniff,
    )


def status_of(failure: Failure | None) -> Status:
    """A launch whose ranks find out that the case cannot run here has not failed."""
    if failure is None:
        return "ok"
    return "not_runnable" if failure.code == "not_runnable" else "failed"


def failure_of(sign: Sign) -> Failure:
    """A sign with advice."""
    code = known_code(sign.code)
    return Failure(
        code=code,
        rank=sign.rank,
        message=sign.message,
        step=sign.step,
        operation=sign.operation,
        advice=ADVICE[code],
        node=sign.node,
        peer=sign.peer,
    )


def disk_full(error: OSError) -> bool:
    """Whether an error says that the file system has no room."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _transport(case: AnyCase, interface: str, watch: Watch, around: Surroundings) -> dict[str, Any]:
    transport: dict[str, Any] = {
        "ranks": per_rank(watch, "transport"),
        "traffic": per_rank(watch, "traffic"),
        "interface": interface,
        "counters_before": around.counters_before,
        "counters_after": around.counters_after,
    }
    if case.plugin("fabric").makes_nodes:
        transport["fabric"] = read_json(watch.folder / REPORT)
    return transport


def _crowding(case: AnyCase, watch: Watch, around: Surroundings) -> Crowding:
    own_kernels = case.plugin("fabric").own_kernels
    trace = watch.idle if around.placement is None and not own_kernels else IdleTrace()
    crowded = crowding(per_rank(watch, "pace"), per_rank(watch, "late"), trace)
    # Kernels of nodes count their own processors, not this machine's.
    return replace(crowded, idle=None) if own_kernels else crowded


def _oversubscribed(case: AnyCase, around: Surroundings) -> bool:
    if sleeps(case):
        return False
    if around.placement is not None:
        return around.placement.oversubscribed(case.threads_per_rank)
    return case.ranks * case.threads_per_rank > usable_cores()


def _load(around: Surroundings, ended: LaunchEnd, crowded: Crowding) -> dict[str, Any]:
    before, after = (around.load.get(moment) or {} for moment in ("before", "after"))
    return {**around.load, "power_w": power_w(before, after, ended.wall_s), "crowding": asdict(crowded)}


def _leftovers(ended: LaunchEnd) -> list[Warning]:
    if not ended.leftovers:
        return []
    message = f"the launch ended but left {', '.join(ended.leftovers)}; all was removed"
    advice = "a library does not clean up after itself; see its rank logs"
    return [Warning(code="leftovers", message=message, advice=advice)]
