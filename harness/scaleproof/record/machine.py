"""Noise floors and bounds of a machine, as calibration measured them: results/machines/<id>/profile.json."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.spec.launch_kind import LaunchKind

FILE = "profile.json"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Floor(_Part):
    """Noise floor of one metric of one kind of launch: comparisons of identical arms differ by at most the factor
    1 + `share` in 95 % of cases."""

    metric: str = Field(description="Name of the metric.")
    kind: LaunchKind = Field(description="The kind of launches that it holds for.")
    nbytes: int | None = Field(description="Message size, for metrics per size.")
    share: float = Field(description="Identical arms differ by at most the factor 1 + share in 95 % of comparisons.")
    spread: float = Field(description="Standard deviation of the logarithm of one launch's value.")
    launches_per_arm: int = Field(description="Launches of each arm in one comparison.")
    comparisons: int = Field(description="Comparisons of identical arms.")
    taken: str = Field(description="Which launches, arms and pairs, in words.")


class Bound(_Part):
    """An upper bound measured on a machine: the fastest of many repetitions in several launches."""

    name: Literal[
        "memory_copy",
        "plain_memory_copy",
        "two_rank_all_reduce",
        "plain_two_rank_all_reduce",
        "loopback",
        "network",
        "single_core_flop",
    ]
    nbytes: int | None = Field(None, description="Size that was moved, for bounds that depend on it.")
    value: float = Field(description="The fastest launch, in `unit`.")
    low: float | None = Field(description="The slowest launch; None where it is not known.")
    high: float | None = Field(description="The fastest launch; None where it is not known.")
    n: int = Field(description="Launches that gave a value.")
    unit: str = Field(description="Unit of value and interval, such as GB/s.")
    taken: str = Field(description="How it was measured, in words.")


class MachineProfile(_Part):
    """Result of one calibration of a machine. The next calibration replaces it; the records stay."""

    schema_version: Literal[2] = 2
    machine: str = Field(description="Id of the machine.")
    code: str = Field(description="Digest of the code that measured.")
    measured_at: str = Field(description="Date and time of the calibration, UTC.")
    floors: tuple[Floor, ...] = Field(default=(), description="Noise floors.")
    bounds: tuple[Bound, ...] = Field(default=(), description="Upper bounds.")
    runs: tuple[str, ...] = Field(default=(), description="Ids of the launches of the calibration.")

    def floor(self, metric: str, kind: LaunchKind, nbytes: int | None = None) -> Floor | None:
        """The floor of a metric of one kind of launch; for metrics per message size that of the nearest size, by
        ratio, or the largest where no size is asked for."""
        fitting = [floor for floor in self.floors if (floor.metric, floor.kind) == (metric, kind)]
        if nbytes is None:
            return max(fitting, key=lambda floor: (floor.nbytes is None, floor.share), default=None)
        sized = [floor for floor in fitting if floor.nbytes is not None]
        return min(sized, key=lambda floor: _ratio(floor.nbytes or 0, nbytes), default=None)

    def with_floors(self, floors: Iterable[Floor], runs: Iterable[str]) -> MachineProfile:
        """The profile with these floors too, in place of earlier ones of the same metric, kind and message size."""
        merged = {(floor.metric, floor.kind, floor.nbytes): floor for floor in (*self.floors, *floors)}
        all_runs = tuple(dict.fromkeys((*self.runs, *runs)))
        return self.model_copy(update={"floors": tuple(merged.values()), "runs": all_runs})

    def bound(self, name: str, nbytes: int | None = None) -> Bound | None:
        """A bound by name: of several sizes the nearest to `nbytes` by ratio, or the highest bound without `nbytes`."""
        fitting = [bound for bound in self.bounds if bound.name == name]
        if nbytes is None or any(bound.nbytes is None for bound in fitting):
            return max(fitting, key=lambda bound: bound.value, default=None)
        return min(fitting, key=lambda bound: _ratio(bound.nbytes or 0, nbytes), default=None)


def read_profile(results: Path, machine: str) -> MachineProfile | None:
    """The machine's profile; None if it was never calibrated, SpecError for a file of another version."""
    remedy = "no profile of this version; `scaleproof calibrate` writes a new one"
    return read_form(results / "machines" / machine / FILE, MachineProfile, remedy)


def write_profile(results: Path, profile: MachineProfile) -> Path:
    """Write the file by one rename."""
    return write_form(results / "machines" / profile.machine / FILE, profile)


def _ratio(first: int, second: int) -> float:
    small, large = sorted((first + 1, second + 1))
    return large / small
