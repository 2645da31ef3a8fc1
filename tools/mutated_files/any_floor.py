"""A machine whose noise is known for every kind of launch, so that a dry run says what it can decide of any file."""

from __future__ import annotations

from scaleproof.record.machine import Floor, MachineProfile
from scaleproof.spec.launch_kind import LaunchKind

SHARE, SPREAD = 0.02, 0.01
"""As on a quiet machine."""


def made_up_floor(metric: str, kind: LaunchKind, nbytes: int | None, share: float, spread: float) -> Floor:
    """A floor that nothing measured."""
    return Floor(
        metric=metric,
        kind=kind,
        nbytes=nbytes,
        share=share,
        spread=spread,
        launches_per_arm=6,
        comparisons=5,
        taken="made up",
    )


class AnyFloor(MachineProfile):
    """Has the same noise floor for every metric, kind of launch and message size."""

    def floor(self, metric: str, kind: LaunchKind, nbytes: int | None = None) -> Floor:
        """See MachineProfile."""
        return made_up_floor(metric, kind, nbytes, SHARE, SPREAD)


PROFILE = AnyFloor(machine="made up", code="", measured_at="2016-01-01T00:00:00Z")
