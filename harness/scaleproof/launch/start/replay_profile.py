"""The profile of a launch whose compute is replayed: read before the start, passed to the ranks, described in the
record."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from scaleproof.core.record_schema import Record
from scaleproof.launch.obstacle import Obstacle, obstacle_of
from scaleproof.record.digest import machine_id
from scaleproof.spec.case import AnyCase, TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.spec.relative_times import relative_times
from scaleproof.workloads.profile import FILE, Profile, profile_of


def replays(case: AnyCase) -> bool:
    """Whether its ranks sleep instead of computing. The simulator uses profiles too, but has no ranks."""
    return isinstance(case, TrainCase) and case.compute == "replay" and not case.plugin("fabric").predicted


def profile_for(case: AnyCase, results: Path) -> Profile | Obstacle | None:
    """The profile that a case replays, or why there is none; None where it replays nothing."""
    if not replays(case):
        return None
    assert isinstance(case, TrainCase)
    try:
        relative_times(case)
        return profile_of(case, results / "machines" / machine_id())
    except SpecError as error:
        return obstacle_of(error, "see docs/replay.md", "profile")


def stall_limit_s(case: AnyCase, profile: Profile | None, stall_s: float) -> float:
    """`stall_s`; where ranks sleep instead of computing at least twice the length of a step, since a sleeping rank
    looks like one that hangs."""
    slowest = max(relative_times(case), default=1.0)
    return stall_s if profile is None else max(stall_s, 2 * profile.step_s * slowest * case.dilation)


def write_profile(profile: Profile, folder: Path) -> None:
    """Write the profile for the ranks into the launch's folder; the file becomes part of the record."""
    (folder / FILE).write_text(profile.model_dump_json())


def described(profile: Profile, case: AnyCase) -> dict[str, Any]:
    """For the record, beside the file: where the times were measured, how, the digest of the profile, and how much
    longer each rank computes where nodes are of several types."""
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
        **({"relative_times": list(times)} if (times := relative_times(case)) else {}),
    }


def digest(profile: Profile) -> str:
    """SHA-256 of the file that ranks read."""
    return hashlib.sha256(profile.model_dump_json().encode()).hexdigest()


def same_profile(record: Record, results: Path) -> bool:
    """Whether a launch replayed the profile that it would replay now; else it does not count as finished."""
    profile = profile_for(record.case, results)
    return profile is None or (
        isinstance(profile, Profile) and record.environment.get("replay", {}).get("sha256") == digest(profile)
    )
