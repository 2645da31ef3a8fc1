"""Tags of cases on a page: what a row is marked with, and what a reader can choose from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.record.table import TAG
from scaleproof.report.data import Run, SuiteData
from scaleproof.spec.tags import AXES, NONE

Marks = frozenset[tuple[str, str]]
"""Axis and tag."""


def of_run(run: Run) -> Marks:
    """Of a planned launch; none in a table that was collected before there were tags."""
    return frozenset((axis, tag) for axis in AXES if (tag := run.row.get(TAG + axis)) not in (None, NONE))


def of_claim(claim: ClaimResult, data: SuiteData) -> Marks:
    """Of all launches behind a claim; none without launches."""
    launches = data.launches
    return frozenset(mark for launch in claim.runs if launch in launches for mark in of_run(launches[launch]))


def marks(run: Run) -> str:
    """What the filter of a table of launches reads."""
    return words(of_run(run))


def axes(runs: Iterable[Run]) -> list[tuple[str, Sequence[str]]]:
    """What a reader of a table of launches can choose from."""
    return choices(map(of_run, runs))


def words(marks: Marks) -> str:
    """For a row's attribute, which the filter reads."""
    return " ".join(sorted(f"{axis}={tag}" for axis, tag in marks))


def choices(marks: Iterable[Marks]) -> list[tuple[str, Sequence[str]]]:
    """Axes on which the rows of a page differ, with the tags that occur, in the order of the survey."""
    occurring = {mark for row in marks for mark in row}
    several = [(axis, [tag for tag in known if (axis, tag) in occurring]) for axis, known in AXES.items()]
    return [(axis, tags) for axis, tags in several if len(tags) > 1]
