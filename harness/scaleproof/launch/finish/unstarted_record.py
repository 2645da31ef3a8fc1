"""The records of launches of which nothing was started."""

from __future__ import annotations

from collections.abc import Mapping

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import Failure, FailureCode, Record
from scaleproof.launch.finish.surroundings import Surroundings, command
from scaleproof.launch.preflight.experiment_preflight import failed, warnings
from scaleproof.record.digest import code_version
from scaleproof.spec.case import AnyCase

# Without room for the records of all launches there is no use in trying them one by one: disk_full ends the run.
REFUSAL_CODES: Mapping[str, FailureCode] = {"disk": "disk_full", "node_lost": "node_lost"}
"""Failure codes of launches that a preflight check refused, by the check's code; of all other checks `preflight`."""


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
