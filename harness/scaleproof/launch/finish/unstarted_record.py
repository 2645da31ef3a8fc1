"""The records of launches of which no process was started."""

from __future__ import annotations

from collections.abc import Mapping

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import Failure, FailureCode, Record
from scaleproof.launch.finish.surroundings import Surroundings, launch_fields
from scaleproof.launch.obstacle import Obstacle
from scaleproof.launch.preflight.experiment_preflight import failed, warnings
from scaleproof.record.used_code import code_of
from scaleproof.spec.case import AnyCase
from scaleproof.spec.evidence import planned_evidence

# disk_full ends the run: without room for the records of all launches there is no use in trying them one by one.
REFUSAL_CODES: Mapping[str, FailureCode] = {"disk": "disk_full", "node_lost": "node_lost"}
"""Failure code of a launch that a preflight check refused, by the check's code; all other checks: `preflight`."""


def not_started(case: AnyCase, launch_spec: LaunchSpec, hindrance: Obstacle, surroundings: Surroundings) -> Record:
    """The record of a case that cannot run here."""
    failure = Failure(
        code="not_runnable",
        rank=-1,
        message=hindrance.reason,
        step=-1,
        operation="",
        advice=hindrance.advice,
        requirement=hindrance.requirement,
    )
    return Record(
        **launch_fields(case, launch_spec, surroundings),
        evidence=planned_evidence(case),
        oversubscribed=False,
        status="not_runnable",
        failure=failure,
        ranks=[],
        checks=[],
        warnings=[],
        code=code_of(case, launch_spec.programs),
        environment=surroundings.fixed,
        transport={},
        wall_s=0.0,
    )


def refused(case: AnyCase, launch_spec: LaunchSpec, surroundings: Surroundings) -> Record:
    """The record of a launch that a preflight check forbids."""
    check = failed(surroundings.preflight)
    assert check is not None, "a launch is refused because a check failed"
    failure = Failure(
        code=REFUSAL_CODES.get(check.code, "preflight"),
        rank=-1,
        message=f"{check.code}: {check.message}",
        step=-1,
        operation="",
        advice=check.advice,
        node=check.node,
    )
    record = not_started(case, launch_spec, Obstacle("", ""), surroundings)
    return record.model_copy(
        update={
            "status": "failed",
            "failure": failure,
            "preflight": surroundings.preflight,
            "warnings": warnings(surroundings.preflight),
        }
    )
