"""From a launch that ended to its record."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, get_args

import numpy as np

from scaleproof.core.atomic_write import read_json
from scaleproof.core.counters import Counters
from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import (
    Check,
    Clock,
    Failure,
    FailureCode,
    InputCheck,
    PreflightCheck,
    RankStatus,
    Record,
    Sniff,
    Warning,
)
from scaleproof.fabric.guests.guest_plan import REPORT
from scaleproof.launch.finish.artifacts import collect_artifacts
from scaleproof.launch.finish.core_saturation import crowding, saturation
from scaleproof.launch.finish.disturbances import link_warnings
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.launch.finish.rank_agreement import agreement, common, own, unequal_hosts
from scaleproof.launch.finish.validity import disturbances, network_of, per_rank, silent_failure
from scaleproof.launch.nodes.allocated_nodes import NodePlacement
from scaleproof.launch.nodes.requested_nodes import options
from scaleproof.launch.preflight.experiment_preflight import failed, warnings
from scaleproof.launch.start.execute import LaunchEnd
from scaleproof.launch.start.replay_profile import sleeps
from scaleproof.launch.watch.failure_signs import Sign, Watch, signal_name
from scaleproof.launch.watch.idle_time import IdleTrace
from scaleproof.record.digest import code_version, machine_id
from scaleproof.record.host import usable_cores
from scaleproof.record.pace import power_w
from scaleproof.record.private_paths import without_private_paths
from scaleproof.spec.case import AnyCase

SHARED_FACTS = ("libraries", "host")
"""Kept once per launch where all ranks agree; a rank's facts have what only it has."""

# Without room for the records of all launches there is no use in trying them one by one: disk_full ends the run.
REFUSAL_CODES: Mapping[str, FailureCode] = {"disk": "disk_full", "node_lost": "node_lost"}
"""Failure codes of launches that a preflight check refused, by the check's code; of all other checks `preflight`."""


@dataclass(slots=True)
class Surroundings:
    """The machine around a launch: `fixed` stays, load and interface counters are read before and after."""

    fixed: dict[str, Any]
    started_at: str
    load: dict[str, Any] = field(default_factory=dict)
    counters_before: Counters = field(default_factory=dict)
    counters_after: Counters = field(default_factory=dict)
    preflight: list[PreflightCheck] = field(default_factory=list)
    """What was found before the experiment, for this launch's case."""
    sniff: Sniff | None = None
    idle: dict[str, float] = field(default_factory=dict)
    """Bytes per second that each interface sent before the experiment, when nothing of ours ran."""
    placement: NodePlacement | None = None
    """Nodes of an allocation; None: this machine, or nodes that the fabric made."""
    machine: str = field(default_factory=machine_id)


def compose(
    case: AnyCase,
    launch_spec: LaunchSpec,
    ended: LaunchEnd,
    watch: Watch,
    events: Mapping[int, np.ndarray],
    around: Surroundings,
    evidence: Any,
) -> Record:
    """The record of a launch that was started."""
    facts = {rank: report["facts"] for rank, report in sorted(watch.reports.items())}
    shared = {name: common(facts, name) for name in SHARED_FACTS}
    preflight, network = [*around.preflight, *agreement(facts)], network_of(watch)
    here = launch_spec.case_of_ranks()
    disturbed = disturbances(
        here, launch_spec.address, watch, events, around.load, around.idle, network, below=around.placement is None
    )
    failure = (
        failure_of(ended.cause)
        if ended.cause
        else silent_failure(here, launch_spec.address, watch, events, preflight, network)
    )
    status: Any = "ok" if failure is None else "not_runnable" if failure.code == "not_runnable" else "failed"
    transport: dict[str, Any] = {
        "ranks": per_rank(watch, "transport"),
        "traffic": per_rank(watch, "traffic"),
        "interface": here.interface,
    }
    transport |= {"counters_before": around.counters_before, "counters_after": around.counters_after}
    if case.plugin("fabric").makes_nodes:
        transport["fabric"] = read_json(watch.folder / REPORT)
    before, after = (around.load.get(moment) or {} for moment in ("before", "after"))
    crowded = crowding(
        per_rank(watch, "pace"),
        per_rank(watch, "late"),
        watch.idle if around.placement is None and not case.plugin("fabric").own_kernels else IdleTrace(),
    )
    if case.plugin("fabric").own_kernels:  # whose kernels tell of their own processors, not of this machine's
        crowded = replace(crowded, idle=None)
    if sleeps(case):
        disturbed += saturation(crowded)
    crowded_out = (
        around.placement.oversubscribed(case.threads_per_rank)
        if around.placement
        else case.ranks * case.threads_per_rank > usable_cores()
    )
    changing = {**around.load, "power_w": power_w(before, after, ended.wall_s), "crowding": asdict(crowded)}
    return Record(
        launch=launch_spec.launch,
        case_id=launch_spec.case_id,
        case=case,
        size=launch_spec.size,
        plan_index=launch_spec.plan_index,
        seed=launch_spec.seed,
        evidence=evidence,
        oversubscribed=not sleeps(case) and crowded_out,
        status=status,
        failure=failure,
        ranks=[_rank_status(rank, watch, shared) for rank in watch.ranks],
        preflight=preflight,
        network=network,
        checks=[
            Check(rank=rank, **check) for rank, report in sorted(watch.reports.items()) for check in report["checks"]
        ],
        clocks=[Clock(rank=rank, **found) for rank, found in enumerate(_clocks(watch)) if found],
        inputs=[
            InputCheck(**found) for _, report in sorted(watch.reports.items()) for found in report.get("inputs", [])
        ],
        warnings=[
            *warnings(around.preflight),
            *_warnings(ended),
            *link_warnings(transport.get("fabric")),
            *disturbed,
            *unequal_hosts(facts),
        ],
        code=code_version(),
        machine=around.machine,
        environment={**around.fixed, "load": changing, "libraries": shared["libraries"]},
        transport=transport,
        started_at=around.started_at,
        wall_s=round(ended.wall_s, 4),
        command=command(case, launch_spec, around.placement),
        artifacts=dict.fromkeys(collect_artifacts(watch), ""),
        stall=ended.stall,
        placement=around.placement.as_record() if around.placement else None,
        sniff=around.sniff,
    )


