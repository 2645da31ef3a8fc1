"""Noise floors and bounds of a machine, as calibration measured them: results/machines/<id>/profile.json."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from scaleproof.core.atomic_write import read_form, write_form

FILE = "profile.json"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Floor(_Part):
    """Noise floor of one metric: comparisons of identical arms differ by at most the factor 1 + `share` in 95 % of
    cases."""

    metric: str = Field(description="Name of the metric.")
    program: str = Field(description="Program of the launches: `collective`, `transfer` or `train`.")
    nbytes: int | None = Field(description="Message size, for metrics per size.")
    share: float = Field(description="Identical arms differ by at most the factor 1 + share in 95 % of comparisons.")
    spread: float = Field(description="Standard deviation of the logarithm of one launch's value.")
    launches_per_arm: int = Field(description="Launches of each arm in one comparison.")
    comparisons: int = Field(description="Comparisons of identical arms.")
    taken: str = Field(description="Which launches, arms and pairs, in words.")


class Bound(_Part):
    """An upper bound measured on a machine, with its interval over launches."""

    name: Literal["memory_copy", "two_rank_all_reduce", "loopback", "network", "single_core_flop"]
    nbytes: int | None = Field(None, description="Size that was moved, for bounds that depend on it.")
    value: float = Field(description="Median over launches, in `unit`.")
    low: float | None = Field(description="Lower end of its 95 % interval; None with too few launches.")
    high: float | None = Field(description="Upper end of its 95 % interval; None with too few launches.")
    n: int = Field(description="Launches that gave a value.")
    unit: str = Field(description="Unit of value and interval, such as GB/s.")
    taken: str = Field(description="How it was measured, in words.")


class MachineProfile(_Part):
    """Result of one calibration of a machine. The next calibration replaces it; the records stay."""

    schema_version: Literal[1] = 1
    machine: str = Field(description="Id of the machine.")
    code: str = Field(description="Digest of the code that measured.")
    measured_at: str = Field(description="Date and time of the calibration, UTC.")
    floors: tuple[Floor, ...] = Field(default=(), description="Noise floors.")
    bounds: tuple[Bound, ...] = Field(default=(), description="Upper bounds.")
    runs: tuple[str, ...] = Field(default=(), description="Ids of the launches of the calibration.")

    def floor(self, metric: str, program: str, nbytes: int | None = None) -> Floor | None:
        """The floor of a program's metric; for metrics per message size that of the nearest size, by ratio."""
        fitting = [floor for floor in self.floors if (floor.metric, floor.program) == (metric, program)]
        if nbytes is None:
            return next((floor for floor in fitting if floor.nbytes is None), None)
        sized = [floor for floor in fitting if floor.nbytes is not None]
        return min(sized, key=lambda floor: _ratio(floor.nbytes or 0, nbytes), default=None)

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
