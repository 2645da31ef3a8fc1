"""Composes the record of a launch that has ended."""

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
from scaleproof.launch.finish.surroundings import Surroundings, launch_fields
from scaleproof.launch.finish.validity import disturbances, network_of, per_rank, silent_failure
from scaleproof.launch.preflight.experiment_preflight import warnings
from scaleproof.launch.start.execute import LaunchEnd
from scaleproof.launch.watch.failure_signs import Sign, Watch
from scaleproof.launch.watch.idle_time import IdleTrace
from scaleproof.record.host import usable_cores
from scaleproof.record.machine_load import mean_power_w
from scaleproof.record.used_code import code_of
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.evidence import software_device
from scaleproof.spec.launch_kind import communication_threads, computes, shares_cores, sleeps

SHARED_FACTS = ("libraries", "host")
"""Facts that are kept once per launch where all ranks agree; a rank's own facts hold the rest."""


def compose(
    case: AnyCase,
    launch_spec: LaunchSpec,
    launch_end: LaunchEnd,
    watch: Watch,
    events: Mapping[int, np.ndarray],
    surroundings: Surroundings,
    evidence: Evidence,
) -> Record:
    """The record of a launch that was started."""
    facts = {rank: report["facts"] for rank, report in sorted(watch.reports.items())}
    shared = {name: common(facts, name) for name in SHARED_FACTS}
    preflight, network = [*surroundings.preflight, *agreement(facts)], network_of(watch)
    of_ranks, address = launch_spec.case_of_ranks(), launch_spec.address
    if launch_end.cause is not None:
        failure: Failure | None = failure_of(launch_end.cause)
    else:
        failure = silent_failure(of_ranks, address, watch, events, preflight, network)
    transport = _transport(case, of_ranks.interface, watch, surroundings)
    crowded = _crowding(case, watch, surroundings)
    load = _load(surroundings, launch_end, crowded)
    return Record(
        **launch_fields(case, launch_spec, surroundings),
        **_fields_of_ranks(watch, shared),
        evidence=_evidence(facts, evidence),
        oversubscribed=_oversubscribed(case, surroundings),
        shared_cores=_shared_cores(case, surroundings),
        status=status_of(failure),
        failure=failure,
        preflight=preflight,
        network=network,
        warnings=[
            *warnings(surroundings.preflight),
            *_leftovers(launch_end),
            *link_warnings(transport.get("fabric")),
            *disturbances(of_ranks, address, watch, events, surroundings, network),
            *(saturation(crowded) if _may_crowd(case, surroundings) else []),
            *unequal_hosts(facts),
        ],
        code=code_of(case, launch_spec.programs),
        environment={**surroundings.fixed, "load": load, "libraries": shared["libraries"]},
        transport=transport,
        wall_s=round(launch_end.wall_s, 4),
        artifacts=dict.fromkeys(collect_artifacts(watch), ""),
        stall=launch_end.stall,
        placement=surroundings.placement.as_record() if surroundings.placement else None,
        sniff=surroundings.sniff,
    )


def _evidence(facts: Mapping[int, Mapping[str, Any]], planned: Evidence) -> Evidence:
    """`emulated` where a rank's verbs device is made of software."""
    return "emulated" if any(software_device(of_rank) for of_rank in facts.values()) else planned


def _fields_of_ranks(watch: Watch, shared: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of a record that hold one entry per rank, or several."""
    reports = sorted(watch.reports.items())
    return {
        "ranks": [rank_status(rank, watch, shared) for rank in watch.ranks],
        "checks": [Check(rank=rank, **check) for rank, report in reports for check in report["checks"]],
        "clocks": rank_clocks(watch),
        "inputs": [InputCheck(**check) for _, report in reports for check in report.get("inputs", [])],
    }


def status_of(failure: Failure | None) -> Status:
    """`not_runnable` where the ranks themselves reported that the case cannot run here; that is no failure."""
    if failure is None:
        return "ok"
    return "not_runnable" if failure.code == "not_runnable" else "failed"


def failure_of(sign: Sign) -> Failure:
    """The record's failure for the sign that caused it, with advice."""
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
    """Whether the file system has no room."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _transport(case: AnyCase, interface: str, watch: Watch, surroundings: Surroundings) -> dict[str, Any]:
    transport: dict[str, Any] = {
        "ranks": per_rank(watch, "transport"),
        "traffic": per_rank(watch, "traffic"),
        "interface": interface,
        "counters_before": surroundings.counters_before,
        "counters_after": surroundings.counters_after,
    }
    if case.plugin("fabric").makes_nodes:
        transport["fabric"] = read_json(watch.folder / REPORT)
    return transport


def _crowding(case: AnyCase, watch: Watch, surroundings: Surroundings) -> Crowding:
    own_kernels = case.plugin("fabric").own_kernels
    trace = watch.idle if surroundings.placement is None and not own_kernels else IdleTrace()
    crowded = crowding(per_rank(watch, "pace"), per_rank(watch, "late"), trace)
    # The kernel of a guest counts the guest's own processors, not this machine's.
    return replace(crowded, idle=None) if own_kernels else crowded


def _oversubscribed(case: AnyCase, surroundings: Surroundings) -> bool:
    return not sleeps(case) and _more_threads_than_cores(case, surroundings)


def _may_crowd(case: AnyCase, surroundings: Surroundings) -> bool:
    """Whether ranks that sleep may have to wait for a core. Ranks of a suite's own program, each with a core, do not:
    between sleeps they may fill their cores with exchanges."""
    return sleeps(case) and (not isinstance(case, OwnCase) or _more_threads_than_cores(case, surroundings))


def _more_threads_than_cores(case: AnyCase, surroundings: Surroundings) -> bool:
    if surroundings.placement is not None:
        return surroundings.placement.oversubscribed(case.threads_per_rank)
    return case.ranks * case.threads_per_rank > usable_cores()


def _shared_cores(case: AnyCase, surroundings: Surroundings) -> bool:
    placement = surroundings.placement
    if placement is None:
        return shares_cores(case, usable_cores())
    all_threads = case.threads_per_rank + communication_threads(case)
    return computes(case) and not _oversubscribed(case, surroundings) and placement.oversubscribed(all_threads)


def _load(surroundings: Surroundings, launch_end: LaunchEnd, crowded: Crowding) -> dict[str, Any]:
    before, after = (surroundings.load.get(moment) or {} for moment in ("before", "after"))
    seconds = (after.get("at_ns", 0) - before.get("at_ns", 0)) / 1e9
    return {**surroundings.load, "power_w": mean_power_w(before, after, seconds), "crowding": asdict(crowded)}


def _leftovers(launch_end: LaunchEnd) -> list[Warning]:
    if not launch_end.leftovers:
        return []
    message = f"the launch ended but left {', '.join(launch_end.leftovers)}; all was removed"
    advice = "a library does not clean up after itself; see its rank logs"
    return [Warning(code="leftovers", message=message, advice=advice)]
