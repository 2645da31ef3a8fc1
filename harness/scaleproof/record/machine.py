"""Noise floors and bounds of a machine, as calibration measured them: results/machines/<id>/profile.json."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.spec.launch_kind import LaunchKind

FILE = "profile.json"
NEAR = 4.0
"""Factor between two message sizes up to which a floor of one counts for the other."""
WITHIN_95_PERCENT = 1.96
"""Standard deviations from the mean within which 95 % of normal values lie."""


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
    comparisons: int = Field(
        description="Comparisons of identical arms that share no launch; 0: from launches of one case, without pairs."
    )
    taken: str = Field(description="Which launches, arms and pairs, in words.")
    code: str = Field("", description="Digest of the code that measured it; empty: not known.")

    @property
    def key(self) -> tuple[str, LaunchKind, int | None]:
        """What it is a floor of; a profile has one of each."""
        return self.metric, self.kind, self.nbytes

    @property
    def paired(self) -> bool:
        """Whether pairs of identical arms gave it. Else it is rather too large: seeds and drift are part of it."""
        return self.comparisons > 0

    @property
    def of_one_launch(self) -> float:
        """The floor of comparisons of one launch with one other."""
        return floor_of_one_launch(self.share, self.spread)

    def of(self, launches: int) -> float:
        """The floor of comparisons with so many launches an arm."""
        return floor_of_launches(self.share, self.launches_per_arm, launches)


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
    """What calibrations of a machine measured. A new one replaces what it measures again; the records stay."""

    schema_version: Literal[2] = 2
    machine: str = Field(description="Id of the machine.")
    code: str = Field(
        description="Digest of the code of the last whole calibration; empty: only floors of suites were measured."
    )
    measured_at: str = Field(description="Date and time of the last calibration, UTC.")
    floors: tuple[Floor, ...] = Field(default=(), description="Noise floors.")
    bounds: tuple[Bound, ...] = Field(default=(), description="Upper bounds.")
    runs: tuple[str, ...] = Field(default=(), description="Ids of the launches of the calibrations.")

    def floor(self, metric: str, kind: LaunchKind, nbytes: int | None = None) -> Floor | None:
        """The floor of a metric of one kind of launch; for metrics per message size that of the nearest size, at
        most the factor NEAR away, or the largest floor where no size is asked for."""
        fitting = [floor for floor in self.floors if (floor.metric, floor.kind) == (metric, kind)]
        if nbytes is None:
            return max(fitting, key=lambda floor: (floor.nbytes is None, floor.share), default=None)
        sized = [floor for floor in fitting if floor.nbytes is not None and _ratio(floor.nbytes, nbytes) <= NEAR]
        return min(sized, key=lambda floor: _ratio(floor.nbytes or 0, nbytes), default=None)

    def with_floors(self, floors: Iterable[Floor], runs: Iterable[str]) -> MachineProfile:
        """The profile with these floors too. Of two with the same metric, kind and message size a paired one counts;
        of two such with the same code the noisier one, else the new one."""
        merged = {floor.key: floor for floor in self.floors}
        for floor in floors:
            earlier = merged.get(floor.key)
            if earlier is None or _counts_instead(floor, earlier):
                merged[floor.key] = floor
        return self.model_copy(update={"floors": tuple(merged.values()), "runs": _each_once(self.runs, runs)})

    def keeping(self, earlier: MachineProfile) -> MachineProfile:
        """The profile with those earlier floors of the same code that were not measured again: what suites need."""
        measured = {floor.key for floor in self.floors}
        kept = [floor for floor in earlier.floors if floor.code == self.code and floor.key not in measured]
        runs = _each_once(earlier.runs if kept else (), self.runs)
        return self.model_copy(update={"floors": (*self.floors, *kept), "runs": runs})

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


def _counts_instead(floor: Floor, earlier: Floor) -> bool:
    if floor.paired != earlier.paired:
        return floor.paired
    return earlier.code != floor.code or earlier.share < floor.share


def floor_of_one_launch(share: float, spread: float) -> float:
    """The share by which two identical launches differ at most in 95 % of comparisons: never below `share`, the floor
    of arms of several launches. The difference of two logarithms has sqrt(2) times the `spread` of one."""
    return max(share, math.expm1(WITHIN_95_PERCENT * math.sqrt(2) * spread))


def floor_of_launches(share: float, measured: int, launches: int) -> float:
    """The share by which identical arms of so many launches differ at most in 95 % of comparisons, from that of
    comparisons of `measured` launches an arm: medians of more launches differ less, by the root of their number. With
    fewer launches the floor stays."""
    return share if launches <= measured else math.expm1(math.log1p(share) * math.sqrt(measured / launches))


def _each_once(*runs: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run for part in runs for run in part))


def _ratio(first: int, second: int) -> float:
    small, large = sorted((first + 1, second + 1))
    return large / small
