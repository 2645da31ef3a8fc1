"""What holds for all launches of a plan, and what one launch needs for its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scaleproof.core.launch_spec import STALL_S, LaunchSpec
from scaleproof.core.record_schema import Evidence, Failure, PreflightCheck, Record
from scaleproof.launch.nodes.allocated_nodes import NodePlacement
from scaleproof.launch.obstacle import Obstacle
from scaleproof.launch.start.predicted_ahead import PredictedAhead
from scaleproof.launch.start.replay_profile import Replayed

if TYPE_CHECKING:
    import pyarrow as pa

    from scaleproof.spec.case import AnyCase
    from scaleproof.spec.plan import PlannedLaunch

Refusal = Callable[["AnyCase"], Obstacle | None]
"""The obstacle where a case needs more than this machine can carry."""
Verification = Callable[[Record, "pa.Table"], "Failure | None"]
"""Why a good record and its samples cannot be true."""


@dataclass(frozen=True, slots=True)
class LaunchRules:
    """Settings of all launches of a plan: `size` of the suite, limits in s; for the rest see run_plan."""

    size: str
    deadline_s: float
    stall_s: float = STALL_S
    verify: Verification | None = None
    simulator: PredictedAhead | None = None
    refuse: Refusal = lambda case: None
    near_cores_s: float | None = None
    timed: bool = True


@dataclass(frozen=True, slots=True)
class PreparedLaunch:
    """A launch whose checks have passed, with everything that its start needs."""

    planned: PlannedLaunch
    launch_spec: LaunchSpec
    checks: list[PreflightCheck]
    replayed: Replayed | None
    placement: NodePlacement | None
    evidence: Evidence
