"""The profile of a launch whose compute is replayed, and how unevenly: read before the start, passed to the ranks,
described in the record."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleproof.core.record_schema import Record
from scaleproof.launch.obstacle import Obstacle, obstacle_of
from scaleproof.record.digest import machine_id
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.faults import faults_of
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.relative_times import relative_times
from scaleproof.spec.straggler_law import StragglerLaw
from scaleproof.workloads.jitter_model import drawn_from, resolved
from scaleproof.workloads.profile import FILE, Profile, profile_of


def replays(case: AnyCase) -> bool:
    """Whether its ranks sleep instead of computing. The simulator uses profiles too, but has no ranks."""
    return isinstance(case, TrainCase) and case.compute == "replay" and not case.plugin("fabric").predicted


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a launch replays. `jitter`: the law of its steps' factors with its numbers; None: all steps are alike.
    `byte_s`: what a byte of a strategy's own arithmetic takes, s."""

    profile: Profile
    jitter: StragglerLaw | None = None
    byte_s: float = 0.0

    @property
    def law(self) -> str:
        """The law as ranks read it; empty: none."""
        return self.jitter.text if self.jitter else ""


def replayed_for(case: AnyCase, results: Path, byte_s: float = 0.0) -> Replayed | Obstacle | None:
    """What a case replays, or why it cannot; None where it replays nothing. `byte_s`: see Replayed."""
    if not replays(case):
        return None
    assert isinstance(case, TrainCase)
    try:
        relative_times(case)
        profile = profile_of(case, results / "machines" / machine_id())
    except SpecError as error:
        return obstacle_of(error, "see docs/replay.md", "profile")
    compute = case.compute_options
    if compute.jitter is None:
        return Replayed(profile, byte_s=byte_s)
    try:
        return Replayed(profile, resolved(compute.jitter, results, machine_id(), compute.profile), byte_s)
    except SpecError as error:
        return obstacle_of(error, "see docs/replay.md", "jitter")


def stall_limit_s(planned: PlannedLaunch, replayed: Replayed | None, stall_s: float) -> float:
    """`stall_s`; at least twice the length of the longest step where ranks sleep instead of computing, and of the
    longest wait that a fault of the case makes, since a sleeping rank looks like one that hangs."""
    if isinstance(planned.case, TrainCase):
        stall_s = max(stall_s, 2 * faults_of(planned.case.faults).longest_wait_s * planned.case.dilation)
    if replayed is None:
        return stall_s
    slowest = max(relative_times(planned.case), default=1.0) * _largest(planned, replayed)
    return max(stall_s, 2 * replayed.profile.step_s * slowest * planned.case.dilation)


def _largest(planned: PlannedLaunch, replayed: Replayed) -> float:
    """The largest factor of any rank in any step."""
    case, law = planned.case, drawn_from(replayed.jitter) if replayed.jitter else None
    if law is None or not isinstance(case, TrainCase):
        return 1.0
    steps = range(case.warmup + case.steps)
    return max(float(law.factors(case.ranks, planned.seed, step).max()) for step in steps)


def write_profile(replayed: Replayed, folder: Path) -> None:
    """Write the profile for the ranks into the launch's folder; the file becomes part of the record."""
    (folder / FILE).write_text(replayed.profile.model_dump_json())


def described(replayed: Replayed, case: AnyCase) -> dict[str, Any]:
    """For the record, beside the file: where the times were measured, how, and the digest of the profile; the law of
    jitter, and what a byte of own arithmetic takes, where there are such; and how much longer each rank computes where
    nodes are of several types."""
    profile = replayed.profile
    return {
        "sha256": digest(profile),
        "node": profile.node,
        "framework": profile.framework,
        "code": profile.code,
        "measured_at": profile.measured_at,
        "taken": profile.taken,
        "forward_s": profile.forward_s,
        "backward_s": profile.backward_s,
        "update_s": profile.update_s.median,
        **({"jitter": replayed.law} if replayed.jitter else {}),
        **({"byte_s": replayed.byte_s} if replayed.byte_s else {}),
        **({"relative_times": list(times)} if (times := relative_times(case)) else {}),
    }


def digest(profile: Profile) -> str:
    """SHA-256 of the file that ranks read."""
    return hashlib.sha256(profile.model_dump_json().encode()).hexdigest()


def same_replay(record: Record, results: Path, byte_s: float = 0.0) -> bool:
    """Whether a launch replayed what it would replay now; else it does not count as finished."""
    replayed, then = replayed_for(record.case, results), record.environment.get("replay", {})
    if replayed is None:
        return True
    if not isinstance(replayed, Replayed):
        return False
    now = digest(replayed.profile), replayed.law, byte_s
    return (then.get("sha256"), then.get("jitter", ""), then.get("byte_s", 0.0)) == now
