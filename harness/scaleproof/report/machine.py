"""machine.html: calibration of the machines of the records, and the noise floors shown in sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from pathlib import Path

from scaleproof.record.machine import Floor, MachineProfile, read_profile
from scaleproof.report.data import SuiteData
from scaleproof.report.numbers import nbytes, significant
from scaleproof.report.pages import Fact, Pages
from scaleproof.report.sections import Section
from scaleproof.spec.launch_kind import LaunchKind

NOT_MEASURED = "not measured here; type scaleproof calibrate"
NONE_FOR_THESE = "none is measured for these metrics"


def profiles(results: Path, data: Iterable[SuiteData]) -> dict[str, MachineProfile | None]:
    """Profiles of all machines with records, by machine id."""
    machines = sorted({run.record.machine for suite in data for run in suite.runs if run.record})
    return {machine: read_profile(results, machine) for machine in machines}


def write(pages: Pages, profiles: dict[str, MachineProfile | None]) -> None:
    """Write machine.html."""
    pages.write("machine.html", "machine.html.j2", profiles=profiles)


def with_floors(section: Section, profiles: dict[str, MachineProfile | None]) -> Section:
    """The section with a line on the noise floor of each metric; over kinds of launches and message sizes, the
    smallest and the largest."""
    records = [run.record for run in section.runs if run.record]
    if not records:
        return section
    profile = profiles.get(records[0].machine)
    kinds = {kind for record in records if (kind := record.kind) is not None}
    lines = [line for name in section.metrics if (line := _line(profile, name, kinds))]
    return replace(section, floors=tuple(lines) or (NONE_FOR_THESE if profile else NOT_MEASURED,))


def _line(profile: MachineProfile | None, metric: str, kinds: Set[LaunchKind]) -> str:
    floors = [floor for floor in profile.floors if floor.metric == metric and floor.kind in kinds] if profile else []
    if not floors:
        return ""
    ordered = sorted(floors, key=lambda floor: floor.share)
    ends = [ordered[0]] if len(ordered) == 1 else [ordered[0], ordered[-1]]
    return f"{metric} " + " to ".join(_floor_text(floor) for floor in ends)


def _floor_text(floor: Floor) -> str:
    size = f" at {nbytes(floor.nbytes)}" if floor.nbytes is not None else ""
    return f"± {significant(100 * floor.share, 2)} %{size}"


def summary(profiles: dict[str, MachineProfile | None]) -> Sequence[Fact]:
    """A line for the head of the index: when the machines were calibrated."""
    dates = [profile.measured_at[:10] for profile in profiles.values() if profile]
    return [Fact("Noise floor", f"measured {', '.join(dates)}" if dates else NOT_MEASURED)] if profiles else []
