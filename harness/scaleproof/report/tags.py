"""Tags of cases on a page: the marks of a row, and the choices of the filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.record.table import TAG
from scaleproof.report.data import Run, SuiteData
from scaleproof.spec.tags import AXES, NONE

Marks = frozenset[tuple[str, str]]
"""Axis and tag."""


def of_run(run: Run) -> Marks:
    """The tags of a planned launch; none in a table that was collected before tags existed."""
    return frozenset((axis, tag) for axis in AXES if (tag := run.row.get(TAG + axis)) not in (None, NONE))


def of_claim(claim: ClaimResult, data: SuiteData) -> Marks:
    """The tags of all launches of a claim."""
    launches = data.launches
    return frozenset(mark for launch in claim.runs if launch in launches for mark in of_run(launches[launch]))


def marks(run: Run) -> str:
    """The row's attribute of a launch."""
    return attribute(of_run(run))


def axes(runs: Iterable[Run]) -> list[tuple[str, Sequence[str]]]:
    """The choices of the filter above a table of launches."""
    return choices(map(of_run, runs))


def attribute(marks: Marks) -> str:
    """The text of a row's attribute, which the filter reads."""
    return " ".join(sorted(f"{axis}={tag}" for axis, tag in marks))


def choices(marks: Iterable[Marks]) -> list[tuple[str, Sequence[str]]]:
    """Axes on which the rows of a page differ, with the tags that occur, in the order of the survey."""
    occurring = {mark for row in marks for mark in row}
    several = [(axis, [tag for tag in tags_of_axis if (axis, tag) in occurring]) for axis, tags_of_axis in AXES.items()]
    return [(axis, tags) for axis, tags in several if len(tags) > 1]