def not_started(case: AnyCase, launch_spec: LaunchSpec, reason: str, advice: str, around: Surroundings) -> Record:
    """The record of a case that cannot run here."""
    failure = Failure(code="not_runnable", rank=-1, message=reason, step=-1, operation="", advice=advice)
    return Record(
        launch=launch_spec.launch,
        case_id=launch_spec.case_id,
        case=case,
        size=launch_spec.size,
        plan_index=launch_spec.plan_index,
        seed=launch_spec.seed,
        evidence="simulated" if case.plugin("fabric").predicted else "measured",
        oversubscribed=False,
        status="not_runnable",
        failure=failure,
        ranks=[],
        checks=[],
        warnings=[],
        code=code_version(case.fabric),
        machine=around.machine,
        environment=around.fixed,
        transport={},
        started_at=around.started_at,
        wall_s=0.0,
        command=command(case, launch_spec),
    )


def refused(case: AnyCase, launch_spec: LaunchSpec, around: Surroundings) -> Record:
    """The record of a launch that its preflight forbids."""
    wrong = failed(around.preflight)
    assert wrong is not None, "a launch is refused for a reason"
    failure = Failure(
        code=REFUSAL_CODES.get(wrong.code, "preflight"),
        rank=-1,
        message=f"{wrong.code}: {wrong.message}",
        step=-1,
        operation="",
        advice=wrong.advice,
        node=wrong.node,
    )
    record = not_started(case, launch_spec, "", "", around)
    return record.model_copy(
        update={
            "status": "failed",
            "failure": failure,
            "preflight": around.preflight,
            "warnings": warnings(around.preflight),
        }
    )


def command(case: AnyCase, launch_spec: LaunchSpec, placement: NodePlacement | None = None) -> list[str]:
    """What a person types to run this launch again."""
    chosen = [
        "--size",
        launch_spec.size,
        "--case",
        launch_spec.case_id,
        "--launch",
        str(launch_spec.plan_index),
        "--again",
    ]
    return [
        "scaleproof",
        "run",
        case.suite,
        case.experiment,
        *chosen,
        *(options(placement.allocation) if placement else []),
    ]


def failure_of(sign: Sign) -> Failure:
    """A sign with advice; an exception's own code counts only when it is one of the record's."""
    code: Any = sign.code if sign.code in get_args(FailureCode) else "rank_raised"
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


def _rank_status(rank: int, watch: Watch, shared: Mapping[str, Mapping[str, Any]]) -> RankStatus:
    """A rank that has not ended was ended by the supervisor."""
    end, report, line = watch.ends.get(rank), watch.reports.get(rank), watch.board.read(rank)
    code: Any = (
        report["code"]
        if report and report["code"] in get_args(FailureCode)
        else "rank_raised"
        if report and report["code"]
        else None
    )
    message = (
        report["message"]
        if report
        else ""
        if end is None
        else f"killed by {signal_name(end['signal'])}"
        if end["signal"]
        else ""
    )
    facts = {
        key: value for key, value in (report or {"facts": {}})["facts"].items() if key not in ("traffic", "transport")
    }
    facts |= {name: own(facts, name, values) for name, values in shared.items() if name in facts}
    status: Any = (
        "killed"
        if end is None or end["signal"] is not None
        else "ok"
        if report and report["status"] == "ok" and end["exit_code"] == 0
        else "failed"
    )
    return RankStatus(
        rank=rank,
        pid=watch.board.pid(rank),
        exit_code=end["exit_code"] if end else None,
        signal=end["signal"] if end else None,
        status=status,
        code=code,
        message=message,
        step=line.step,
        operation=line.operation,
        facts=without_private_paths(facts),
    )


def _clocks(watch: Watch) -> list[dict[str, Any] | None]:
    """Each rank's comparison with rank 0's clock, None where there was none."""
    return [
        {name: found[name] for name in ("offset_ns", "uncertainty_ns")} if found else None
        for found in per_rank(watch, "clock")
    ]


def _warnings(ended: LaunchEnd) -> list[Warning]:
    found = []
    if ended.leftovers:
        message = f"the launch ended but left {', '.join(ended.leftovers)}; all was removed"
        found.append(
            Warning(
                code="leftovers", message=message, advice="a library does not clean up after itself; see its rank logs"
            )
        )
    return found
