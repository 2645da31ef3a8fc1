"""Launches of fabric `simulated`: no process starts, a simulator's prediction becomes the record. The caller passes the
simulator in, since it belongs to a package above this one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.predicted import Predicted
from scaleproof.core.record_schema import Failure, Record
from scaleproof.launch.finish.failure_advice import ADVICE
from scaleproof.launch.finish.surroundings import Surroundings, launch_fields
from scaleproof.launch.obstacle import Obstacle, obstacle_of
from scaleproof.record.digest import machine_id
from scaleproof.record.store import Store
from scaleproof.record.used_code import code_of, is_current
from scaleproof.record.write import samples_table
from scaleproof.spec.case import AnyCase, OwnCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch

if TYPE_CHECKING:
    import pyarrow as pa

FABRIC = "simulated"


class Simulator(Protocol):
    """What the supervisor needs of a simulator. Where an input is missing the first two methods raise SpecError, one
    line with the command that makes it."""

    def inputs(self, case: AnyCase, programs: str = "") -> str:
        """Digest of the inputs of the case's prediction, without the code. `programs`: folder of the suite's own."""

    def predict(self, launch: PlannedLaunch) -> Predicted:
        """The prediction of one planned launch."""

    def byte_s(self, case: AnyCase) -> float:
        """What a byte of a rank's own arithmetic takes, s: the same in a prediction and beside replayed compute."""


def not_predictable(launch: PlannedLaunch, simulator: Simulator | None) -> Obstacle | None:
    """Why the launch cannot be predicted here, and what to do."""
    if simulator is None:
        return Obstacle("nothing here simulates", "use `scaleproof run`", "simulator")
    try:
        simulator.inputs(launch.case, launch.programs)
    except SpecError as error:
        return obstacle_of(error, "see docs/simulator.md", "inputs of the simulator")
    return None


def finished(launch: PlannedLaunch, simulator: Simulator | None, store: Store) -> bool:
    """Whether there is a record of this launch by this code from the same costs, profile and cluster."""
    if not_predictable(launch, simulator) is not None or simulator is None:
        return False
    inputs = simulator.inputs(launch.case, launch.programs)
    version = (launch.plan_index, "ok", machine_id())
    return any(
        (record.plan_index, record.status, record.machine) == version
        and is_current(record.code, FABRIC)
        and record.transport.get("prediction", {}).get("inputs") == inputs
        for record in store.records(launch.case.case_id)
    )


def _wrong(check: dict[str, Any]) -> Failure:
    """The failure of a check of what was computed."""
    return Failure(
        code="check_failed",
        rank=check["rank"],
        message=f"check {check['name']} failed: {check['detail']}",
        step=-1,
        operation="",
        advice=ADVICE["check_failed"],
    )


def _raised(error: SpecError) -> Failure:
    """The failure of a program in virtual time."""
    return Failure(
        code="rank_raised",
        rank=-1,
        message=str(error),
        step=-1,
        operation="",
        advice="correct the file that the message names; if it names none, the program is at fault: docs/programs.md",
    )


def predicted_record(
    launch: PlannedLaunch, launch_spec: LaunchSpec, simulator: Simulator, surroundings: Surroundings
) -> tuple[Record, pa.Table]:
    """The record of a prediction, and its samples. Where a suite's own program fails in virtual time, the record says
    so, as that of a launch in processes does."""
    started, failure = time.monotonic(), None  # `took_s`: another process may have predicted it meanwhile
    try:
        prediction = simulator.predict(launch)
    except SpecError as error:
        if not isinstance(launch.case, OwnCase):
            raise
        prediction, failure = Predicted(samples_table({}), {}), _raised(error)
    wrong = next((check for check in prediction.checks if not check["passed"]), None)
    failure = failure or (None if wrong is None else _wrong(wrong))
    record = Record(
        **launch_fields(launch.case, launch_spec, surroundings),
        evidence="simulated",
        oversubscribed=False,
        status="ok" if failure is None else "failed",
        failure=failure,
        ranks=[],
        checks=prediction.checks,
        warnings=[],
        code=code_of(launch.case, launch.programs),
        environment=surroundings.fixed,
        transport={"prediction": prediction.facts} if prediction.facts else {},
        wall_s=round(prediction.facts.get("took_s", time.monotonic() - started), 4),
    )
    return record, prediction.samples
