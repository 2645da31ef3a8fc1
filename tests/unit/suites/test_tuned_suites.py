"""Tuned values of the project's suites are those of the cases that the suites have now."""

from __future__ import annotations

from pathlib import Path

from scaleproof.spec.tuned import TunedSize, read_tuned
from scaleproof.spec.tuning import tunings

SUITES = Path(__file__).parents[3] / "suites"


def test_tuned_values_are_of_the_cases_that_the_suites_have_now() -> None:
    stale = [
        f"scaleproof tune {folder.name} --experiment {name} --size {size}"
        for folder in sorted(SUITES.iterdir())
        for name, sizes in getattr(read_tuned(folder), "experiments", {}).items()
        for size, tuned in sizes.items()
        if tried(tuned) != planned(folder, name, size)
    ]
    assert stale == [], "type these commands: the base, the arms or the grid have changed"


def tried(tuned: TunedSize) -> list[tuple[str, list[str]]]:
    """Arms with the ids of the cases that were run."""
    return [(cell.arm, [point.case for point in cell.points]) for cell in tuned.cells]


def planned(folder: Path, experiment: str, size: str) -> list[tuple[str, list[str]]]:
    """Arms with the ids of the cases that would be run now."""
    (tuning,) = tunings(str(folder), None, experiment, size)
    return [(cell.arm, [point.case.case_id for point in cell.points]) for cell in tuning.cells]
