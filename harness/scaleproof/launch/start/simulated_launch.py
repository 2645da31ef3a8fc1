"""Launches of fabric `simulated`: nothing starts, the prediction of a simulator becomes the record. The simulator is an
upper room and passed in by the caller."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from scaleproof.core.launch_spec import LaunchSpec
from scaleproof.core.record_schema import Record
from scaleproof.launch.finish.surroundings import Surroundings, command
from scaleproof.launch.obstacle import Obstacle, obstacle_of
from scaleproof.record.digest import code_digest, code_version, machine_id
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import PlannedLaunch

if TYPE_CHECKING:
    import pyarrow as pa

FABRIC = "simulated"


@dataclass(frozen=True, slots=True)
class Predicted:
    """Samples in the record's form, and what they follow from."""

    samples: pa.Table
    facts: dict[str, Any]


class Simulator(Protocol):
    """What the supervisor needs of it. Both raise SpecError, one line with what to type, where an input is missing."""

    def inputs(self, case: AnyCase) -> str:
        """Digest of all that the case's prediction follows from besides the code."""

    def predict(self, launch: PlannedLaunch) -> Predicted:
        """The prediction of one planned launch."""


def not_predictable(launch: PlannedLaunch, simulator: Simulator | None) -> Obstacle | None:
    """Why the launch cannot be predicted here, and what to do."""
    if simulator is None:
        return Obstacle("nothing here simulates", "use `scaleproof run`")
    try:
        simulator.inputs(launch.case)
    except SpecError as error:
        return obstacle_of(error, "see docs/simulator.md")
    return None


def finished(launch: PlannedLaunch, simulator: Simulator | None, store: Store) -> bool:
    """Whether there is a record of this launch by this code from the same costs, profile and cluster."""
    if not_predictable(launch, simulator) is not None or simulator is None:
        return False
    wanted = simulator.inputs(launch.case)
    version = (launch.plan_index, "ok", code_digest(FABRIC), machine_id())
    return any(
        (record.plan_index, record.status, record.code.digest, record.machine) == version
        and record.transport.get("prediction", {}).get("inputs") == wanted
        for record in store.records(launch.case.case_id)
    )


def predicted_record(
    launch: PlannedLaunch, launch_spec: LaunchSpec, simulator: Simulator, around: Surroundings
) -> tuple[Record, pa.Table]:
    """The record of a prediction, with its samples."""
    started, case = time.monotonic(), launch.case
    found = simulator.predict(launch)
    record = Record(
        launch=launch_spec.launch,
        case_id=launch_spec.case_id,
        case=case,
        size=launch_spec.size,
        plan_index=launch_spec.plan_index,
        seed=launch_spec.seed,
        evidence="simulated",
        oversubscribed=False,
        status="ok",
        failure=None,
        ranks=[],
        checks=[],
        warnings=[],
        code=code_version(FABRIC),
        machine=machine_id(),
        environment=around.fixed,
        transport={"prediction": found.facts},
        started_at=around.started_at,
        wall_s=round(time.monotonic() - started, 4),
        command=command(case, launch_spec),
    )
    return record, found.samples
